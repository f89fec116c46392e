"""Draw the learning curves of policies that come with edgewise: `python docs/images/results_picture.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from edgewise.report.page_data import build_page_data
from edgewise.report.run_data import read_run
from edgewise.runs.zoo import run_path

TARGET = Path(__file__).with_name("results.png")
SHOWN = {
    "graphwalk-ppo": "return",
    "swarm-mappo": "return",
    "marine-quick": "success",
    "queueing-line3-ppo": "backlog",
    "reasoning-countries": "correct",
    "hex-selfplay": "score_shortest_way",
}
"""Policies, and the measure that is drawn."""
DASHES = ("--", ":", "-.", (0, (1, 3)), (0, (4, 1, 1, 1)))


def main() -> None:
    """Draw one axis per policy: bands are 95 % intervals, dashed lines are rules on the same instances."""
    figure = Figure(figsize=(10, 5.2), layout="constrained")
    for place, (name, measure) in enumerate(SHOWN.items(), start=1):
        data = build_page_data([read_run(run_path(f"zoo:{name}"))])
        chart = next(each for each in data["evaluation"] if each["name"] == measure)
        axes, (line,) = figure.add_subplot(2, 3, place), chart["lines"]
        x, y, low, high = (np.array(line[part], dtype=float) for part in ("x", "y", "low", "high"))
        axes.fill_between(x / 1e6, low, high, alpha=0.2, linewidth=0)
        axes.plot(x / 1e6, y, linewidth=1.6, marker=".", label=name)
        for level, dash in zip(chart["levels"], DASHES, strict=False):
            axes.axhline(level["estimate"], color="0.4", linewidth=1, linestyle=dash, label=level["label"])
        axes.set_xlabel("million frames")
        axes.set_ylabel(measure.replace("_", " "))
        axes.legend(fontsize=7, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(TARGET, dpi=110)


if __name__ == "__main__":
    main()
