"""Plot the measures of runs over frames, with matplotlib (`pip install "edgewise[plot]"`)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgewise.config.errors import ConfigError
from edgewise.config.wording import did_you_mean

try:
    from matplotlib.figure import Figure
except ImportError as error:  # pragma: no cover - where matplotlib is missing
    raise ConfigError("plots need matplotlib", hint="pip install 'edgewise[plot]'") from error

DEFAULT = ("evaluation/return", "episode/return")
"""Measures that are plotted if none are named: the first that a run has."""
COLUMNS = 3


class CurveFigure(Figure):
    """A figure that notebooks show, without a window or a backend."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


def plot_measures(
    runs: Mapping[str, Mapping[str, Any]], measures: Sequence[str] = (), *, log: bool = False
) -> CurveFigure:
    """Plot measures over frames, an axis for each measure and a line for each run.

    Args:
        runs: columns of metrics.csv, by the name of the run.
        measures: their names; by default the return.
        log: whether the vertical axes are logarithmic.

    Raises:
        ConfigError: no run has such a measure.
    """
    known = list(dict.fromkeys(name for columns in runs.values() for name in columns))
    chosen = list(measures) or [name for name in DEFAULT if name in known][:1]
    if not chosen:
        raise ConfigError("the metrics have no return to plot", hint=f"name a measure: {', '.join(known)}")
    for name in chosen:
        if name not in known:
            raise ConfigError(f"{name} is not measured", hint=did_you_mean(name, known))
    columns, rows = min(COLUMNS, len(chosen)), -(-len(chosen) // COLUMNS)
    figure = CurveFigure(figsize=(5.2 * columns, 3.4 * rows), layout="constrained")
    for place, name in enumerate(chosen, start=1):
        axes = figure.add_subplot(rows, columns, place)
        for run, values in runs.items():
            if name in values:
                seen = np.isfinite(np.asarray(values[name], dtype=float))
                axes.plot(np.asarray(values["frames"])[seen], np.asarray(values[name])[seen], label=run)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("frames")
        axes.grid(alpha=0.3)
        axes.set_yscale("log" if log else "linear")
        if len(runs) > 1:
            axes.legend(fontsize=8)
    return figure
