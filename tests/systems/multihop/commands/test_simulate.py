"""Routing rules on a network file, from the command line."""

import statistics
from pathlib import Path

import pytest

from edgewise.systems import multihop


def test_rules_are_simulated_on_a_network_file(edgewise):
    shipped = Path(multihop.__file__).parent / "instances" / "two-path.json"
    asked = ("multihop", "simulate", shipped, "--policy", "spbp", "--slots", 50, "--seeds", 3)
    (found,) = edgewise(*asked, "--json").data
    assert (found["slots"], found["seeds"], len(found["backlogs"])) == (50, 3, 3)
    assert found["backlog"] == pytest.approx(sum(found["backlogs"]) / 3)
    spread = statistics.stdev(found["backlogs"]) / 3**0.5
    assert found["standard_error"] == pytest.approx(spread, rel=1e-5)
    assert 0.5 < found["throughput"] <= 1.0
    assert edgewise("multihop", "simulate", "nowhere.json").code == 2
    assert edgewise("multihop", "simulate", shipped, "--policy", "spb").code == 2
