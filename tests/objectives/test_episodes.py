"""Returns of episodes beside loops over them, with episodes and agents of different numbers."""

import pytest
import torch

from edgewise.objectives.episodes import (
    episode_index,
    episode_returns,
    is_best_of_instance,
    mean_over_instance,
)

LENGTHS = (3, 1, 4, 2)
STEPS, AGENTS, GAMMA = sum(LENGTHS), 3, 0.7


def episodes():
    done = torch.zeros(STEPS, dtype=torch.bool)
    done[torch.tensor(LENGTHS).cumsum(0) - 1] = True
    return done


def slices():
    begin = 0
    for length in LENGTHS:
        yield slice(begin, begin + length)
        begin += length


def test_steps_are_numbered_by_their_episode():
    expected = [number for number, length in enumerate(LENGTHS) for _ in range(length)]
    assert episode_index(episodes()).tolist() == expected
    assert episode_index(episodes()).dtype == torch.int64


@pytest.mark.parametrize("agents", [0, AGENTS])
def test_returns_are_those_of_a_loop(agents):
    draw = torch.Generator().manual_seed(0)
    reward = torch.randn(*(STEPS, agents)[: 1 + bool(agents)], generator=draw, dtype=torch.float64)
    returns, acted = episode_returns(reward, episodes(), gamma=GAMMA)
    for number, steps in enumerate(slices()):
        discounts = GAMMA ** torch.arange(LENGTHS[number], dtype=torch.float64)
        torch.testing.assert_close(returns[number], torch.einsum("t,t...->...", discounts, reward[steps]))
    assert acted[: len(LENGTHS)].all()
    assert not acted[len(LENGTHS) :].any()
    assert returns[len(LENGTHS) :].eq(0).all()
    assert returns.shape == reward.shape


def test_only_steps_of_active_agents_count():
    draw = torch.Generator().manual_seed(1)
    reward = torch.randn(STEPS, AGENTS, generator=draw, dtype=torch.float64)
    active = torch.rand(STEPS, AGENTS, generator=draw) < 0.5
    active[3] = torch.tensor([True, False, False])  # the second episode has one step
    reward[~active] = torch.nan
    returns, acted = episode_returns(reward, episodes(), active=active, gamma=GAMMA)
    for number, steps in enumerate(slices()):
        for agent in range(AGENTS):
            own = [
                GAMMA**since * float(reward[steps][since, agent])
                for since in range(LENGTHS[number])
                if active[steps][since, agent]
            ]
            assert float(returns[number, agent]) == pytest.approx(sum(own))
            assert bool(acted[number, agent]) == bool(own)
    assert acted[1].tolist() == [True, False, False]


def test_one_reward_for_all_agents_counts_whoever_acts():
    reward, active = torch.ones(STEPS), torch.zeros(STEPS, AGENTS, dtype=torch.bool)
    returns, _ = episode_returns(reward, episodes(), active=active, gamma=1.0)
    assert returns[: len(LENGTHS)].tolist() == list(LENGTHS)


def test_means_are_over_the_same_instance_and_those_who_acted():
    returns = torch.tensor([[1.0, 10.0], [3.0, torch.nan], [5.0, 30.0], [7.0, torch.nan]])
    acted = torch.tensor([[True, True], [True, False], [True, True], [True, False]])
    found = mean_over_instance(returns, acted, torch.tensor([2, 0, 2, 1]))
    assert found.tolist() == [[3.0, 20.0], [3.0, 0.0], [3.0, 20.0], [7.0, 0.0]]


def test_the_best_of_an_instance_is_the_first_of_equal_ones():
    returns, instance = torch.tensor([2.0, 5.0, 5.0, -1.0, -2.0, -1.0]), torch.tensor([4, 1, 1, 0, 0, 0])
    expected = [True, True, False, True, False, False]
    assert is_best_of_instance(returns, instance).tolist() == expected
    shares = torch.stack((returns * 3, returns * -2), -1)
    assert is_best_of_instance(shares, instance).tolist() == expected
