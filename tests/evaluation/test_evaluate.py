"""Evaluations against worlds played by hand, one at a time."""

import dataclasses
import functools
import itertools
import random

import numpy as np
import pytest
import torch
from tensordict.nn import TensorDictModule
from tests.evaluation.worlds import Countdown, always, by_hand
from torch import nn
from torchrl.envs.utils import ExplorationType, check_env_specs, exploration_type

from edgewise.config.errors import DataError
from edgewise.evaluation.episodes import Tally
from edgewise.evaluation.evaluate import evaluate
from edgewise.evaluation.result import Evaluation


def test_the_toy_world_is_an_environment():
    for options in ({}, {"agents": 3}, {"two_players": True}):
        check_env_specs(Countdown(num_envs=3, seed=0, longest=9, **options))


def test_each_world_counts_its_first_episode_alone():
    got = evaluate(Countdown, always(2), episodes=9, seed=5)
    starts, rewards = by_hand(episodes=9, seed=5)
    expected = [float(rewards[:length, world].sum()) for world, length in enumerate(starts)]
    assert got.lengths.tolist() == starts
    np.testing.assert_allclose(got.returns, expected, rtol=1e-6)
    np.testing.assert_allclose(got.metrics["total"], expected, rtol=1e-5)
    assert got.success.tolist() == [float(length % 2 == 0) for length in starts]
    assert got.finished.all()
    assert (got.env, got.seed, got.episodes) == ("countdown", 5, 9)
    assert len(set(starts)) > 3, "worlds must end at different times for this test to say anything"


def test_agents_count_while_they_act():
    got = evaluate(functools.partial(Countdown, agents=4), always(1), episodes=6, seed=3)
    starts, rewards = by_hand(episodes=6, seed=3, shape=(4,), action=1)
    for world, length in enumerate(starts):
        expected = [float(rewards[: min(length, agent + 1), world, agent].sum()) for agent in range(3)]
        np.testing.assert_allclose(got.agent_returns[world, :3], expected, rtol=1e-5)
        assert np.isnan(got.agent_returns[world, 3])
        assert got.returns[world] == pytest.approx(sum(expected) / 3, rel=1e-5)


def test_two_players_are_seen_by_the_first():
    got = evaluate(functools.partial(Countdown, two_players=True), always(2), episodes=4, seed=1)
    starts, rewards = by_hand(episodes=4, seed=1)
    for world, length in enumerate(starts):
        expected = sum((-1) ** step * float(rewards[step, world]) for step in range(length))
        assert got.returns[world] == pytest.approx(expected, rel=1e-5)


def test_equal_seeds_are_equal_instances_and_others_are_not():
    first, again = (evaluate(Countdown, always(2), episodes=7, seed=11) for _ in range(2))
    np.testing.assert_array_equal(first.returns, again.returns)
    assert evaluate(Countdown, always(2), episodes=7, seed=12).lengths.tolist() != first.lengths.tolist()


def test_other_actions_meet_the_same_draws():
    """The difference between two policies is theirs alone: no world's end shifts another's noise."""
    low, high = (evaluate(Countdown, always(action), episodes=20, seed=0) for action in (1, 3))
    np.testing.assert_allclose(high.returns - low.returns, 2 * low.lengths, rtol=1e-5)


def test_a_limit_cuts_episodes_and_says_so():
    got = evaluate(Countdown, always(2), episodes=12, seed=5, max_steps=10)
    starts, rewards = by_hand(episodes=12, seed=5)
    assert got.lengths.tolist() == [min(length, 10) for length in starts]
    assert got.finished.tolist() == [length <= 10 for length in starts]
    expected = [float(rewards[: min(length, 10), world].sum()) for world, length in enumerate(starts)]
    np.testing.assert_allclose(got.metrics["total"], expected, rtol=1e-5)


def test_recorded_steps_have_the_actions_and_the_return_so_far():
    got = evaluate(Countdown, always(2), episodes=5, seed=7, record=3)
    assert len(got.recorded_steps) == 3
    for world, steps in enumerate(got.recorded_steps):
        assert len(steps) == got.lengths[world]
        assert steps["action"].tolist() == [2] * len(steps)
        assert float(steps["return"][-1]) == got.returns[world]


def test_recordings_run_from_reset_to_end():
    got = evaluate(Countdown, always(2), episodes=5, seed=5, record=3)
    assert len(got.recordings) == 3
    for world, states in enumerate(got.recordings):
        length = int(got.lengths[world])
        assert states["left"].tolist() == list(range(length, -1, -1))
        assert float(states["total"][-1]) == pytest.approx(got.returns[world], rel=1e-5)


def test_global_random_states_are_left_alone():
    def drawing(tensordict):
        torch.rand(3), np.random.rand(3), random.random()
        return tensordict.set("action", torch.randint(0, 5, tensordict.batch_size))

    def states():
        return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()

    before = states()
    first = evaluate(Countdown, drawing, episodes=5, seed=2)
    assert states() == before
    torch.rand(17)
    np.testing.assert_array_equal(evaluate(Countdown, drawing, episodes=5, seed=2).returns, first.returns)


def test_a_given_environment_goes_on_where_it_was():
    env = Countdown(num_envs=5, seed=9)
    expected = torch.rand(4, generator=Countdown(num_envs=5, seed=9).generator)
    got = evaluate(env, always(2), episodes=5, seed=5)
    assert torch.equal(torch.rand(4, generator=env.generator), expected)
    np.testing.assert_array_equal(got.returns, evaluate(Countdown, always(2), episodes=5, seed=5).returns)


@pytest.mark.parametrize("deterministic", [True, False])
def test_modules_act_in_evaluation_mode_and_are_put_back(deterministic):
    seen = []

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Dropout(0.5)
            self.frozen = nn.Linear(1, 1).eval()

        def forward(self, left):
            seen.append((self.part.training, exploration_type(), torch.is_grad_enabled()))
            return torch.zeros_like(left)

    policy = TensorDictModule(Net(), in_keys=[("state", "left")], out_keys=["action"])
    evaluate(Countdown, policy, episodes=2, seed=0, deterministic=deterministic)
    mode = ExplorationType.DETERMINISTIC if deterministic else ExplorationType.RANDOM
    assert set(seen) == {(False, mode, False)}
    assert policy.module.part.training
    assert not policy.module.frozen.training


def test_progress_is_told():
    calls = []
    got = evaluate(Countdown, always(2), episodes=6, seed=5, progress=lambda *call: calls.append(call))
    assert calls[-1][:2] == (6, 6)
    assert calls[-1][2] >= got.lengths.max()
    assert all(earlier[0] <= later[0] for earlier, later in itertools.pairwise(calls))


def test_a_wrong_batch_is_refused():
    with pytest.raises(ValueError, match=r"3 episodes need an environment of batch \[3\]"):
        evaluate(Countdown(num_envs=2, seed=0), always(2), episodes=3, seed=0)
    with pytest.raises(ValueError, match="record"):
        evaluate(Countdown, always(2), episodes=3, seed=0, record=4)


def assert_equal(left, right):
    for field in dataclasses.fields(Evaluation):
        if field.name not in ("recordings", "recorded_steps"):
            np.testing.assert_equal(getattr(left, field.name), getattr(right, field.name))


def test_evaluations_survive_the_disk(tmp_path):
    played = evaluate(functools.partial(Countdown, agents=3), always(2), episodes=4, seed=5, record=1)
    undefined = {**played.metrics, "delay": np.array([1.0, np.nan, 2.0, np.nan])}
    tagged = dataclasses.replace(
        played, policy="always two", baseline=True, frames=1000, settings={"agents": 3}, metrics=undefined
    )
    assert_equal(Evaluation.load(tagged.save(tmp_path / "deep" / "one.json")), tagged)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["one.json"]
    assert tagged.summary()["delay"].estimate == 1.5


def test_summary_is_repeatable_and_brackets_the_mean():
    got = evaluate(Countdown, always(2), episodes=30, seed=5)
    interval = got.summary()["return"]
    assert interval.low < got.returns.mean() < interval.high
    assert got.summary() == got.summary()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "edgewise-evaluation/1"}', '{"format": "other"}']
)
def test_foreign_files_are_refused_by_name(tmp_path, text):
    path = tmp_path / "evaluation.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"evaluation\.json"):
        Evaluation.load(path)
    with pytest.raises(DataError, match="cannot be read"):
        Evaluation.load(tmp_path / "absent.json")


def test_progress_is_told_every_sixteen_steps_and_at_the_end():
    calls = []
    got = evaluate(Countdown, always(2), episodes=6, seed=5, progress=lambda *call: calls.append(call))
    steps = [step for _, _, step in calls]
    assert steps == [*range(16, int(got.lengths.max()), 16), int(got.lengths.max())]


def test_the_return_of_a_team_is_the_mean_over_those_who_acted():
    none = torch.zeros(2, dtype=torch.bool)
    returns = torch.tensor([[1.0, 3.0, 9.0], [2.0, 5.0, 5.0]], dtype=torch.float64)
    acted = torch.tensor([[True, True, False], [True, False, False]])
    tally = Tally(returns, acted, none.long(), none, {})
    assert tally.team_returns().tolist() == [2.0, 2.0]
    assert Tally(returns[:, 0], none, none.long(), none, {}).team_returns().tolist() == [1.0, 2.0]
