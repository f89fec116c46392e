"""Recipes of the queueing system keep their word: MaxWeight imitated, carried to larger graphs, beaten."""

import numpy as np
import pytest

from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.evaluation.request import EvaluationRequest
from edgewise.evaluation.statistics import paired_difference
from edgewise.experiments.build import Builder
from edgewise.experiments.evaluate import evaluate_run
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.systems.queueing.baselines import MaxWeight

pytestmark = pytest.mark.learning

WORLDS, SLOTS = 64, 5000
"""320,000 slots in all; worlds begin empty, which such long episodes forget."""


def backlogs(folder, *, baselines=(), **settings):
    """Mean backlog of the run's policy and of baselines on the same instances."""
    found = evaluate_run(
        folder,
        EvaluationRequest(
            settings={"max_steps": SLOTS, **settings}, episodes=WORLDS, seed=7, baselines=tuple(baselines)
        ),
    )
    return [float(np.mean(one.metrics["backlog"])) for one in found]


def train(name, folder, **settings):
    """A run of the recipe, some fields changed by their dotted names."""
    return start(load_config(name, keywords=settings), folder=folder)


def test_a_clone_schedules_as_its_expert_does(tmp_path, record_property):
    """Also on states of the expert's that were never collected."""
    folder = train("queueing-line3-clone", tmp_path / "run")
    algorithm = Builder(load_config("queueing-line3-clone")).parts().algorithm
    algorithm.load_state_dict(checkpoint.load(checkpoint.best(folder / "checkpoints"))["algorithm"])
    env = make_env("queueing", num_envs=64, seed=99)
    match = float(
        algorithm.match(
            algorithm.label(Rollout(env, MaxWeight(env), rollout_length=500, keep_state=True).collect())
        )
    )
    cloned, expert = backlogs(folder, baselines=("maxweight",))
    record_property("match", match)
    record_property("backlog", [cloned, expert])
    assert match >= 0.99
    assert abs(cloned / expert - 1) <= 0.02


def test_dagger_on_small_graphs_carries_over_to_a_longer_line(tmp_path, record_property):
    folder = train("queueing-family-dagger", tmp_path / "run")
    line8 = {"graphs": ["line8"], "load": None, "arrival_rate": 0.4}
    learnt, expert = backlogs(folder, baselines=("maxweight",), **line8)
    record_property("backlog", [learnt, expert])
    assert learnt <= 1.1 * expert


@pytest.mark.parametrize(("rate", "enough"), [(0.4, 2.45), (0.45, 4.5)])
@pytest.mark.parametrize("seed", range(3))
def test_ppo_beats_maxweight(seed, rate, enough, tmp_path, record_property):
    """The exact optima are 2.4135 and 4.2817, MaxWeight's backlogs 2.79 and 5.43."""
    folder = train("queueing-line3-ppo", tmp_path / "run", **{"seed": seed, "env.arrival_rate": rate})
    (learnt,) = backlogs(folder)
    record_property("backlog", learnt)
    assert learnt <= enough


UNSEEN = {
    "line8": {"arrival_rate": 0.4, "load": None},
    "ring10": {"arrival_rate": 0.4, "load": None},
    "grid3x4": {"arrival_rate": 0.4, "load": None},
    "bipartite3x4": {"arrival_rate": 0.4, "load": None},
    "star20": {"arrival_rate": 0.4, "load": None},
    "line100": {"arrival_rate": 0.4, "load": None},
    "ring60": {"arrival_rate": 0.4, "load": None},
    "grid10x10": {"arrival_rate": 0.4, "load": None},
    "barabasi20": {"load": 0.8},
    "barabasi50": {"load": 0.8},
}
"""Graphs that `queueing-family-ppo` never meets, of 7 to 100 links, and their arrival rates."""


@pytest.mark.parametrize("seed", range(3))
def test_ppo_on_small_graphs_schedules_unseen_ones_with_no_more_than_maxweight(
    seed, tmp_path, record_property
):
    """The last policy of the run: below MaxWeight by the interval of the paired difference."""
    folder = train("queueing-family-ppo", tmp_path / "run", seed=seed)
    last = checkpoint.latest(folder / "checkpoints")
    for graph, rates in UNSEEN.items():
        settings = {"graphs": [graph], "max_steps": 1000, "initial_queue": 0, **rates}
        learnt, expert = (
            one.metrics["backlog"]
            for one in evaluate_run(
                last, EvaluationRequest(settings=settings, episodes=16, seed=7, baselines=("maxweight",))
            )
        )
        gap = paired_difference(learnt, expert)
        record_property(graph, [float(learnt.mean()), float(expert.mean()), str(gap)])
        assert gap.high <= 0, graph
