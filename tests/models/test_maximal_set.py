"""Maximal sets weighed as a whole: against the list of all sets, made by brute force."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.models.worlds import explicit_spec

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.config.errors import ConfigError
from edgewise.data.rollout import Rollout
from edgewise.envs.queueing.baselines import MaxWeight
from edgewise.envs.registry import make_env
from edgewise.graphs.actions import ChooseIndependentSet
from edgewise.graphs.independent_sets import maximal_sets
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.models.maximal_set import MaximalSet

WHOLE = ModelConfig(encoder=EncoderConfig(hidden=8, layers=1), policy_gain=1.0, sets="whole")
graphs = st.tuples(st.integers(1, 6), st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.integers(0, 1000))


def random_arguments(nodes, density, seed):
    generator = torch.Generator().manual_seed(seed)
    adjacent = torch.rand(nodes, nodes, generator=generator).triu(1) > 1 - density
    adjacent = adjacent | adjacent.T
    return {
        "logits": torch.randn(nodes, generator=generator, dtype=torch.float64),
        "allowed": torch.rand(nodes, generator=generator) < 0.7,
        "adjacent": adjacent,
        **listing(adjacent),
    }


def listing(adjacent, places=0):
    """All maximal sets of the graph, in so many places or more."""
    sets = maximal_sets(adjacent)
    empty = max(places - len(sets), 0)
    return {
        "sets": torch.nn.functional.pad(sets, (0, 0, 0, empty)),
        "listed": torch.arange(len(sets) + empty) < len(sets),
    }


def every_set(nodes):
    return torch.tensor(list(product([False, True], repeat=nodes))).view(-1, nodes)


def probabilities(arguments):
    """Of every set of nodes, by the definition."""
    allowed, adjacent, logits = (arguments[name] for name in ("allowed", "adjacent", "logits"))
    weights = []
    for row in every_set(len(allowed)):
        beside = (adjacent & row).any(-1)
        legal = not (row & (beside | ~allowed)).any() and (row | beside | ~allowed).all()
        weights.append(float(logits[row].sum().exp()) if legal else 0.0)
    return torch.tensor(weights, dtype=torch.float64) / sum(weights)


@given(graphs)
def test_every_set_has_the_probability_of_its_weight(size):
    arguments = random_arguments(*size)
    dist, exact = MaximalSet(**arguments), probabilities(arguments)
    torch.testing.assert_close(dist.log_prob(every_set(size[0])).exp(), exact)
    torch.testing.assert_close(dist.entropy(), -torch.special.xlogy(exact, exact).sum())
    assert dist.log_prob(dist.mode).exp() == pytest.approx(float(exact.max()))


def test_draws_have_their_probabilities():
    arguments = random_arguments(6, 0.5, 8)
    exact, draws = probabilities(arguments), MaximalSet(**arguments).sample((20_000,))
    share = (draws.unsqueeze(1) == every_set(6)).all(-1).double().mean(0)
    assert (exact > 0.05).sum() > 2
    torch.testing.assert_close(share, exact, rtol=0, atol=0.015)


@given(graphs, st.randoms())
def test_another_numbering_gives_the_same_sets(size, random):
    """Though who fills a set up goes by slot: that must not show."""
    arguments = random_arguments(*size)
    shuffle = torch.tensor(random.sample(range(size[0]), size[0]))
    adjacent = arguments["adjacent"][shuffle][:, shuffle]
    moved = {name: arguments[name][shuffle] for name in ("logits", "allowed")}
    rows = every_set(size[0])
    torch.testing.assert_close(
        MaximalSet(**moved, adjacent=adjacent, **listing(adjacent)).log_prob(rows[:, shuffle]),
        MaximalSet(**arguments).log_prob(rows),
    )


def test_batch_equals_singles_and_what_is_absent_holds_anything():
    rows = [random_arguments(5, 0.4, seed) for seed in range(6)]
    places = max(len(row["listed"]) for row in rows)
    rows = [row | listing(row["adjacent"], places) for row in rows]
    rows = [row | {"logits": row["logits"].masked_fill(~row["allowed"], torch.nan)} for row in rows]
    batch = MaximalSet(
        **{
            name: torch.stack([row[name] for row in rows]).view(3, 2, *rows[0][name].shape)
            for name in rows[0]
        }
    )
    action = batch.sample()
    assert batch.log_prob(action).isfinite().all()
    for number, place in enumerate(product(range(3), range(2))):
        single = MaximalSet(**rows[number])
        torch.testing.assert_close(batch.log_prob(action)[place], single.log_prob(action[place]))
        assert torch.equal(batch.mode[place], single.mode)


def test_where_nothing_is_allowed_the_empty_set_is_certain():
    arguments = random_arguments(5, 0.5, 0) | {"allowed": torch.zeros(5, dtype=torch.bool)}
    dist = MaximalSet(**arguments)
    assert not dist.sample((10,)).any()
    assert dist.log_prob(dist.mode) == 0
    assert dist.entropy() == 0


def test_queues_as_logits_are_maxweight():
    env = make_env(
        "queueing", num_envs=256, seed=3, graphs=("line6", "ring7", "geometric8*4"), initial_queue=9
    )
    seen = env.reset()
    queues, number = seen["state", "queues"], seen["graph", "topology"]
    actor = make_actor_critic(env.graph, env.actions, WHOLE).actor
    head = actor.head
    dist = MaximalSet(
        queues,
        seen["action_mask"],
        adjacent=head.adjacent[number],
        sets=head.sets[number],
        listed=head.listed[number],
    )
    heaviest = MaxWeight(env)(seen.clone())["action"]
    torch.testing.assert_close((dist.mode * queues).sum(-1), (heaviest * queues).sum(-1))
    assert dist.log_prob(heaviest).min() > -100


def test_an_actor_carries_over_to_graphs_with_other_sets():
    small = make_env("queueing", num_envs=16, seed=0, graphs=("line3",))
    large = make_env("queueing", num_envs=16, seed=0, graphs=("ring7", "grid3x3"), initial_queue=5)
    actor = make_actor_critic(small.graph, small.actions, WHOLE).actor
    own = actor.head.sets
    with actor.on(large.graph):
        seen = actor(large.reset())
    action, adjacent = seen["action"], large.conflict_graphs.adjacency[seen["graph", "topology"]]
    assert action.any(-1).all()
    assert not (action.unsqueeze(-2) & action.unsqueeze(-1) & adjacent).any()
    assert torch.equal(actor.head.sets, own)


def test_an_actor_of_such_sets_never_conflicts_and_learns_from_its_own_probabilities():
    env = make_env("queueing", graphs=("line3", "ring5", "star4"), num_envs=16, seed=0, initial_queue=3)
    torch.manual_seed(0)
    algorithm = PPO(make_actor_critic(env.graph, env.actions, WHOLE), PPOConfig(minibatch_size=64))
    rollout = Rollout(env, algorithm.policy, steps=12)
    for _ in range(2):
        batch = rollout.collect()
        assert not (batch["action"] & ~batch["action_mask"]).any()
        metrics = algorithm.learn(batch)
        assert metrics["ratio_start"] == 1.0
        assert metrics["ratio_first"] == pytest.approx(1.0, abs=1e-4)
    rooted = Rollout(env, algorithm.policy, steps=12, keep_state=True).collect()
    assert torch.equal(rooted["next", "state", "scheduled"], rooted["action"])


def test_graphs_that_cannot_be_listed_are_refused():
    with pytest.raises(ConfigError, match="bank of topologies"):
        make_actor_critic(explicit_spec(), ChooseIndependentSet(), WHOLE)
    env = make_env("queueing", num_envs=1, graphs=("line40",))
    with pytest.raises(ConfigError, match="more than 20000 maximal sets"):
        make_actor_critic(env.graph, env.actions, WHOLE)
