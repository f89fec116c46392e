"""Write what shows a table: CSV, LaTeX, PDF where matplotlib is installed, and the page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from edgewise.benchmark.page import write_page
from edgewise.benchmark.results import ResultsFolder, Stored
from edgewise.benchmark.scores import BETTER, WORSE, Plain, aggregates, cells, label
from edgewise.benchmark.task import Task
from edgewise.runs import durable
from edgewise.studies.scores import Aggregates

Rows = Sequence[Sequence[Any]]
COLOURS = {BETTER: "green!20", WORSE: "red!15"}
"""Colours of LaTeX cells by verdict."""


def write_tables(
    store: ResultsFolder, tasks: Mapping[str, Task], stored: Sequence[Stored], found: Plain
) -> None:
    """Write all tables, figures and the page of a results folder."""
    made = aggregates(cells(tasks, stored))
    curves = [
        (one.column.task, label((one.column.name, one.column.part)), one.column.seed, frames, value)
        for one in stored
        for frames, value in one.curve
    ]
    written = {
        "table.csv": _csv(TABLE, _long(found["table"])),
        "aggregates.csv": _csv(("splits", "column", "IQM", "low", "high", "n"), _iqm(made)),
        "profiles.csv": _csv(("splits", "column", "score", "share"), _profiles(made)),
        "curves.csv": _csv(("task", "column", "seed", "frames", "value"), curves),
        "table.tex": _latex_table(found["table"]),
        "aggregates.tex": _latex(("splits", "column", "IQM", "low", "high", "$n$"), _iqm(made)),
    }
    for name, text in written.items():
        durable.replace_whole(store.path / name, text.encode())
    write_page(store, tasks, stored, found, made)
    if find_spec("matplotlib") is not None:
        from edgewise.benchmark.figures import write_figures

        write_figures(store.path, found, made, curves)


TABLE = (
    *("task", "split", "measure", "maximise", "instances", "sha256", "column", "value", "low", "high", "n"),
    *("gain", "gain_low", "gain_high", "verdict"),
)


def _long(table: Sequence[Plain]) -> list[list[Any]]:
    """Return a row for every column of every task and split."""
    rows = []
    for row in table:
        head = [row[name] for name in TABLE[:6]]
        reference, rule = row["reference"], row["rule"]
        rows.append([*head, f"reference: {reference['by']}", reference["value"]])
        rows.append([*head, f"rule: {rule['name']}", *(rule[name] for name in ("value", "low", "high", "n"))])
        rows.append([*head, "random", row["random"]])
        for one in row["columns"]:
            value, gain = one["value"], one["gain"]
            rows.append(
                [
                    *(*head, label((one["method"], one["part"]))),
                    *(value[name] for name in ("value", "low", "high", "n")),
                    *(gain[name] for name in ("value", "low", "high")),
                    one["verdict"],
                ]
            )
    return [[*row, *[None] * (len(TABLE) - len(row))] for row in rows]


def _iqm(made: Mapping[str, Aggregates]) -> list[list[Any]]:
    return [
        [split, column, one.estimate, *one.ends().values()]
        for split, each in made.items()
        for column, one in each.measures["IQM"].items()
    ]


def _profiles(made: Mapping[str, Aggregates]) -> list[list[Any]]:
    return [
        [split, column, float(score), float(share)]
        for split, each in made.items()
        for column, one in each.profiles.items()
        for score, share in zip(one.thresholds, one.share, strict=True)
    ]


def _csv(header: Sequence[str], rows: Rows) -> str:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([header, *rows])
    return stream.getvalue()


def column_labels(table: Sequence[Plain]) -> list[str]:
    """Return the labels of all columns of methods, in order."""
    found = (label((one["method"], one["part"])) for row in table for one in row["columns"])
    return list(dict.fromkeys(found))


def _latex_table(table: Sequence[Plain]) -> str:
    """Return the table with a row for each task and split; colours need the package colortbl."""
    names = column_labels(table)
    rows = []
    for row in table:
        by_label = {label((one["method"], one["part"])): one for one in row["columns"]}
        cells_ = [by_label.get(name) for name in names]
        fixed = [row["task"], row["split"], row["reference"]["value"], row["rule"]["value"], row["random"]]
        rows.append([*fixed, *map(_latex_cell, cells_)])
    return _latex(("task", "split", "reference", "rule", "random", *names), rows)


def _latex_cell(one: Plain | None) -> str:
    if one is None:
        return "--"
    colour = COLOURS.get(one["verdict"])
    text = f"{one['value']['value']:.4g}"
    return text if colour is None else rf"\cellcolor{{{colour}}}{text}"


def _latex(header: Sequence[str], rows: Rows) -> str:
    shown = [[_latex_text(each) for each in row] for row in (header, *rows)]
    lines = [" & ".join(row) + r" \\" for row in shown]
    columns = "ll" + "r" * (len(header) - 2)
    body = "\n".join([lines[0], r"\midrule", *lines[1:]])
    return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"


def _latex_text(value: Any) -> str:
    if value is None:
        return "--"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("_", r"\_") if "\\" not in str(value) else str(value)
