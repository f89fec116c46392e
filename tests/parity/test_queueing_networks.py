"""Biased BackPressure on stored networks against the backlogs that were published with them."""

from pathlib import Path

import pytest

from edgewise.systems.multihop.baselines import Ties
from edgewise.systems.multihop.networks.instance import read_instance
from edgewise.systems.multihop.simulate import baseline_run

NETWORKS = Path(__file__).parents[3] / "shared" / "data" / "networks"

pytestmark = pytest.mark.skipif(not NETWORKS.is_dir(), reason="the stored network instances are not here")


def run(name, **settings):
    instance = read_instance(NETWORKS / f"{name}.json")
    return baseline_run("spbp", instance, slots=1000, seeds=8, **settings), instance.kept["baselines"]["SPBP"]


@pytest.mark.parametrize("name", ["ba_1", "ba_2", "ba_3", "ba_4", "ba_6"])
def test_the_stored_backlog_is_met_within_ten_per_cent(name):
    got, stored = run(name)
    assert got.backlog == pytest.approx(stored["backlog"], rel=0.10)
    assert got.throughput == pytest.approx(stored["throughput"], abs=0.01)


def test_two_paths_are_within_the_published_spread_when_ties_go_to_the_higher_index():
    got, stored = run("two_path_Env1")
    assert got.ties == Ties(links="highest", classes="highest")
    assert got.backlog == pytest.approx(stored["backlog"], abs=stored["backlog_std"])
    assert got.throughput == pytest.approx(stored["throughput"], abs=0.005)


def test_on_two_paths_the_tie_rule_is_part_of_the_policy():
    high, _ = run("two_path_Env1")
    low, _ = run("two_path_Env1", ties=Ties(links="lowest"))
    assert low.backlog > high.backlog + 4 * (low.standard_error + high.standard_error) / 2
