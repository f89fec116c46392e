"""GraphGAE of steps that older weights made: V-trace by its double sum, and GAE where nothing has changed."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives.oracles import by_rows
from tests.objectives.rollouts import SmallCritic, random_rollout, value_of
from tests.objectives.test_graph_gae import SETTINGS, agents_rollout, shapes
from tests.objectives.test_off_policy_traces import vtrace_sum

from edgewise.objectives.alignment import match_log_ratio
from edgewise.objectives.graph_gae import GraphGAE
from edgewise.objectives.vtrace import importance_statistics


def random_log_ratio(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def by_definition(rollout, value, next_value, log_ratio, *, agent=None):
    """Targets minus values `[B, T]`, one row after the other."""
    following = rollout["next"]
    reward = following["reward"][..., agent or 0] if agent is None else following["reward"][..., agent, 0]
    done, over = following["done"][..., 0], following["terminated"][..., 0]
    active = torch.ones_like(done)
    if agent is not None:
        active = rollout["agents", "active"][..., agent]
        over = over | following["agents", "terminated"][..., agent]
    parts = (reward, value, next_value, log_ratio, done | over, over, active)
    targets = by_rows(vtrace_sum, *parts, **SETTINGS, rho=1.0, c=1.0)
    return torch.where(active, targets - value, 0.0)


@settings(max_examples=30)
@given(shapes)
def test_it_is_the_double_sum(shape):
    rows, steps, seed, ends = shape
    rollout, critic = random_rollout(rows, steps, seed=seed, ends=ends), SmallCritic()
    log_ratio = random_log_ratio(rows, steps, seed=seed)
    found = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone().set("log_ratio", log_ratio))
    flat = rollout.reshape(-1)
    value, ahead = (value_of(critic, each["graph"]).view(rows, steps) for each in (flat, flat["next"]))
    expected = by_definition(rollout, value, ahead, log_ratio)
    torch.testing.assert_close(found["advantage"].squeeze(-1), expected, atol=1e-5, rtol=1e-5)
    target = found["advantage"] + found["state_value"]
    torch.testing.assert_close(found["value_target"], target, atol=1e-6, rtol=1e-6)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_agents_that_end_by_themselves(seed, agents):
    rollout, critic = agents_rollout(3, 8, agents, seed=seed), SmallCritic(agents=agents)
    log_ratio = random_log_ratio(3, 8, agents, seed=seed)
    log_ratio = log_ratio.masked_fill(~rollout["agents", "active"], torch.nan)
    found = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone().set("log_ratio", log_ratio))
    flat = rollout.reshape(-1)
    value, ahead = (value_of(critic, each["graph"]).view(3, 8, agents) for each in (flat, flat["next"]))
    for agent in range(agents):
        parts = (each[..., agent] for each in (value, ahead, log_ratio))
        expected = by_definition(rollout, *parts, agent=agent)
        torch.testing.assert_close(found["advantage"][..., agent, 0], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("agents", [0, 2])
def test_it_is_gae_where_the_weights_are_the_same(agents):
    rollout = agents_rollout(4, 9, agents) if agents else random_rollout(4, 9)
    critic = SmallCritic(agents=agents)
    plain = GraphGAE(value_network=critic, average_gae=True, **SETTINGS)(rollout.clone())
    same = rollout.clone().set("log_ratio", torch.zeros(4, 9, *([agents] if agents else [])))
    found = GraphGAE(value_network=critic, average_gae=True, **SETTINGS)(same)
    for name in ("advantage", "value_target", "state_value"):
        torch.testing.assert_close(found[name], plain[name], atol=1e-5, rtol=1e-5)


def test_one_value_for_many_decisions_goes_with_their_joint_probability():
    log_ratio = torch.arange(12.0).reshape(2, 3, 2)
    assert match_log_ratio(log_ratio, torch.zeros(2, 3, 1), batch_dims=2).squeeze(-1).equal(log_ratio.sum(-1))
    assert match_log_ratio(log_ratio, torch.zeros(2, 3), batch_dims=2).equal(log_ratio.sum(-1))
    assert match_log_ratio(log_ratio, torch.zeros(2, 3, 2, 1), batch_dims=2).squeeze(-1).equal(log_ratio)
    of_world = match_log_ratio(log_ratio[..., 0], torch.zeros(2, 3, 4, 1), batch_dims=2)
    assert of_world.equal(log_ratio[..., :1, None].expand(2, 3, 4, 1))


def test_two_players_are_refused():
    rollout = random_rollout(2, 3).set("log_ratio", torch.zeros(2, 3)).set("player", torch.zeros(2, 3, 1))
    with pytest.raises(ValueError, match="V-trace is for one player"):
        GraphGAE(value_network=SmallCritic(), two_player=True, **SETTINGS)(rollout)


def test_statistics_of_importance_weights_by_hand():
    log_ratio = torch.tensor([2.0, 0.5, 1.0, 100.0]).log()
    found = importance_statistics(log_ratio, torch.tensor([True, True, True, False]))
    assert found["importance"].item() == pytest.approx(3.5 / 3)
    assert found["importance_max"].item() == pytest.approx(2.0)
    assert found["importance_clipped"].item() == pytest.approx(1 / 3)
    assert found["importance_effective"].item() == pytest.approx(3.5**2 / (3 * 5.25))
    alike = importance_statistics(torch.zeros(5))
    assert [round(value.item(), 6) for value in alike.values()] == [1.0, 1.0, 0.0, 1.0]
