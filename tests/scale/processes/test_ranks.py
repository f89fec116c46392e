"""Two processes compute together what one computes alone, stay equal, and resume bit for bit.

After an update of Adam, weights whose gradient is close to zero differ by more than the gradients do, and a
unit at the kink of its activation may switch. Where that matters, gradients are compared.
"""

import pytest
from tests.scale.processes.pair import run_pair
from tests.scale.processes.worker import CHECKS, ON_POLICY

QUICK = [
    *("collectives", "statistics", "prioritised", "clone", "evolution", "reinforce mean"),
    *(f"ppo {name}" for name in ON_POLICY),
    *(f"off_policy {name}" for name in ("dqn", "sac")),
    "run graphwalk-ppo",
    "run evolution",
]
RUNS = [name for name in CHECKS if name.startswith("run ")]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return run_pair(tmp_path_factory.mktemp("pair"), QUICK)


@pytest.fixture(scope="module")
def found_by_gloo(tmp_path_factory):
    return run_pair(tmp_path_factory.mktemp("pair"), ["collectives", "off_policy dqn"], memory=False)


@pytest.fixture(scope="module")
def found_slowly(tmp_path_factory):
    return run_pair(tmp_path_factory.mktemp("pair"), [name for name in CHECKS if name not in QUICK])


def test_gloo_and_shared_memory_compute_the_same(found, found_by_gloo):
    for one, other in zip(found, found_by_gloo, strict=True):
        for name in ("collectives", "off_policy dqn"):
            assert one[name] == other[name]


def test_the_collectives(found):
    for rank, result in enumerate(each["collectives"] for each in found):
        assert result["size"] == 2
        assert (result["sum"], result["mean"]) == ([3.0, 10.0], [1.5, 5.0])
        assert (result["max"], result["min"]) == ([2.0, 10.0], [1.0, 0.0])
        assert result["whole"] == 2**41 + 1
        assert result["own"]
        assert result["weights"] == [[1.5, 0.0], [0.5, 0.0]][rank]
        assert [each["rank"] for each in result["gathered"]] == [0, 1]
        assert [each["text"] for each in result["gathered"]] == ["ü", "üü"]
        assert result["told"] == [1.5, float("inf")]
        assert result["gradients"] == [[[1.5, 1.5]], [0.0]]


def test_statistics_are_those_of_all_entries(found):
    for result in found:
        assert len(result["statistics"]) == 21
        assert {name: value for name, value in result["statistics"].items() if value > 1e-6} == {}


def test_importance_weights_are_those_of_one_buffer(found):
    for result in found:
        assert result["prioritised"]["difference"] < 1e-6
        assert result["prioritised"]["largest"] == 1.0
        assert result["prioritised"]["newest"] == 40.0


@pytest.mark.parametrize("name", [*(f"ppo {name}" for name in ON_POLICY), "off_policy dqn", "off_policy sac"])
def test_weights_after_one_and_after_twenty_updates(found, name):
    for result in found:
        one, twenty = result[name]["one"], result[name]["twenty"]
        assert one["equal"]
        assert twenty["equal"]
        assert one["apart"] < 1e-6
        assert twenty["apart"] < 1e-4


@pytest.mark.parametrize("name", ON_POLICY)
def test_metrics_are_those_of_the_whole_batch(found, name):
    for result in found:
        assert result[f"ppo {name}"]["twenty"]["updates"] == 20
        for key, (alone, together) in result[f"ppo {name}"]["twenty"]["metrics"].items():
            assert together == pytest.approx(alone, rel=1e-3, abs=1e-5), key


@pytest.mark.parametrize("name", ["clone", "evolution", "reinforce mean"])
def test_gradients_of_other_algorithms(found, name):
    _compare(found, name)


def test_the_share_that_matches_the_expert_is_over_all_decisions(found):
    alone, together = found[0]["clone"]["match"]
    assert together == pytest.approx(alone)
    assert found[0]["clone"]["match"] == found[1]["clone"]["match"]


def test_a_run_that_was_stopped_goes_on_bit_for_bit(found):
    _resumed(found, "run graphwalk-ppo")
    _resumed(found, "run evolution")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["off_policy mixed", "reinforce shared", "expert_iteration"])
def test_gradients_of_the_rest(found_slowly, name):
    _compare(found_slowly, name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in RUNS if name not in QUICK])
def test_every_run_goes_on_bit_for_bit(found_slowly, name):
    _resumed(found_slowly, name)


def _compare(found, name):
    for result in found:
        for label, each in result[name].items():
            if label in ("one", "twenty"):
                assert each["equal"]
                assert each["gradients_apart"] < 1e-4
        first = result[name].get("one", result[name].get("twenty"))
        assert first["gradients_apart"] < 1e-5


def _resumed(found, name):
    for result in found:
        assert 0 < result[name]["stopped_at"] < 1
        assert result[name]["differences"] == []
