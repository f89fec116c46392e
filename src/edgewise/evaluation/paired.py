"""Two policies on the same instances: differences and ratios of every measure, pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.statistics import Interval, paired_difference, paired_ratio

Row = dict[str, Any]


def paired_rows(ours: Evaluation, theirs: Evaluation) -> list[Row]:
    """Return a row for every measure of two policies on the same instances.

    The difference is the first minus the second, the ratio the mean of the first over that of the second,
    both with 95 % intervals over instances; instances on which either is undefined are left out.
    """
    rows, others = [], theirs.measures()
    for name, values in ours.measures().items():
        pairs = ~(np.isnan(values) | np.isnan(others[name])) if name in others else np.zeros(0, bool)
        if not pairs.any():
            continue
        left, right = values[pairs], others[name][pairs]
        difference = paired_difference(left, right)
        ratio = paired_ratio(left, right)
        rows.append(
            {
                "run": ours.policy,
                "other": theirs.policy,
                "settings": dict(ours.settings),
                "measure": name,
                "episodes": int(pairs.sum()),
                "mean": float(left.mean()),
                "other_mean": float(right.mean()),
                **_bounds("difference", difference),
                **_bounds("ratio", ratio),
            }
        )
    return rows


def _bounds(name: str, interval: Interval | None) -> dict[str, float | None]:
    """Return an interval as entries; None where it is not defined, or cannot be told from the instances."""
    if interval is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    ends = interval.ends()
    return {name: interval.estimate, f"{name}_low": ends["low"], f"{name}_high": ends["high"]}
