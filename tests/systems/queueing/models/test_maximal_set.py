"""Maximal sets weighed as a whole: against the list of all sets, made by brute force."""

from itertools import product
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.models.worlds import explicit_spec

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.config.errors import ConfigError
from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig
from edgewise.systems.queueing.actions import ChooseIndependentSet
from edgewise.systems.queueing.baselines import MaxWeight
from edgewise.systems.queueing.models.config import SetModelConfig
from edgewise.systems.queueing.models.maximal_set import MaximalSet, SetLists
from edgewise.systems.queueing.sets.listing import maximal_sets

WHOLE = SetModelConfig(encoder=EncoderConfig(hidden=8, layers=1), policy_gain=1.0, sets="whole")
graphs = st.tuples(st.integers(1, 6), st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.integers(0, 1000))


def random_case(nodes, density, seed):
    """A graph, logits and who is allowed."""
    generator = torch.Generator().manual_seed(seed)
    adjacent = torch.rand(nodes, nodes, generator=generator).triu(1) > 1 - density
    logits = torch.randn(nodes, generator=generator, dtype=torch.float64)
    return adjacent | adjacent.T, logits, torch.rand(nodes, generator=generator) < 0.7


def lists_of(adjacency):
    return SetLists(adjacency, [maximal_sets(each) for each in adjacency])


def distribution(adjacent, logits, allowed):
    return MaximalSet(logits, allowed, lists=lists_of(adjacent.unsqueeze(0)), graph=torch.tensor(0))


def every_set(nodes):
    return torch.tensor(list(product([False, True], repeat=nodes))).view(-1, nodes)


def probabilities(adjacent, logits, allowed):
    """Of every set of nodes, by the definition."""
    weights = []
    for row in every_set(len(allowed)):
        beside = (adjacent & row).any(-1)
        legal = not (row & (beside | ~allowed)).any() and (row | beside | ~allowed).all()
        weights.append(float(logits[row].sum().exp()) if legal else 0.0)
    return torch.tensor(weights, dtype=torch.float64) / sum(weights)


@given(graphs)
def test_every_set_has_the_probability_of_its_weight(size):
    case = random_case(*size)
    dist, exact = distribution(*case), probabilities(*case)
    torch.testing.assert_close(dist.log_prob(every_set(size[0])).exp(), exact)
    torch.testing.assert_close(dist.entropy(), -torch.special.xlogy(exact, exact).sum())
    assert dist.log_prob(dist.mode).exp() == pytest.approx(float(exact.max()))


def test_draws_have_their_probabilities():
    case = random_case(6, 0.5, 24)
    exact, draws = probabilities(*case), distribution(*case).sample((20_000,))
    share = (draws.unsqueeze(1) == every_set(6)).all(-1).double().mean(0)
    assert (exact > 0.05).sum() > 3
    torch.testing.assert_close(share, exact, rtol=0, atol=0.015)


@given(graphs, st.randoms())
def test_another_numbering_gives_the_same_sets(size, random):
    """Though who fills a set up goes by slot: that must not show."""
    adjacent, logits, allowed = random_case(*size)
    shuffle = torch.tensor(random.sample(range(size[0]), size[0]))
    moved = distribution(adjacent[shuffle][:, shuffle], logits[shuffle], allowed[shuffle])
    rows = every_set(size[0])
    torch.testing.assert_close(
        moved.log_prob(rows[:, shuffle]), distribution(adjacent, logits, allowed).log_prob(rows)
    )


def test_batch_equals_singles_and_what_is_absent_holds_anything():
    cases = [random_case(5, density, seed) for seed, density in enumerate((0.0, 0.2, 0.4, 0.6, 0.8, 1.0))]
    adjacent, logits, allowed = (torch.stack(each) for each in zip(*cases, strict=True))
    logits = logits.masked_fill(~allowed, torch.nan)
    batch = MaximalSet(
        logits.view(3, 2, 5),
        allowed.view(3, 2, 5),
        lists=lists_of(adjacent),
        graph=torch.arange(6).view(3, 2),
    )
    action = batch.sample()
    assert batch.log_prob(action).isfinite().all()
    for number, place in enumerate(product(range(3), range(2))):
        single = distribution(adjacent[number], logits[number], allowed[number])
        torch.testing.assert_close(batch.log_prob(action)[place], single.log_prob(action[place]))
        assert torch.equal(batch.mode[place], single.mode)


@pytest.mark.parametrize("leaves", [61, 62, 130])
def test_graphs_beyond_one_word(leaves):
    """A star: its middle or all its leaves."""
    adjacent = torch.zeros(leaves + 1, leaves + 1, dtype=torch.bool)
    adjacent[0, 1:] = adjacent[1:, 0] = True
    allowed = torch.arange(leaves + 1) != leaves
    logits = torch.where(torch.arange(leaves + 1) == 0, 2.0, 1.0 / leaves)
    dist = distribution(adjacent, logits, allowed)
    middle = torch.arange(leaves + 1) == 0
    torch.testing.assert_close(dist.log_prob(middle), torch.tensor([2.0, 1 - 1 / leaves]).log_softmax(-1)[0])
    assert torch.equal(dist.mode, middle)
    torch.testing.assert_close(
        dist.log_prob(middle).exp() + dist.log_prob(allowed & ~middle).exp(), torch.tensor(1.0)
    )


def test_where_nothing_is_allowed_the_empty_set_is_certain():
    adjacent, logits, allowed = random_case(5, 0.5, 0)
    dist = distribution(adjacent, logits, torch.zeros_like(allowed))
    assert not dist.sample((10,)).any()
    assert dist.log_prob(dist.mode) == 0
    assert dist.entropy() == 0


def test_queues_as_logits_are_maxweight():
    env = make_env(
        "queueing", num_envs=256, seed=3, graphs=("line6", "ring7", "geometric8*4"), initial_queue=9
    )
    seen = env.reset()
    queues, adjacency = seen["state", "queues"], env.conflict_graphs.adjacency
    dist = MaximalSet(queues, seen["action_mask"], lists=lists_of(adjacency), graph=seen["graph", "topology"])
    heaviest = MaxWeight(env)(seen.clone())["action"]
    torch.testing.assert_close((dist.mode * queues).sum(-1), (heaviest * queues).sum(-1))
    assert dist.log_prob(heaviest).min() > -100


def test_an_actor_carries_over_to_graphs_with_other_sets():
    small = make_env("queueing", num_envs=16, seed=0, graphs=("line3",))
    large = make_env("queueing", num_envs=16, seed=0, graphs=("ring7", "grid3x3"), initial_queue=5)
    actor = make_actor_critic(small.graph, small.actions, WHOLE).actor
    own = actor.head.tables.words
    with actor.on(large):
        seen = actor(large.reset())
    action, adjacent = seen["action"], large.conflict_graphs.adjacency[seen["graph", "topology"]]
    assert action.any(-1).all()
    assert not (action.unsqueeze(-2) & action.unsqueeze(-1) & adjacent).any()
    assert torch.equal(actor.head.tables.words, own)


def test_an_actor_of_such_sets_never_conflicts_and_learns_from_its_own_probabilities():
    env = make_env("queueing", graphs=("line3", "ring5", "star4"), num_envs=16, seed=0, initial_queue=3)
    torch.manual_seed(0)
    algorithm = PPO(make_actor_critic(env.graph, env.actions, WHOLE), PPOConfig(minibatch_size=64))
    rollout = Rollout(env, algorithm.policy, rollout_length=12)
    for _ in range(2):
        batch = rollout.collect()
        assert not (batch["action"] & ~batch["action_mask"]).any()
        metrics = algorithm.learn(batch)
        assert metrics["ratio_start"] == 1.0
        assert metrics["ratio_first"] == pytest.approx(1.0, abs=1e-4)
    rooted = Rollout(env, algorithm.policy, rollout_length=12, keep_state=True).collect()
    assert torch.equal(rooted["next", "state", "scheduled"], rooted["action"])


def test_graphs_without_topologies_are_refused():
    with pytest.raises(ConfigError, match="needs graphs with Topology edges"):
        make_actor_critic(explicit_spec(), ChooseIndependentSet(), WHOLE)


LISTED = lists_of(random_case(5, 0.5, 0)[0].unsqueeze(0))


def test_sets_are_drawn_on_another_device(fake_device):
    """Listing is the host's work, done once; after it nothing waits for a value."""
    tables = {
        name: torch.zeros(table.shape, dtype=table.dtype, device=fake_device)
        for name, table in LISTED.named_buffers()
    }
    logits = torch.zeros(3, 5, device=fake_device, requires_grad=True)
    allowed = torch.ones(3, 5, dtype=torch.bool, device=fake_device)
    graph = torch.zeros(3, dtype=torch.int64, device=fake_device)
    dist = MaximalSet(logits, allowed, lists=SimpleNamespace(**tables), graph=graph)
    found = (dist.sample(), dist.mode, dist.log_prob(dist.mode), dist.entropy())
    assert {value.device for value in found} == {fake_device}
    (dist.log_prob(dist.mode) + dist.entropy()).sum().backward()
    assert logits.grad.device == fake_device
