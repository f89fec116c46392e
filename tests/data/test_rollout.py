"""Rollouts: batches chain into episodes, hold what the policy did, and resume bit for bit."""

import copy

import pytest
import torch
from tests.envs.patrol import PatrolConfig, PatrolEnv
from torch import nn
from torchrl.envs.utils import ExplorationType, exploration_type

from edgewise.data.random_policy import RandomPolicy
from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env


class Noting(nn.Module):
    """Plays at random and notes the conditions it plays under."""

    def __init__(self, env):
        super().__init__()
        self.inner, self.frozen, self.env = nn.Dropout(), nn.Dropout().eval(), env
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, root):
        self.noted = (self.training, self.inner.training, torch.is_grad_enabled(), exploration_type())
        worlds = torch.arange(len(root), dtype=torch.float32)
        return self.env.rand_action(root).set("noted", worlds * self.weight)


def walk(num_envs=6, seed=0):
    return make_env("graphwalk", num_envs=num_envs, seed=seed)


def same(left, right):
    names = set(left.keys(include_nested=True, leaves_only=True))
    return names == set(right.keys(include_nested=True, leaves_only=True)) and all(
        torch.equal(left[name], right[name]) for name in names
    )


def test_a_batch_is_what_stepping_by_hand_gives():
    env, by_hand = walk(), walk()
    policies = [RandomPolicy(env.actions, env.graph, seed=1) for _ in range(2)]
    batch = Rollout(env, policies[0], rollout_length=25).collect()
    root = by_hand.reset()
    for step in range(25):
        root = policies[1](root)
        stepped = by_hand.step(root)
        assert same(batch[:, step], stepped.exclude("state", ("next", "state")))
        root = by_hand.maybe_reset(by_hand.step_mdp(stepped))


@pytest.mark.parametrize("cuts", [(8, 8, 8), (1, 20, 3)])
def test_portions_join_into_one(cuts):
    env, whole = walk(), walk()
    policy, again = (RandomPolicy(env.actions, env.graph, seed=1) for _ in range(2))
    expected = Rollout(whole, again, rollout_length=24).collect()
    rollout, portions = Rollout(env, policy, rollout_length=cuts[0]), []
    for rollout.rollout_length in cuts:
        rollout._storage = None
        portions.append(rollout.collect())
    assert same(torch.cat(portions, 1), expected)


def test_next_is_the_last_of_an_episode_and_not_the_first_of_another():
    batch = Rollout(
        walk(num_envs=40), walk(num_envs=40).rand_action, rollout_length=30, keep_state=True
    ).collect()
    done = batch["next", "done"].squeeze(-1)
    assert done.any()
    assert (batch["next", "state", "step"] == batch["state", "step"] + 1).all()
    assert (batch["state", "step"][:, 1:][done[:, :-1]] == 0).all()
    arrived = batch["next", "terminated"].squeeze(-1)
    assert (batch["next", "graph", "x"][arrived].sum(-1) == 2).any(-1).all()


def test_state_is_left_out_unless_asked_for():
    env = walk()
    assert "state" not in Rollout(env, env.rand_action, rollout_length=2).collect()
    assert "state" in Rollout(env, env.rand_action, rollout_length=2, keep_state=True).collect()


def test_the_policy_explores_without_gradients_and_without_dropout():
    env = walk()
    policy = Noting(env)
    batch = Rollout(env, policy, rollout_length=2).collect()
    assert policy.noted == (False, False, False, ExplorationType.RANDOM)
    assert policy.training
    assert policy.inner.training
    assert not policy.frozen.training
    assert torch.is_grad_enabled()
    assert not any(value.requires_grad for value in batch.values(True, True))
    assert torch.equal(batch["noted"][:, 0], torch.arange(6.0))


def test_modes_return_after_a_failure():
    env = walk()
    policy = Noting(env)
    policy.env = None
    with pytest.raises(AttributeError):
        Rollout(env, policy, rollout_length=2).collect()
    assert policy.training
    assert torch.is_grad_enabled()


def test_a_batch_holds_until_the_next():
    env = walk()
    rollout = Rollout(env, env.rand_action, rollout_length=4)
    batch = rollout.collect()
    kept, added = batch.clone(), batch.set("advantage", torch.ones(6, 4, 1))
    following = rollout.collect()
    assert "advantage" in added
    assert "advantage" not in following
    assert not same(kept.exclude("advantage"), following)
    assert following["action"].data_ptr() == batch["action"].data_ptr()


@pytest.mark.parametrize(
    "make", [walk, lambda num_envs=6, seed=0: PatrolEnv(PatrolConfig(), num_envs=num_envs, seed=seed)]
)
def test_a_rollout_resumes_bit_for_bit(make):
    env = make()
    rollout = Rollout(env, env.rand_action, rollout_length=7)
    rollout.collect()
    state, draws = copy.deepcopy(rollout.state_dict()), torch.get_rng_state()
    expected = [rollout.collect().clone() for _ in range(3)]

    other = make(seed=99)
    resumed = Rollout(other, other.rand_action, rollout_length=7)
    resumed.load_state_dict(state)
    torch.set_rng_state(draws)
    for batch in expected:
        assert same(resumed.collect(), batch)


def test_a_state_is_tensors_and_plain_values():
    def leaves(value):
        return (
            [leaf for part in value.values() for leaf in leaves(part)] if isinstance(value, dict) else [value]
        )

    env = walk()
    rollout = Rollout(env, env.rand_action, rollout_length=3)
    fresh = rollout.state_dict()
    rollout.collect()
    for state in (fresh, rollout.state_dict()):
        assert all(isinstance(leaf, torch.Tensor | int | float | str | list) for leaf in leaves(state))
    rollout.load_state_dict(fresh)
    rollout.env.set_seed(3)
    env.set_seed(3)
    assert same(rollout.collect()[:, 0]["graph"], walk(seed=3).reset()["graph"])


def test_steps_must_be_positive():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Rollout(walk(), walk().rand_action, rollout_length=0)
