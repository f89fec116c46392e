"""Figures as PDF, by matplotlib: the table in colours, performance profiles, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from edgewise.benchmark.scores import BETTER, WORSE, Plain, label
from edgewise.studies.scores import Aggregates

TONES = {BETTER: "#cdebd8", WORSE: "#f6d3d1"}
WITHOUT_DATE = {"CreationDate": None}
"""Equal figures are equal files."""


def write_figures(
    folder: Path, found: Plain, made: Mapping[str, Aggregates], curves: Sequence[tuple[Any, ...]]
) -> None:
    """Write table.pdf, profiles.pdf and curves.pdf."""
    figures = {"table": _table(found["table"]), "profiles": _profiles(made), "curves": _curves(curves)}
    for name, figure in figures.items():
        if figure is not None:
            figure.savefig(folder / f"{name}.pdf", bbox_inches="tight", metadata=WITHOUT_DATE)


def _table(rows: Sequence[Plain]) -> Figure | None:
    names = list(dict.fromkeys(label((one["method"], one["part"])) for row in rows for one in row["columns"]))
    if not rows:
        return None
    header = ["task", "split", "reference", "rule", "random", *names]
    texts, tones = [], []
    for row in rows:
        own = {label((one["method"], one["part"])): one for one in row["columns"]}
        known = [row["reference"]["value"], row["rule"]["value"], row["random"]]
        texts.append(
            [row["task"], row["split"], *(f"{value:.4g}" for value in known)]
            + [f"{own[name]['value']['value']:.4g}" if name in own else "-" for name in names]
        )
        verdicts = [own[name]["verdict"] if name in own else "" for name in names]
        tones.append(["white"] * 5 + [TONES.get(each, "white") for each in verdicts])
    figure = Figure(figsize=(1.4 * len(header), 0.22 * len(rows) + 1))
    axes = figure.subplots()
    axes.axis("off")
    drawn = axes.table(cellText=texts, cellColours=tones, colLabels=header, loc="center")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(7)
    return figure


def _profiles(made: Mapping[str, Aggregates]) -> Figure | None:
    if not made:
        return None
    figure = Figure(figsize=(3.2 * len(made), 2.6))
    for axes, (split, each) in zip(
        figure.subplots(1, len(made), squeeze=False)[0], made.items(), strict=True
    ):
        for name, one in each.profiles.items():
            axes.step(one.thresholds, one.share, where="post", label=name)
        axes.axvline(1, color="grey", linewidth=0.6)
        axes.set(title=split, xlabel="score (1: strongest rule)", ylabel="share of runs")
        axes.legend(fontsize=6)
    figure.tight_layout()
    return figure


def _curves(curves: Sequence[tuple[Any, ...]]) -> Figure | None:
    tasks = list(dict.fromkeys(row[0] for row in curves))
    if not tasks:
        return None
    across = min(4, len(tasks))
    down = -(-len(tasks) // across)
    figure = Figure(figsize=(3 * across, 2.4 * down))
    for axes, task in zip(figure.subplots(down, across, squeeze=False).flat, tasks, strict=False):
        own = [row for row in curves if row[0] == task]
        for name in dict.fromkeys(row[1] for row in own):
            for seed in dict.fromkeys(row[2] for row in own if row[1] == name):
                points = np.array([row[3:] for row in own if row[1] == name and row[2] == seed], dtype=float)
                axes.plot(points[:, 0], points[:, 1], linewidth=0.8)
        axes.set(title=task, xlabel="frames")
    figure.tight_layout()
    return figure
