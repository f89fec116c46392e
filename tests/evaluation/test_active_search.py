"""Active search: what it finds, what it leaves alone, and what it needs."""

import copy

import numpy as np
import pytest
import torch
from tests.algorithms.picking import picking
from tests.evaluation.test_decoding import actor_for
from tests.evaluation.test_guided_decoding import MODEL, Uncached, returns, salesman

import edgewise as ew
from edgewise.config.errors import ConfigError
from edgewise.evaluation import active_search
from edgewise.models.actor_critic import make_actor_critic

SIZES = {
    "cvrp": {"num_customers": (4, 6)},
    "job_shop": {"num_jobs": (3, 4), "num_machines": 3},
    "max_cut": {"num_nodes": (6, 8), "steps_per_node": 1.0},
}


def test_it_finds_more_than_as_many_samples():
    env, actor = salesman(worlds=8, cities=14)
    searched, sampled = returns(env, actor, "active:30"), returns(env, actor, "sample:481")
    assert searched.mean() > sampled.mean() + 0.05
    assert (searched >= returns(env, actor, "greedy") - 1e-9).all()


def test_it_learns_from_advantages_and_by_imitation(monkeypatch):
    env, actor = salesman(worlds=8, cities=14)
    both = returns(env, actor, "active:20").mean()
    monkeypatch.setattr(active_search, "RATE", 0.0)
    neither = returns(env, actor, "active:20").mean()
    assert both > neither + 0.05


def test_the_policy_stays_as_it_is():
    env, actor = salesman()
    before = copy.deepcopy(actor.state_dict())
    one, two = returns(env, actor, "active:3"), returns(env, actor, "active:3")
    np.testing.assert_array_equal(one, two)
    for name, value in actor.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(each.grad is None for each in actor.parameters())


@pytest.mark.parametrize("name", SIZES)
def test_other_problems_are_searched_and_never_worse_than_greedily(name):
    env = ew.make_env(name, num_envs=6, seed=0, **SIZES[name])
    torch.manual_seed(0)
    actor = make_actor_critic(env.graph, env.actions, MODEL).actor
    greedy, searched = returns(env, actor, "greedy"), returns(env, actor, "active:4")
    assert (searched >= greedy - 1e-9).all()
    assert (searched > greedy + 1e-6).any()


def test_the_plan_of_the_best_episode_is_followed():
    """The last world of each instance replays the best episode: its return is the best so far."""
    env, actor = salesman(worlds=5, cities=(7, 9))
    env.set_seed(1)
    with torch.no_grad():
        search = active_search._Search(
            env, actor, env.reset(), how=ew.config.decoding.Decoding("active", 3), limit=20
        )
        for turn in range(4):
            torch.manual_seed(turn)
            before, seen = search.best.team_returns(), []
            search._learn = lambda steps, found, lengths, seen=seen: seen.append(found[:, -1])
            search.round()
            torch.testing.assert_close(seen[0], before)


def test_graphs_that_are_encoded_in_every_step_are_refused():
    env, actor = salesman()
    with pytest.raises(ConfigError, match="a graph is encoded in every step"):
        returns(env, Uncached(actor), "active:2")
    env = picking(num_envs=3)
    with pytest.raises(ConfigError, match="a graph is encoded in every step"):
        returns(env, actor_for(env), "active:2")
