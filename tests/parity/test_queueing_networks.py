"""Biased BackPressure against the backlogs that were published with networks.

The figures come from https://github.com/jwigmore-MIT/GNN-Mobihoc2025. Of its networks the one with two paths
is part of edgewise. The drawn ones state no licence and are not, so their tests run where the files are.
"""

import json
from pathlib import Path

import pytest

from edgewise.systems.multihop.config import SHIPPED
from edgewise.systems.multihop.networks.instance import read_instance
from edgewise.systems.multihop.routers import Ties
from edgewise.systems.multihop.simulate import baseline_run

NETWORKS = Path(__file__).parents[3] / "shared" / "data" / "networks"
TWO_PATHS = {"backlog": 5.13, "backlog_std": 0.41, "throughput": 0.997}


def run(path, **settings):
    return baseline_run("spbp", read_instance(path), slots=1000, seeds=8, **settings)


@pytest.mark.thorough
@pytest.mark.skipif(not NETWORKS.is_dir(), reason="the published networks are not beside this folder")
@pytest.mark.parametrize("name", ["ba_1", "ba_2", "ba_3", "ba_4", "ba_6"])
def test_the_stored_backlog_is_met_within_ten_per_cent(name):
    path = NETWORKS / f"{name}.json"
    got, stored = run(path), json.loads(path.read_text())["baselines"]["SPBP"]
    assert got.backlog == pytest.approx(stored["backlog"], rel=0.10)
    assert got.throughput == pytest.approx(stored["throughput"], abs=0.01)


def test_two_paths_are_within_the_published_spread_when_ties_go_to_the_higher_index():
    got = run(SHIPPED / "two-path.json")
    assert got.ties == Ties(links="highest", classes="highest")
    assert got.backlog == pytest.approx(TWO_PATHS["backlog"], abs=TWO_PATHS["backlog_std"])
    assert got.throughput == pytest.approx(TWO_PATHS["throughput"], abs=0.005)
    low = run(SHIPPED / "two-path.json", ties=Ties(links="lowest"))
    assert low.backlog > got.backlog + 4 * (low.standard_error + got.standard_error) / 2
