"""Two policies on the same instances, measure by measure."""

import numpy as np
import pytest

from edgewise.evaluation.paired import paired_rows
from edgewise.evaluation.result import Evaluation


def evaluation(policy, returns, **metrics):
    values = np.asarray(returns, dtype=float)
    found = {name: np.asarray(each, dtype=float) for name, each in metrics.items()}
    return Evaluation("walk", 5, values, values, values > -1e9, metrics=found, policy=policy)


def test_instances_on_which_either_is_undefined_are_left_out():
    ours = evaluation("ours", [1, 2, 3, 6], time=[1, np.nan, 3, 8], fuel=[1, 1, 1, 1], lost=[np.nan] * 4)
    theirs = evaluation("theirs", [1, 1, 1, 1], time=[2, 2, np.nan, 4], lost=[1] * 4)
    rows = {row["measure"]: row for row in paired_rows(ours, theirs)}
    assert rows.keys() == {"return", "length", "time"}
    assert rows["time"]["episodes"] == 2
    assert (rows["time"]["mean"], rows["time"]["other_mean"]) == (4.5, 3.0)
    assert rows["time"]["difference"] == pytest.approx(1.5)
    assert rows["time"]["ratio"] == pytest.approx(1.5)
    assert rows["return"]["difference_low"] <= 2.0 <= rows["return"]["difference_high"]


def test_a_ratio_to_nothing_is_not_defined():
    (row, _) = paired_rows(evaluation("ours", [1, 2]), evaluation("theirs", [0, 0]))
    assert row["ratio"] is None
    assert row["difference"] == 1.5
