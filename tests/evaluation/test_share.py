"""The share of evaluation in the CPU time of a recipe: its arithmetic, and what it says of a run."""

import pytest
from benchmarks import evaluation
from benchmarks.evaluation import SHARE, Cost, measure, share_of_run

from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.training.callbacks import Callback


def cost(**changed):
    chosen = {
        "frames": 100,
        "every": 25,
        "episodes": 8,
        "training": 90.0,
        "first": 1.5,
        "later": 1.5,
        "baselines": 2.5,
    }
    return Cost(**{**chosen, **changed})


@pytest.mark.parametrize(
    ("every", "count"), [(None, 1), (100, 2), (99, 3), (50, 3), (25, 5), (30, 5), (1000, 2)]
)
def test_evaluations_are_before_training_at_every_multiple_and_at_the_end(every, count):
    assert cost(every=every).evaluations == count


def test_the_share_counts_the_baselines_once():
    assert cost().share == pytest.approx((2.5 + 5 * 1.5) / (2.5 + 5 * 1.5 + 90))
    assert cost(every=None).share == pytest.approx(4 / 94)


def test_the_first_evaluation_is_that_of_an_untrained_policy():
    assert cost(first=4.0).share == pytest.approx((2.5 + 4 + 4 * 1.5) / (2.5 + 4 + 4 * 1.5 + 90))
    assert cost(first=4.0, every=None).share == cost(every=None).share


@pytest.mark.parametrize("first", [0.3, 3.7])
@pytest.mark.parametrize("later", [0.1, 0.7, 1.5, 2.5, 3.7])
def test_the_affordable_interval_is_the_smallest_with_a_share_of_a_tenth(first, later):
    found = cost(first=first, later=later)
    assert cost(first=first, later=later, every=found.affordable).share <= SHARE + 1e-9
    fewer = found.affordable - 1
    assert cost(first=first, later=later, every=fewer).share > SHARE


def test_no_interval_is_affordable_where_two_evaluations_cost_too_much():
    assert cost(first=3.8, later=3.8).affordable is None
    assert cost(baselines=11.0).affordable is None


def test_a_run_evaluates_as_often_as_the_share_supposes(tmp_path):
    """Also where the interval does not divide the frames."""
    folder = start(small(**{"training.total_frames": 40, "evaluation.every": 16}), folder=tmp_path / "run")
    done = [path for path in (folder / "evaluations").iterdir() if not path.name.startswith("baseline")]
    assert len(done) == cost(frames=40, every=16).evaluations
    assert 0 < share_of_run(folder) < 1


@pytest.mark.parametrize("every", [None, 16])
def test_without_evaluations_nothing_is_evaluated_before_the_first_batch(tmp_path, every):
    """Neither policy nor baselines; at the end both are, and both count."""
    watch = Watch()
    folder = start(small(**{"evaluation.every": every}), folder=tmp_path / "run", callbacks=[watch])
    assert (watch.evaluating > 0) == (every is not None)
    assert list((folder / "evaluations").glob("baseline*"))
    assert watch.run.seconds()["evaluating"] > 0


def test_a_recipe_is_measured(monkeypatch):
    monkeypatch.setattr(evaluation, "MEASURED_SECONDS", 0.01)
    found = measure("graphwalk-ppo")
    config = load_config("graphwalk-ppo")
    assert (found.frames, found.every) == (config.training.total_frames, config.evaluation.every)
    assert found.episodes == config.evaluation.episodes
    assert min(found.training, found.first, found.later, found.baselines) > 0
    assert found.row("graphwalk-ppo").split()[1] == f"{found.share:.1%}"


def small(**changed):
    """A short run of a recipe."""
    sizes = {"training.num_envs": 4, "training.rollout_length": 2, "training.total_frames": 8}
    return load_config("graphwalk-ppo", keywords={**sizes, "evaluation.episodes": 4, **changed})


class Watch(Callback):
    """Keeps the seconds of evaluation before the first batch."""

    def on_start(self, run):
        self.run = run

    def on_checkpoint(self, frames, path):
        if frames == 0:
            self.evaluating = self.run.seconds()["evaluating"]
