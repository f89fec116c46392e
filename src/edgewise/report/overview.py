"""Build pages of charts, scatter plots, intervals and sortable tables, for studies and lists of runs."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgewise.evaluation.statistics import Interval
from edgewise.report.metrics_table import Cut
from edgewise.report.numbers import number, numbers, plain_interval
from edgewise.report.page import OVERVIEW_SCRIPTS, page

Block = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """A section with its blocks; one without blocks is left out of the page."""

    id: str
    title: str
    lead: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Overview:
    """The content of a page.

    Args:
        title: of the page.
        eyebrow: small text above the title.
        facts: names and values below the title.
        sections: in order.
        tiles: label, value and a line below it.
        notes: sentences about what is missing.
        footer: last line.
    """

    title: str
    eyebrow: str
    facts: Sequence[tuple[str, Any]]
    sections: Sequence[Section]
    tiles: Sequence[tuple[str, Any, str]] = ()
    notes: Sequence[str] = ()
    footer: str = field(default="edgewise")

    def html(self) -> str:
        """Return the page as one HTML file."""
        return page(
            {
                "title": self.title,
                "eyebrow": self.eyebrow,
                "facts": list(self.facts),
                "tiles": [
                    {"label": label, "value": value, "range": range_} for label, value, range_ in self.tiles
                ],
                "notes": list(self.notes),
                "sections": [
                    {"id": one.id, "title": one.title, "lead": one.lead, "blocks": list(one.blocks)}
                    for one in self.sections
                    if one.blocks
                ],
                "footer": self.footer,
            },
            OVERVIEW_SCRIPTS,
        )


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Block:
    """Return a sortable table; a cell is a number, text, None, or the output of `cell`."""
    return {
        "type": "table",
        "columns": list(columns),
        "rows": [[_cell(each) for each in row] for row in rows],
    }


def cell(
    text: str,
    *,
    order: float | str | None = None,
    href: str | None = None,
    range_: str | None = None,
    state: str | None = None,
    shade: str | None = None,
) -> dict[str, Any]:
    """Return a cell of a table.

    Args:
        text: that is shown.
        order: by which it is sorted; the text if not given.
        href: relative address that the text leads to.
        range_: small text below.
        state: `good`, `warn`, `bad` or empty for a dot before the text.
        shade: `good` or `bad` for a cell in green or red.
    """
    given = {"text": text, "order": order, "href": href, "range": range_, "state": state, "shade": shade}
    return {name: value for name, value in given.items() if value is not None}


def line(
    label: str,
    x: Sequence[float],
    y: Sequence[float],
    *,
    colour: int = 0,
    band: Any = None,
    cut: Cut | None = None,
) -> Block:
    """Return a line of a chart, with a band `(low, high)` where there is one, and where a mean is cut."""
    low, high = (y, y) if band is None else band
    return ({} if cut is None else {"cut": cut.to_plain()}) | {
        "label": label,
        "colour": colour,
        "x": numbers(x),
        "y": numbers(y),
        "low": numbers(low),
        "high": numbers(high),
    }


def charts(clock: str, drawn: Mapping[str, Sequence[Block]]) -> Block:
    """Return charts by name, each with its lines."""
    made = [{"name": name, "family": "", "lines": list(lines), "levels": []} for name, lines in drawn.items()]
    return {"type": "charts", "clock": clock, "charts": made}


def intervals(plots: Mapping[str, Mapping[str, Interval]]) -> Block:
    """Return plots of estimates with intervals: name of the plot to label to interval."""
    return {
        "type": "intervals",
        "plots": [
            {
                "name": name,
                "rows": [
                    {"label": label, "colour": index, "interval": plain_interval(one)}
                    for index, (label, one) in enumerate(rows.items())
                ],
            }
            for name, rows in plots.items()
        ],
    }


def pictures(drawn: Mapping[str, str]) -> Block:
    """Return drawings, SVG by name. They are shown as images, in which no script runs."""
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in drawn.items()}
    shown = [{"name": name, "source": f"data:image/svg+xml;base64,{text}"} for name, text in encoded.items()]
    return {"type": "pictures", "pictures": shown}


def _cell(value: Any) -> Any:
    return number(value) if isinstance(value, float) else value
