"""What every algorithm owes: it solves a toy, goes on bit for bit, and never does what is forbidden."""

import pytest
import torch
from safetensors.torch import load, save
from tests.algorithms.experts import imitator
from tests.algorithms.sea import AGENTS, SEA_OF, agent, sea
from tests.algorithms.worlds import TOYS, analytic, batches, episodic, evolving, learner, mean_reward, toy

from edgewise.algorithms.registry import ALGORITHMS
from edgewise.data.rollout import Rollout
from edgewise.runs.checkpoint.serialise import flatten, unflatten

BUILDERS = {
    "ppo": learner,
    "clone": imitator,
    "reinforce": episodic,
    "apg": analytic,
    "evolution": evolving,
}
"""Name of an algorithm → how to build it for a toy: `build(env, seed=…)`."""

PLAYERS = ("expert_iteration",)
"""Algorithms for games of two players alone, with a toy game of their own."""

ENOUGH = {"marked": 0.95, "signals": 0.95, "dials": 0.7, "buoys": 0.8, "rudders": 0.55}
"""Mean reward at which a toy counts as solved; chance earns about 0.6, 0.5, -0.1, 0.25 and -0.1.

At sea a share of 0.15 is done at random throughout, of what can be earned at most 0.89 and 0.7 is left.
"""

SEEDS = {"ppo": range(3), "clone": range(3)}
"""On how many seeds an algorithm is tried, the first of them by default; the others on one."""

BATCHES = {"clone": 4, "evolution": 24, "dqn": 4, "rainbow": 4, "sac": 4, "iqn": 6, "ddpg": 6, "ac-iqn": 6}
"""How many batches an algorithm learns from; the others from 8."""

RESUMED = {"reinforce": 10}
"""Batches that make ten updates or more after a save; the others make as many from 3."""

TOYS_OF = {"apg": ("dials",), "evolution": ("marked", "signals")}
"""Toys of an algorithm that cannot learn all of them, or that does not learn from what others collect."""

PLAYED = [
    *((algorithm, name) for algorithm in BUILDERS for name in TOYS_OF.get(algorithm, TOYS)),
    *SEA_OF.items(),
]
every_algorithm = pytest.mark.parametrize("algorithm", [*BUILDERS, *AGENTS])
every_toy = pytest.mark.parametrize("algorithm, name", PLAYED)
on_seeds = pytest.mark.parametrize(
    "algorithm, name, seed",
    [
        pytest.param(*played, seed, marks=[pytest.mark.thorough] if seed else [])
        for played in PLAYED
        for seed in SEEDS.get(played[0], (0,))
    ],
)


def place(name, **settings):
    """The toy or the sea of this name."""
    return toy(name, **settings) if name in TOYS else sea(name, **settings)


def build(algorithm, env, *, seed=0):
    """An algorithm for an environment."""
    return BUILDERS[algorithm](env, seed=seed) if algorithm in BUILDERS else agent(algorithm, seed=seed)


def test_no_algorithm_is_left_out():
    assert {*BUILDERS, *AGENTS, *PLAYERS} == set(ALGORITHMS)


@on_seeds
def test_it_solves_a_toy(algorithm, name, seed):
    """A forbidden action earns NaN, which no mean survives: what is learnt is learnt without any."""
    env = place(name, seed=seed)
    learner = build(algorithm, env, seed=seed)
    chance = None
    for batch in batches(env, learner, BATCHES.get(algorithm, 8)):
        learner.learn(batch)
        assert batch["next", "reward"].isfinite().all()
        chance = mean_reward(batch) if chance is None else chance
    assert chance < ENOUGH[name]
    assert mean_reward(batch) > ENOUGH[name]


@every_toy
def test_it_goes_on_bit_for_bit_from_a_saved_state(algorithm, name):
    """The updates after a save equal those after a load into an algorithm that began elsewhere."""
    env = place(name, num_envs=8)
    first, second = build(algorithm, env, seed=0), build(algorithm, env, seed=1)
    for batch in batches(env, first, 2, steps=4):
        first.learn(batch)
    skeleton, tensors = flatten(first.state_dict())
    second.load_state_dict(unflatten(skeleton, load(save(tensors))))
    kept = [batch.clone() for batch in batches(env, first, RESUMED.get(algorithm, 3), steps=4)]
    for batch in kept:
        one, other = first.learn(batch.clone()), second.learn(batch.clone())
        assert {key: value.item() for key, value in one.items()} == {
            key: value.item() for key, value in other.items()
        }
    pairs = zip(flatten(first.state_dict())[1].items(), flatten(second.state_dict())[1].items(), strict=True)
    assert all(one == other and torch.equal(left, right) for (one, left), (other, right) in pairs)


@every_algorithm
def test_a_load_that_forgets_the_optimiser_would_show(algorithm):
    """The planted fault of the test above."""
    env = place(next(name for one, name in PLAYED if one == algorithm), num_envs=8)
    first, second = build(algorithm, env, seed=0), build(algorithm, env, seed=1)
    for batch in batches(env, first, 4, steps=4):
        first.learn(batch)
    state = first.state_dict()
    second.load_state_dict(state | {"optimizer": {}})
    batch = next(batches(env, first, 1, steps=4))
    first.learn(batch.clone())
    second.learn(batch.clone())
    pairs = zip(first.policy.parameters(), second.policy.parameters(), strict=True)
    assert not all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("algorithm", sorted(BUILDERS.keys() - TOYS_OF.keys()))
def test_one_allowed_action_is_no_trouble(algorithm):
    """Nothing to decide: the probability is one, its gradient zero, and every number finite."""
    env = toy("marked")
    algorithm = build(algorithm, env)
    rollout = Rollout(env, algorithm.policy, rollout_length=4)
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
