"""The page "Where learning pays", as HTML with colours or as a table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import DataError
from edgewise.evaluation.statistics import Interval
from edgewise.experiments.learning_pays import ALONE, EQUAL, LOSES, PAYS, Row, sorted_rows
from edgewise.report.overview import Overview, Section, cell, table

STATES = {PAYS: "good", EQUAL: "warn", LOSES: "bad", ALONE: ""}
COLUMNS = (
    "run",
    "problem",
    "measure",
    "policy",
    "strongest rule",
    "gain over the rule",
    "learning",
    "without edges",
    "edges",
    "untrained",
    "optimum",
    "minutes",
)
COLOURS = {"good": "#1a7f37", "warn": "#9a6700", "bad": "#cf222e"}
"""Colours of states in Markdown."""
ABSENT = "-"
LEAD = (
    "Each run on the same instances as the strongest rule for its action space, itself without edges and "
    "itself before training; in games the score against the rule that is hardest for it. Gains are turned so "
    "that above zero is better, with 95 % intervals over pairs. Learning pays where the whole interval is "
    "above zero. Minutes are those of training by the clock of the run."
)


def write_page(rows: Sequence[Row], target: Path) -> Path:
    """Write the page, as Markdown if the name of the file ends with `.md`, and return its path.

    Raises:
        DataError: it cannot be written.
    """
    text = markdown(rows) if target.suffix == ".md" else html(rows)
    try:
        files.replace(target, text.encode())
    except OSError as error:
        raise DataError(f"{target}: the page cannot be written: {error.strerror}") from error
    return target


def html(rows: Sequence[Row]) -> str:
    """Return the page as one HTML file."""
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in STATES}
    return Overview(
        title="Where learning pays",
        eyebrow="learned policies beside rules",
        facts=[(verdict, count) for verdict, count in counts.items() if count],
        sections=[
            Section("rows", "Runs", LEAD, [table(COLUMNS, [_cells(row) for row in sorted_rows(rows)])])
        ],
    ).html()


def markdown(rows: Sequence[Row]) -> str:
    """Return the table in Markdown, in colours; a row in which learning does not pay says so in bold."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    lines += [f"| {' | '.join(map(_text, _cells(row)))} |" for row in sorted_rows(rows)]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[Any]:
    problem = ", ".join([row.environment, *(f"{name} {value}" for name, value in row.settings.items())])
    return [
        row.run,
        problem,
        f"{row.measure} ({'more' if row.maximise else 'less'} is better)",
        _value(row.policy),
        ABSENT if row.rule is None else cell(row.rule, range_=_plain(row.rule_value)),
        _value(row.gain),
        cell(row.verdict, state=STATES[row.verdict], order=list(STATES).index(row.verdict)),
        _value(row.without_edges),
        ABSENT if not row.uses_edges else cell(_edges(row), state=STATES[row.uses_edges]),
        _value(row.untrained),
        _value(row.optimum),
        None if row.minutes is None else round(row.minutes, 1),
    ]


def _edges(row: Row) -> str:
    return {PAYS: "help", EQUAL: "no difference", LOSES: "hurt"}[row.uses_edges]


def _value(found: Interval | None) -> Any:
    if found is None:
        return ABSENT
    bounds = f"{found.low:.3g} to {found.high:.3g}, " if found.has_bounds else ""
    return cell(f"{found.estimate:.4g}", order=found.estimate, range_=f"{bounds}n={found.samples}")


def _plain(found: Interval | None) -> str:
    return "" if found is None else found.text(".4g")


def _text(value: Any) -> str:
    """Return a cell as Markdown."""
    if value is None:
        return ABSENT
    if not isinstance(value, dict):
        return str(value)
    state = value.get("state", "")
    text = f"**{value['text']}**" if state == "bad" else str(value["text"])
    text = f'<span style="color: {COLOURS[state]}">{text}</span>' if state in COLOURS else text
    return f"{text} ({value['range']})" if value.get("range") else text
