"""Figures and tables of runs for papers: curves, intervals and profiles as PDF, and a table as LaTeX."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.config.errors import ConfigError, DataError
from edgewise.report.comparison import Entrant, entrants, main_set
from edgewise.report.page_data import build_page_data
from edgewise.report.run_data import RunData, read_run
from edgewise.runs import digests

COLUMNS, MEASURES = 3, 5
"""Plots beside each other, and measures in the table."""
WIDTH, HEIGHT = 6.9, 2.1
"""Inches: the text of a page, and a row of plots."""
STYLE: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""Fonts are embedded as TrueType, which conferences ask for."""
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {letter: f"\\{letter}" for letter in "&%$#_{}"}


def write_pdf(folders: Sequence[Path], target: Path) -> Path:
    """Write learning curves, and intervals and profiles beside baselines; return the path.

    Raises:
        ConfigError: matplotlib is missing, or nothing was evaluated.
        DataError: a folder is no run folder, or the file cannot be written.
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_pdf import PdfPages
    except ImportError as error:  # pragma: no cover - where matplotlib is missing
        raise ConfigError("figures need matplotlib", hint="pip install 'edgewise[plot]'") from error
    runs = [read_run(folder) for folder in folders]
    data = _evaluated(runs)
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE), PdfPages(buffer, metadata={"CreationDate": None}) as pages:
        for figure in (_curves(data), _beside(data, _entrants(runs))):
            pages.savefig(figure)
    return _write(target, buffer.getvalue())


def write_latex(folders: Sequence[Path], target: Path) -> Path:
    r"""Write a table of means with 95 % intervals, a row per policy and baseline; it needs booktabs.

    Raises:
        ConfigError: nothing was evaluated.
        DataError: a folder is no run folder, or the file cannot be written.
    """
    data = _evaluated([read_run(folder) for folder in folders])["comparison"]
    measures = data["measures"][:MEASURES]
    lines = [
        f"% {data['episodes']} episodes of seed {data['seed']}; brackets are 95 % intervals",
        rf"\begin{{tabular}}{{l{'r' * len(measures)}}}",
        r"\toprule",
        " & ".join(["policy", *map(_escaped, measures)]) + r" \\",
        r"\midrule",
        *(_row(row, measures) for row in data["rows"]),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return _write(target, ("\n".join(lines) + "\n").encode())


def _evaluated(runs: Sequence[RunData]) -> dict[str, Any]:
    data = build_page_data(runs)
    if not data["comparison"] or not data["comparison"]["rows"]:
        raise ConfigError(f"{runs[0].folder}: has no evaluation", hint="edgewise eval measures it")
    return data


def _entrants(runs: Sequence[RunData]) -> list[Entrant]:
    groups: dict[str, list[Any]] = {}
    for run in runs:
        groups.setdefault(run.label, []).append(run.evaluations)
    main = main_set([one for run in runs for one in run.evaluations])
    return [] if main is None else entrants(groups, main)


def _write(target: Path, content: bytes) -> Path:
    try:
        digests.replace(target, content)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror}") from error
    return target


def _curves(data: dict[str, Any]) -> Any:
    """Return a figure with an axis for each measure of the evaluations, the main one first."""
    from matplotlib.figure import Figure

    charts = data["evaluation"][: 3 * COLUMNS]
    rows = max(1, -(-len(charts) // COLUMNS))
    figure = Figure(figsize=(WIDTH, HEIGHT * rows), layout="constrained")
    for place, chart in enumerate(charts, start=1):
        axes = figure.add_subplot(rows, COLUMNS, place)
        for line in chart["lines"]:
            x, y, low, high = (_numbers(line[name]) for name in ("x", "y", "low", "high"))
            (drawn,) = axes.plot(x, y, label=line["label"], linewidth=1.2)
            axes.fill_between(x, low, high, alpha=0.2, color=drawn.get_color(), linewidth=0)
        for level, dash in zip(chart["levels"], _dashes(), strict=False):
            axes.axhline(level["estimate"], color="0.45", linewidth=0.8, linestyle=dash, label=level["label"])
        axes.set_xlabel(data["clock"])
        axes.set_ylabel(chart["name"])
        if place == 1:
            axes.legend(fontsize=6, frameon=False)
    return figure


def _beside(data: dict[str, Any], found: Sequence[Entrant]) -> Any:
    """Return a figure with the intervals of the main measure, and how it is distributed over episodes."""
    from matplotlib.figure import Figure

    measure, rows = data["comparison"]["measures"][0], data["comparison"]["rows"]
    figure = Figure(figsize=(WIDTH, max(HEIGHT, 0.25 * len(rows) + 0.8)), layout="constrained")
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    for place, row in enumerate(rows):
        interval = row["intervals"].get(measure)
        if interval is None:
            continue
        if interval["low"] is not None and interval["high"] is not None:
            left.plot(
                [interval["low"], interval["high"]], [place, place], color=f"C{place}", linewidth=3, alpha=0.4
            )
        left.plot([interval["estimate"]], [place], "o", color=f"C{place}", markersize=4)
    left.set_yticks(range(len(rows)), [row["label"] for row in rows])
    left.invert_yaxis()
    left.set_xlabel(f"{measure}, mean and 95 % interval")
    for entrant in found:
        values = np.sort(np.concatenate([one.measures()[measure] for one in entrant.evaluations]))
        values = values[np.isfinite(values)]
        right.step(values, 1 - np.arange(len(values)) / max(1, len(values)), where="pre", label=entrant.label)
    right.set_xlabel(f"{measure} of an episode")
    right.set_ylabel("share of episodes above")
    right.legend(fontsize=6, frameon=False)
    return figure


def _dashes() -> Iterator[Any]:
    yield from ("--", ":", "-.")
    while True:
        yield (0, (1, 3))


def _numbers(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _row(row: dict[str, Any], measures: Sequence[str]) -> str:
    cells = [_cell(row["intervals"].get(name)) for name in measures]
    return " & ".join([_escaped(row["label"]), *cells]) + r" \\"


def _cell(interval: dict[str, Any] | None) -> str:
    if interval is None or interval["estimate"] is None:
        return "--"
    text = f"${interval['estimate']:.4g}$"
    if interval["low"] is None or interval["high"] is None:
        return text
    return rf"{text} {{\scriptsize $[{interval['low']:.4g}, {interval['high']:.4g}]$}}"


def _escaped(text: str) -> str:
    return "".join(SPECIAL.get(letter, letter) for letter in text)
