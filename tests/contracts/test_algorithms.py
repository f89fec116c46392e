"""What every algorithm owes: it solves a toy, goes on bit for bit, and never does what is forbidden."""

import pytest
import torch
from safetensors.torch import load, save
from tests.algorithms.experts import imitator
from tests.algorithms.worlds import TOYS, batches, learner, mean_reward, toy

from edgewise.algorithms.registry import ALGORITHMS
from edgewise.data.rollout import Rollout
from edgewise.training.serialise import flatten, unflatten

BUILDERS = {"ppo": learner, "clone": imitator}
"""Name of an algorithm → how to build it for a toy: `build(env, seed=…)`."""

ENOUGH = {"marked": 0.95, "signals": 0.95, "dials": 0.7}
"""Mean reward at which a toy counts as solved; chance earns about 0.6, 0.5 and -0.1."""

every_algorithm = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
every_toy = pytest.mark.parametrize("name", TOYS)


def test_no_algorithm_is_left_out():
    assert set(BUILDERS) == set(ALGORITHMS)


@every_algorithm
@every_toy
@pytest.mark.parametrize("seed", range(3))
def test_it_solves_a_toy(build, name, seed):
    """A forbidden action earns NaN, which no mean survives: what is learnt is learnt without any."""
    env = toy(name, seed=seed)
    algorithm = build(env, seed=seed)
    chance = None
    for batch in batches(env, algorithm, 8):
        algorithm.learn(batch)
        assert batch["next", "reward"].isfinite().all()
        chance = mean_reward(batch) if chance is None else chance
    assert chance < ENOUGH[name]
    assert mean_reward(batch) > ENOUGH[name]


@every_algorithm
@every_toy
def test_it_goes_on_bit_for_bit_from_a_saved_state(build, name):
    """Ten updates after a save equal ten after a load into an algorithm that began elsewhere."""
    env = toy(name, num_envs=8)
    first, second = build(env, seed=0), build(env, seed=1)
    for batch in batches(env, first, 2, steps=4):
        first.learn(batch)
    skeleton, tensors = flatten(first.state_dict())
    second.load_state_dict(unflatten(skeleton, load(save(tensors))))
    kept = [batch.clone() for batch in batches(env, first, 10, steps=4)]
    for batch in kept:
        one, other = first.learn(batch.clone()), second.learn(batch.clone())
        assert {key: value.item() for key, value in one.items()} == {
            key: value.item() for key, value in other.items()
        }
    pairs = zip(flatten(first.state_dict())[1].items(), flatten(second.state_dict())[1].items(), strict=True)
    assert all(one == other and torch.equal(left, right) for (one, left), (other, right) in pairs)


@every_algorithm
def test_a_load_that_forgets_the_optimiser_would_show(build):
    """The planted fault of the test above."""
    env = toy("marked", num_envs=8)
    first, second = build(env, seed=0), build(env, seed=1)
    for batch in batches(env, first, 2, steps=4):
        first.learn(batch)
    state = first.state_dict()
    second.load_state_dict(state | {"optimizer": {}})
    batch = next(batches(env, first, 1, steps=4))
    first.learn(batch.clone())
    second.learn(batch.clone())
    pairs = zip(first.policy.parameters(), second.policy.parameters(), strict=True)
    assert not all(torch.equal(one, other) for one, other in pairs)


@every_algorithm
def test_one_allowed_action_is_no_trouble(build):
    """Nothing to decide: the probability is one, its gradient zero, and every number finite."""
    env = toy("marked")
    algorithm = build(env)
    rollout = Rollout(env, algorithm.policy, steps=4)
    spawn = env.spawn

    def only_the_marked(count):
        state = spawn(count)
        allowed = torch.zeros_like(state["allowed"]).scatter(-1, state["marked"].unsqueeze(-1), True)
        return {**state, "allowed": allowed}

    env.spawn = only_the_marked
    for _ in range(3):
        batch = rollout.collect()
        assert mean_reward(batch) == 1.0
        metrics = algorithm.learn(batch)
        assert all(value.isfinite() for value in metrics.values())
    assert all(parameter.isfinite().all() for parameter in algorithm.policy.parameters())
