"""GraphGAE against its definition, a case worked by hand, and TorchRL, on ragged graphs that end anywhere."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from tests.objectives.oracles import by_rows, double_sum
from tests.objectives.rollouts import SmallCritic, random_rollout, value_of
from torchrl.objectives.value import GAE

from edgewise.objectives.average_reward import AverageReward
from edgewise.objectives.boundaries import bootstrap_mask, bootstrap_positions
from edgewise.objectives.graph_gae import GraphGAE

SETTINGS = {"gamma": 0.95, "lmbda": 0.9}
shapes = st.tuples(st.integers(1, 4), st.integers(1, 7), st.integers(0, 10_000), st.sampled_from([0, 0.3, 1]))


def by_definition(critic, rollout, **settings):
    """Advantages `[B, T]` by the double sum, every graph valued alone."""
    flat = rollout.reshape(-1)
    value = value_of(critic, flat["graph"]).view(rollout.shape)
    next_value = value_of(critic, flat["next", "graph"]).view(rollout.shape)
    reward, done, terminated = (rollout["next", key].squeeze(-1) for key in ("reward", "done", "terminated"))
    return by_rows(double_sum, reward, value, next_value, done, terminated, **settings)


@settings(max_examples=40)
@given(shapes, st.booleans())
def test_equals_the_double_sum_with_each_graph_valued_alone(shape, compact):
    rows, steps, seed, ends = shape
    rollout, critic = random_rollout(rows, steps, seed=seed, ends=ends), SmallCritic(compact=compact)
    found = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())
    expected = by_definition(critic, rollout, **SETTINGS)
    torch.testing.assert_close(found["advantage"].squeeze(-1), expected, atol=1e-5, rtol=1e-5)
    target = found["advantage"] + found["state_value"]
    torch.testing.assert_close(found["value_target"], target, atol=1e-6, rtol=1e-6)


@given(shapes, st.booleans())
def test_equals_torchrl_without_vmap(shape, average):
    rows, steps, seed, ends = shape
    rollout, critic = random_rollout(rows, steps + 1, seed=seed, ends=ends), SmallCritic()
    ours = GraphGAE(value_network=critic, average_gae=average, **SETTINGS)(rollout.clone())
    theirs = GAE(value_network=critic, average_gae=average, deactivate_vmap=True, **SETTINGS)(rollout.clone())
    for key in ("advantage", "value_target", "state_value"):
        torch.testing.assert_close(ours[key], theirs[key], atol=1e-5, rtol=1e-5)


def test_a_case_worked_by_hand():
    """γ = λ = 1/2; V = x. One row: step 0 is cut off with x' = 8 while the next episode begins at x = 100."""
    critic = TensorDictModule(torch.nn.Identity(), in_keys=["x"], out_keys=["state_value"])
    following = {
        "x": torch.tensor([8.0, 6.0, 9.0]),
        "reward": torch.tensor([1.0, 1.0, 1.0]),
        "done": torch.tensor([True, False, True]),
        "terminated": torch.tensor([False, False, True]),
    }
    roots = torch.tensor([2.0, 100.0, 6.0])
    rollout = TensorDict({"x": roots, "next": following}, [3]).unsqueeze(-1).transpose(0, 1).unsqueeze(-1)
    rollout = rollout.auto_batch_size_(2)
    found = GraphGAE(value_network=critic, gamma=0.5, lmbda=0.5)(rollout)
    # errors: 1 + 8/2 - 2 = 3;  1 + 6/2 - 100 = -96;  1 - 6 = -5
    assert found["advantage"].flatten().tolist() == [3.0, -96 - 5 / 4, -5.0]
    assert found["value_target"].flatten().tolist() == [5.0, 4 - 5 / 4, 1.0]


@settings(max_examples=40)
@given(shapes, st.booleans())
def test_time_first_and_no_trailing_dimension_change_nothing(shape, trailing):
    rows, steps, seed, ends = shape
    rollout, critic = random_rollout(rows, steps, seed=seed, ends=ends), SmallCritic(trailing=trailing)
    expected = by_definition(critic, rollout, **SETTINGS)
    turned = rollout.transpose(0, 1).contiguous()
    if not trailing:
        for key in ("reward", "done", "terminated"):
            turned["next", key] = turned["next", key].squeeze(-1)
    found = GraphGAE(value_network=critic, time_dim=0, **SETTINGS)(turned)["advantage"]
    assert found.shape == ((steps, rows, 1) if trailing else (steps, rows))
    torch.testing.assert_close(found.reshape(steps, rows).T, expected, atol=1e-5, rtol=1e-5)
    at_call = GraphGAE(value_network=critic, **SETTINGS)(turned.exclude("advantage"), time_dim=-2)
    torch.testing.assert_close(at_call["advantage"], found)


def test_a_dimension_named_time_is_time():
    rollout, critic = random_rollout(3, 5).transpose(0, 1).contiguous(), SmallCritic()
    expected = GraphGAE(value_network=critic, time_dim=0, **SETTINGS)(rollout.clone())["advantage"]
    rollout.names = ["time", None]
    found = GraphGAE(value_network=critic, **SETTINGS)(rollout)["advantage"]
    assert torch.equal(found, expected)


def test_any_number_of_leading_dimensions():
    rollout, critic = random_rollout(6, 5), SmallCritic()
    expected = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())["advantage"]
    folded = rollout.clone().unflatten(0, (2, 3))
    found = GraphGAE(value_network=critic, **SETTINGS)(folded)["advantage"]
    torch.testing.assert_close(found.flatten(0, 1), expected)


def test_the_critic_sees_each_root_once_and_only_the_needed_next_states():
    rollout, critic = random_rollout(5, 8, ends=0.4), SmallCritic()
    GraphGAE(value_network=critic, **SETTINGS)(rollout)
    done, over = rollout["next", "done"].squeeze(-1), rollout["next", "terminated"].squeeze(-1)
    needed = (done[:, :-1] & ~over[:, :-1]).sum() + (~over[:, -1]).sum()
    assert 0 < needed < 5 * 8
    assert critic.calls == [5 * 8 + int(needed)]


@pytest.mark.parametrize("size", [1, 7, 16, 10_000])
def test_chunks_bound_each_call_and_change_nothing(size):
    rollout, critic = random_rollout(4, 6), SmallCritic()
    expected = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())["advantage"]
    critic.calls.clear()
    found = GraphGAE(value_network=critic, value_chunk_size=size, **SETTINGS)(rollout)["advantage"]
    assert max(critic.calls) <= size
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("nodes", "graphs"), [(3000, 1), (640, 8), (20, 256), (3, 1706)])
def test_default_chunks_hold_5120_nodes_or_one_graph(nodes, graphs):
    calls = []

    def value(graph):
        calls.append(len(graph))
        return graph["x"].mean(-1)

    def states(steps):
        mask = torch.ones(1, steps, nodes, dtype=torch.bool)
        return {"graph": TensorDict({"x": torch.randn(1, steps, nodes), "node_mask": mask}, [1, steps])}

    steps = graphs + 1
    flags = torch.ones(1, steps, 1, dtype=torch.bool)
    following = {**states(steps), "reward": torch.ones(1, steps, 1), "done": flags, "terminated": flags}
    rollout = TensorDict({**states(steps), "next": following}, [1, steps])
    critic = TensorDictModule(lambda graph: value(graph).unsqueeze(-1), ["graph"], ["state_value"])
    GraphGAE(value_network=critic, **SETTINGS)(rollout)
    assert calls == [graphs, 1]


@pytest.mark.parametrize("time_dim", [0, 1])
def test_a_budget_that_suffices_changes_nothing_and_keeps_sizes(time_dim):
    rollout, critic = random_rollout(5, 9, ends=0.5), SmallCritic()
    cut = rollout["next", "truncated"][:, :-1].sum(1).max()
    rollout = rollout if time_dim else rollout.transpose(0, 1).contiguous()
    expected = GraphGAE(value_network=critic, time_dim=time_dim, **SETTINGS)(rollout.clone())["advantage"]
    for budget in (int(cut), int(cut) + 2, 100):
        critic.calls.clear()
        options = {"time_dim": time_dim, "boundary_budget": budget}
        found = GraphGAE(value_network=critic, **options, **SETTINGS)(rollout.clone())["advantage"]
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
        assert critic.calls == [5 * (9 + min(budget, 8) + 1)]


def test_a_budget_that_does_not_suffice_shows_as_nan_and_never_as_a_wrong_number():
    rollout, critic = random_rollout(6, 9, ends=0.25), SmallCritic()
    exact = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())["advantage"]
    found = GraphGAE(value_network=critic, boundary_budget=1, **SETTINGS)(rollout)["advantage"]
    short = rollout["next", "truncated"][:, :-1].sum(1) > 1
    assert short.any()
    assert not short.all()
    assert found[short.squeeze(-1)].isnan().any(1).all()
    known = ~found.isnan()
    torch.testing.assert_close(found[known], exact[known], atol=1e-6, rtol=1e-5)


def test_a_next_state_that_is_never_needed_may_be_anything():
    rollout, critic = random_rollout(4, 6), SmallCritic()
    expected = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())["advantage"]
    flags = (rollout["next", "done"], rollout["next", "terminated"])
    needed = bootstrap_mask(*flags, batch_dims=2, time_dim=1)
    rollout["next", "graph", "x"][~needed] = torch.nan
    found = GraphGAE(value_network=critic, **SETTINGS)(rollout)["advantage"]
    assert torch.equal(found, expected)


def test_stored_values_are_used_without_a_critic():
    rollout, critic = random_rollout(3, 5), SmallCritic()
    expected = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())["advantage"]
    with torch.no_grad():
        critic(rollout)
        critic(rollout["next"])
    found = GraphGAE(value_network=None, **SETTINGS)(rollout)["advantage"]
    torch.testing.assert_close(found, expected)


def test_keys_are_set_as_in_torchrl():
    rollout, critic = random_rollout(3, 5), SmallCritic()
    expected = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())["advantage"]
    rollout["next"].rename_key_("reward", ("worth", "now")).rename_key_("done", "ended")
    gae = GraphGAE(value_network=critic, **SETTINGS)
    gae.set_keys(reward=("worth", "now"), done="ended", advantage="gain", value_target="aim")
    found = gae(rollout)
    assert torch.equal(found["gain"], expected)
    assert gae.out_keys == ["gain", "aim"]
    assert found.get("advantage", None) is None


def test_values_may_be_transformed_before_use():
    rollout, critic = random_rollout(3, 5), SmallCritic()
    gae = GraphGAE(value_network=critic, value_transform=lambda value: 10 * value + 3, **SETTINGS)
    found = gae(rollout.clone())
    flat = rollout.reshape(-1)
    value, following = (
        10 * value_of(critic, flat[key]).view(3, 5) + 3 for key in ("graph", ("next", "graph"))
    )
    parts = (rollout["next", key].squeeze(-1) for key in ("reward", "done", "terminated"))
    reward, done, terminated = parts
    expected = by_rows(double_sum, reward, value, following, done, terminated, **SETTINGS)
    torch.testing.assert_close(found["advantage"].squeeze(-1), expected, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(found["state_value"].squeeze(-1) * 10 + 3, value, atol=1e-5, rtol=1e-5)


def test_two_players_see_opposite_signs():
    rollout, critic = random_rollout(4, 7), SmallCritic()
    player = torch.randint(0, 2, (4, 8))
    rollout["player"], rollout["next", "player"] = player[:, :-1], player[:, 1:].clone()
    done = rollout["next", "done"].squeeze(-1)
    rollout["next", "player"][done] = torch.randint(0, 2, (int(done.sum()),))
    found = GraphGAE(value_network=critic, two_player=True, **SETTINGS)(rollout.clone())["advantage"]
    # in the view of player 0, whoever moves: a game of one
    sign, after = 1 - 2 * rollout["player"], 1 - 2 * rollout["next", "player"]
    flat = rollout.reshape(-1)
    value = value_of(critic, flat["graph"]).view(4, 7) * sign
    next_value = value_of(critic, flat["next", "graph"]).view(4, 7) * after
    reward = rollout["next", "reward"].squeeze(-1) * sign
    over = rollout["next", "terminated"].squeeze(-1)
    expected = by_rows(double_sum, reward, value, next_value, done, over, **SETTINGS) * sign
    torch.testing.assert_close(found.squeeze(-1), expected, atol=1e-5, rtol=1e-5)
    one_player = GraphGAE(value_network=critic, **SETTINGS)(rollout)["advantage"]
    assert (one_player - found).abs().amax() > 0.1


def agents_rollout(rows, steps, agents, *, seed=0):
    """A rollout in which agents leave before their world ends, and some were never there."""
    rollout = random_rollout(rows, steps, seed=seed, ends=0.25, agents=agents)
    generator = torch.Generator().manual_seed(seed)
    born = torch.rand(rows, agents, generator=generator) < 0.8
    active, gone = born.clone(), torch.zeros_like(born)
    marks = []
    for step in range(steps):
        leaves = active & (torch.rand(rows, agents, generator=generator) < 0.2)
        marks.append((active, gone, gone | leaves))
        active, gone = active & ~leaves, gone | leaves
        done = rollout["next", "done"][:, step]
        active, gone = torch.where(done, born, active), gone & ~done
    before, gone_before, gone_after = (torch.stack(part, 1) for part in zip(*marks, strict=True))
    rollout["agents"] = TensorDict({"active": before, "terminated": gone_before}, [rows, steps])
    rollout["next", "agents"] = TensorDict({"terminated": gone_after}, [rows, steps])
    return rollout


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_agents_end_by_themselves_and_idle_ones_count_for_nothing(seed, agents):
    """Each agent by the double sum over its own steps alone, one agent at a time."""
    rollout, critic = agents_rollout(3, 8, agents, seed=seed), SmallCritic(agents=agents)
    found = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())["advantage"]
    flat = rollout.reshape(-1)
    value = value_of(critic, flat["graph"]).view(3, 8, agents)
    next_value = value_of(critic, flat["next", "graph"]).view(3, 8, agents)
    for agent in range(agents):
        active = rollout["agents", "active"][..., agent]
        over = rollout["next", "agents", "terminated"][..., agent] | rollout["next", "terminated"][..., 0]
        expected = by_rows(
            double_sum,
            rollout["next", "reward"][..., agent, 0],
            value[..., agent],
            next_value[..., agent],
            rollout["next", "done"][..., 0] | over,
            over,
            **SETTINGS,
        )
        expected = torch.where(active, expected, 0.0)
        torch.testing.assert_close(found[..., agent, 0], expected, atol=1e-5, rtol=1e-5)


def test_agents_are_standardised_over_those_that_act():
    rollout, critic = agents_rollout(6, 10, 3), SmallCritic(agents=3)
    plain = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())
    scaled = GraphGAE(value_network=critic, average_gae=True, **SETTINGS)(rollout.clone())
    active = rollout["agents", "active"].unsqueeze(-1)
    assert not active.all()
    own = plain["advantage"][active]
    torch.testing.assert_close(scaled["advantage"][active], (own - own.mean()) / own.std())
    assert (scaled["advantage"][~active] == 0).all()
    assert torch.equal(scaled["value_target"], plain["value_target"])


def test_a_shared_reward_goes_to_every_agent():
    rollout, critic = agents_rollout(3, 6, 3), SmallCritic(agents=3)
    shared = rollout["next", "reward"][..., 0, :].clone()
    rollout["next", "reward"] = shared.unsqueeze(-2).expand(3, 6, 3, 1).clone()
    expected = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())["advantage"]
    rollout["next", "reward"] = shared
    found = GraphGAE(value_network=critic, **SETTINGS)(rollout)["advantage"]
    assert torch.equal(found, expected)


def test_agents_rewards_do_not_fit_one_value_per_graph():
    rollout = random_rollout(3, 4, agents=2)
    with pytest.raises(ValueError, match=r"reward has shape \(2, 1\) .* does not fit \(1,\)"):
        GraphGAE(value_network=SmallCritic(), **SETTINGS)(rollout)


def test_parameters_may_be_handed_over():
    rollout, critic, other = random_rollout(3, 5), SmallCritic(), SmallCritic()
    params, target = (TensorDict.from_module(each).data.clone() for each in (other, critic))
    gae, theirs = (
        kind(value_network=SmallCritic(), **SETTINGS, **options)
        for kind, options in ((GraphGAE, {}), (GAE, {"deactivate_vmap": True}))
    )
    for handed in ({"params": params}, {"params": params, "target_params": target}):
        found, expected = gae(rollout.clone(), **handed), theirs(rollout.clone(), **handed)
        torch.testing.assert_close(found["advantage"], expected["advantage"], atol=1e-5, rtol=1e-5)
    same = gae(rollout.clone(), params=params, target_params=params.clone(False))
    assert torch.equal(same["advantage"], gae(rollout.clone(), params=params)["advantage"])


def test_gradients_reach_the_inputs_only_when_asked_for_and_never_the_parameters():
    rollout, critic = random_rollout(2, 4), SmallCritic()
    rollout["graph", "x"].requires_grad_()
    assert not GraphGAE(value_network=critic, **SETTINGS)(rollout.copy())["advantage"].requires_grad
    found = GraphGAE(value_network=critic, differentiable=True, **SETTINGS)(rollout.copy())["advantage"]
    found.sum().backward()
    assert rollout["graph", "x"].grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in critic.parameters())


@pytest.mark.parametrize(
    "break_it, message",
    [
        (lambda rollout: rollout["next"].pop("reward"), "GraphGAE needs the entry 'reward'"),
        (lambda rollout: rollout["next"].pop("done"), "GraphGAE needs the entry 'done'"),
        (lambda rollout: rollout.set("steps_to_next_obs", torch.ones(2, 3)), "n-step batch"),
    ],
)
def test_what_is_missing_is_named(break_it, message):
    rollout = random_rollout(2, 3)
    break_it(rollout)
    with pytest.raises((KeyError, ValueError), match=message):
        GraphGAE(value_network=SmallCritic(), **SETTINGS)(rollout)


def test_a_rollout_without_time_is_refused():
    with pytest.raises(ValueError, match="time dimension"):
        GraphGAE(value_network=SmallCritic(), **SETTINGS)(random_rollout(1, 1)[0, 0])
    with pytest.raises(ValueError, match="boundary_budget"):
        GraphGAE(value_network=SmallCritic(), boundary_budget=-1, **SETTINGS)


def test_positions_by_index_are_those_needed():
    needed = torch.tensor([[False, True, True], [True, False, False]])
    assert bootstrap_positions(needed, time_dim=1, budget=None).tolist() == [1, 2, 3]
    assert sorted(bootstrap_positions(needed, time_dim=1, budget=1).tolist()) == [1, 2, 3, 5]
    several = torch.tensor([[False, True, False, True, True]])
    assert bootstrap_positions(several, time_dim=1, budget=1).tolist() == [1, 4]
    assert bootstrap_positions(several, time_dim=1, budget=2).tolist() == [1, 3, 4]


def test_one_ended_agent_makes_a_boundary_and_all_terminated_ones_make_it_needless():
    done = torch.tensor([[[0, 0], [1, 0], [1, 1], [1, 1], [0, 0]]]).bool()
    terminated = torch.tensor([[[0, 0], [1, 0], [1, 0], [1, 1], [0, 0]]]).bool()
    needed = bootstrap_mask(done, terminated, batch_dims=2, time_dim=1)
    assert needed.tolist() == [[False, True, True, False, True]]


def test_the_trace_of_an_agent_does_not_pass_through_steps_in_which_it_was_inactive():
    """γ = λ = 1 and V = 0: the advantage of a step is the sum of rewards until the agent pauses."""
    active = torch.tensor([[1, 0], [1, 1], [0, 1], [0, 0], [1, 1], [1, 1]]).bool()
    reward = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]).view(1, 6, 1, 1).expand(1, 6, 2, 1)
    flags = torch.zeros(1, 6, 1, dtype=torch.bool)
    zeros = torch.zeros(1, 6, 2, 1)
    following = {"reward": reward, "done": flags, "terminated": flags, "state_value": zeros}
    rollout = TensorDict(
        {"agents": {"active": active.unsqueeze(0)}, "state_value": zeros, "next": following}, [1, 6]
    )
    found = GraphGAE(gamma=1.0, lmbda=1.0, value_network=None)(rollout)["advantage"].view(6, 2)
    assert found[:, 0].tolist() == [3.0, 2.0, 0.0, 0.0, 48.0, 32.0]
    assert found[:, 1].tolist() == [0.0, 6.0, 4.0, 0.0, 48.0, 32.0]


def test_the_gain_is_that_of_active_agents():
    active = torch.tensor([[[1, 0], [1, 1], [0, 1]]]).bool()
    reward = torch.tensor([[[3.0, 90.0], [5.0, 7.0], [90.0, 9.0]]]).unsqueeze(-1)
    flags, zeros = torch.zeros(1, 3, 1, dtype=torch.bool), torch.zeros(1, 3, 2, 1)
    following = {"reward": reward, "done": flags, "terminated": flags, "state_value": zeros}
    rollout = TensorDict({"agents": {"active": active}, "state_value": zeros, "next": following}, [1, 3])
    gain = AverageReward(0.9)
    GraphGAE(gamma=1.0, lmbda=0.9, value_network=None, average_reward=gain)(rollout)
    assert float(gain.mean) == pytest.approx(6.0)


def test_targets_of_differential_values_have_no_level():
    """Values of any level have the targets of those around zero, by the mean of active agents."""
    active = torch.tensor([[[1, 0], [1, 1], [0, 1]]]).bool()
    flags, value = torch.zeros(1, 3, 1, dtype=torch.bool), torch.randn(1, 3, 2, 1)
    found = []
    for level in (0.0, 50.0):
        following = {"reward": torch.ones(1, 3, 2, 1), "done": flags, "terminated": flags}
        following["state_value"] = value.roll(-1, 1) + level
        shifted = {"agents": {"active": active}, "state_value": value + level, "next": following}
        estimator = GraphGAE(gamma=1.0, lmbda=0.9, value_network=None, average_reward=AverageReward(0.9))
        found.append(estimator(TensorDict(shifted, [1, 3]))["value_target"][active])
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-4)


def test_targets_are_asked_for_without_a_change_of_the_batch():
    rollout = random_rollout(2, 3)
    before = sorted(map(str, rollout.keys(include_nested=True)))
    estimator = GraphGAE(value_network=SmallCritic(), **SETTINGS)
    targets = estimator.value_estimate(rollout)
    assert sorted(map(str, rollout.keys(include_nested=True))) == before
    torch.testing.assert_close(targets, estimator(rollout)["value_target"])


def test_next_values_have_no_gradient():
    value, next_value = (torch.zeros(1, 3, 1, requires_grad=True) for _ in range(2))
    flags = torch.zeros(1, 3, 1, dtype=torch.bool)
    following = {"reward": torch.ones(1, 3, 1), "done": flags, "terminated": flags, "state_value": next_value}
    rollout = TensorDict({"state_value": value, "next": following}, [1, 3])
    found = GraphGAE(value_network=None, differentiable=True, **SETTINGS)(rollout)
    found["advantage"].sum().backward()
    assert value.grad is not None
    assert value.grad.abs().min() > 0
    assert next_value.grad is None
