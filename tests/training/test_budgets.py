"""Time budgets: a run ends when its minutes are used, and schedules follow the time."""

import pytest

import edgewise as ew
from edgewise.config.errors import ConfigError
from edgewise.experiments.load import load_config
from edgewise.training.iteration import Clock, Iteration

SMALL = {
    "num_envs": 4,
    "rollout_length": 8,
    "minibatch_size": 16,
    "epochs": 1,
    "evaluation": {"every": None, "episodes": 2},
    "model": {"encoder": {"hidden": 8, "heads": 2, "layers": 1}},
}
SCHEDULE = {"learning_rate": {"kind": "linear", "start": 1e-3, "end": 0.0}}


@pytest.mark.parametrize("budget", ["minutes", "cpu_minutes"])
def test_a_run_ends_with_its_budget_and_its_schedule_with_it(budget, tmp_path):
    """Nothing else would end it: a billion frames take days."""
    run = ew.train(
        "graphwalk-ppo",
        folder=tmp_path / "run",
        progress=False,
        total_frames=10**9,
        **{budget: 0.02, "training.schedules": SCHEDULE},
        **SMALL,
    )
    frames = run.metrics["frames"]
    assert 64 < frames[-1] < 10**7
    rates = run.metrics["schedule/learning_rate"]
    assert rates[-1] < 0.5e-3 < rates[1]


@pytest.mark.parametrize(
    ("settings", "clock", "share"),
    [
        ({"minutes": 2}, Clock(collecting=30, learning=30, evaluating=999, cpu=999), 0.5),
        ({"cpu_minutes": 2}, Clock(collecting=999, learning=999, cpu=30), 0.25),
        ({}, Clock(collecting=30), None),
    ],
)
def test_the_share_is_that_of_collecting_and_learning(settings, clock, share):
    training = load_config("graphwalk-ppo", keywords={**settings, "total_frames": 777}).training
    iteration = Iteration(training, parts=None, folder=None)
    iteration.clock = clock
    assert iteration.share_of_time == share
    assert iteration.planned_frames(1000) == (777 if share is None else round(1000 / share))
    assert iteration.planned_frames(0) == 777


def test_two_budgets_are_refused():
    with pytest.raises(ConfigError, match="give one of them"):
        load_config("graphwalk-ppo", keywords={"minutes": 1, "cpu_minutes": 1})


def test_the_flag_is_the_budget_and_not_the_interval_of_checkpoints():
    config = load_config("graphwalk-ppo", flags=[("--minutes", "3")])
    assert config.training.minutes == 3
    assert config.checkpoint.minutes == load_config("graphwalk-ppo").checkpoint.minutes
