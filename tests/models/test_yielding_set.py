"""Sets whose nodes give way: against the tree of all answers, walked one by one."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.envs.registry import make_env
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.models.yielding_set import YieldingSet

graphs = st.tuples(st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.integers(0, 1000))


def random_arguments(nodes, density, seed):
    generator = torch.Generator().manual_seed(seed)
    adjacent = torch.rand(nodes, nodes, generator=generator) < density
    adjacent.fill_diagonal_(False)
    return {
        "logits": torch.randn(nodes, generator=generator, dtype=torch.float64),
        "allowed": torch.rand(nodes, generator=generator) < 0.8,
        "adjacent": adjacent | adjacent.T,
        "yields": torch.randn(nodes, generator=generator, dtype=torch.float64),
        "rank": torch.randint(3, (nodes,), generator=generator).double(),
    }


def walked(logits, allowed, *, adjacent, yields, rank):
    """Probability of every set that can come about, by asking node after node in plain Python."""
    nodes = range(len(logits))
    order = sorted(nodes, key=lambda i: (-float(rank[i]), i))
    beside = [{j for j in nodes if adjacent[i, j]} for i in nodes]
    found = {frozenset(): 1.0}
    for place, node in enumerate(order):
        after = {}
        for chosen, chance in found.items():
            if not allowed[node] or beside[node] & chosen:
                after[chosen] = after.get(chosen, 0.0) + chance
                continue
            later = [j for j in order[place + 1 :] if j in beside[node] and allowed[j]]
            rivals = [j for j in later if not beside[j] & chosen]
            odds = float(logits[node]) - sum(float(yields[j]) for j in rivals)
            joins = 1 / (1 + math.exp(-odds)) if rivals else 1.0
            for answer, share in ((chosen | {node}, joins), (chosen, 1 - joins)):
                after[answer] = after.get(answer, 0.0) + chance * share
        found = after
    return found


def every_set(nodes):
    return torch.tensor(list(product([False, True], repeat=nodes))).view(-1, nodes)


def members(row):
    return frozenset(row.nonzero().flatten().tolist())


@given(graphs)
def test_every_set_has_the_probability_of_its_answers(size):
    arguments = random_arguments(*size)
    expected, rows = walked(**arguments), every_set(size[0])
    exact = torch.tensor([expected.get(members(row), 0.0) for row in rows], dtype=torch.float64)
    torch.testing.assert_close(YieldingSet(**arguments).log_prob(rows).exp(), exact)


@given(graphs)
def test_every_maximal_set_can_be_drawn(size):
    arguments = random_arguments(*size)
    dist, allowed, adjacent = YieldingSet(**arguments), arguments["allowed"], arguments["adjacent"]
    for row in every_set(size[0]):
        independent = not (row.unsqueeze(-1) & row & adjacent).any()
        maximal = (row | ~allowed | (adjacent & row).any(-1)).all()
        if independent and maximal and not (row & ~allowed).any():
            assert dist.log_prob(row) > -100


def test_draws_have_their_probabilities():
    arguments = random_arguments(5, 0.4, 8)
    dist, rows = YieldingSet(**arguments), every_set(5)
    share = (dist.sample((20_000,)).unsqueeze(1) == rows).all(-1).double().mean(0)
    assert (share > 0.05).sum() > 2
    torch.testing.assert_close(share, dist.log_prob(rows).exp(), rtol=0, atol=0.015)


def test_a_middle_node_gives_way_while_both_ends_are_open():
    adjacent = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).bool()
    rank, ones = torch.tensor([0.0, 1.0, 0.0]), torch.ones(3)
    both = YieldingSet(1.5 * ones, ones.bool(), adjacent=adjacent, yields=ones, rank=rank)
    assert both.mode.tolist() == [True, False, True]
    one_end = torch.tensor([True, True, False])
    alone = YieldingSet(1.5 * ones, one_end, adjacent=adjacent, yields=ones, rank=rank)
    assert alone.mode.tolist() == [False, True, False]


def test_entropy_and_its_gradient_are_right_on_average():
    arguments = random_arguments(4, 0.6, 1)
    leaves = [arguments[name].requires_grad_() for name in ("logits", "yields")]
    dist = YieldingSet(**arguments, entropy_samples=20_000)
    scores = dist.log_prob(every_set(4))
    scores = scores[scores > -100]
    exact = -(scores.exp() * scores).sum()
    assert exact > 0.3
    gradients = torch.autograd.grad(exact, leaves, retain_graph=True)
    estimate = dist.entropy()
    torch.testing.assert_close(estimate, exact, rtol=0.01, atol=0)
    for found, wanted in zip(torch.autograd.grad(estimate, leaves), gradients, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0.01)


@given(graphs, st.randoms())
def test_another_numbering_of_distinct_ranks_gives_the_same_sets(size, random):
    arguments = random_arguments(*size)
    arguments["rank"] = torch.tensor(random.sample(range(size[0]), size[0])).double()
    shuffle = torch.tensor(random.sample(range(size[0]), size[0]))
    moved = {
        name: value[shuffle][:, shuffle] if name == "adjacent" else value[shuffle]
        for name, value in arguments.items()
    }
    rows = every_set(size[0])
    torch.testing.assert_close(
        YieldingSet(**moved).log_prob(rows[:, shuffle]), YieldingSet(**arguments).log_prob(rows)
    )


def test_batch_equals_singles_and_what_is_absent_holds_anything():
    generator = torch.Generator().manual_seed(0)
    allowed = torch.rand(3, 2, 5, generator=generator) < 0.7
    adjacent = torch.rand(3, 2, 5, 5, generator=generator) < 0.4
    numbers = torch.randn(3, 3, 2, 5, generator=generator).masked_fill(~allowed, torch.nan)
    names = ("logits", "yields", "rank")
    batch = YieldingSet(allowed=allowed, adjacent=adjacent, **dict(zip(names, numbers, strict=True)))
    action = batch.sample()
    assert batch.log_prob(action).isfinite().all()
    assert batch.entropy().isfinite().all()
    for place in product(range(3), range(2)):
        arguments = {name: value[place] for name, value in zip(names, numbers, strict=True)}
        single = YieldingSet(allowed=allowed[place], adjacent=adjacent[place], **arguments)
        torch.testing.assert_close(batch.log_prob(action)[place], single.log_prob(action[place]))
        assert torch.equal(batch.mode[place], single.mode)


def test_an_order_without_yielding_is_refused():
    with pytest.raises(ValidationError, match="asked_by"):
        ModelConfig(asked_by=2)


SMALL = ModelConfig(
    encoder=EncoderConfig(hidden=16, layers=2, heads=2), policy_gain=1.0, yielding=True, asked_by=2
)


def test_an_actor_of_such_sets_never_conflicts_and_learns_from_its_own_probabilities():
    env = make_env("queueing", graphs=("line3", "ring5", "star4"), num_envs=16, seed=0, initial_queue=3)
    torch.manual_seed(0)
    algorithm = PPO(make_actor_critic(env.graph, env.actions, SMALL), PPOConfig(minibatch_size=64))
    rollout = Rollout(env, algorithm.policy, steps=12)
    for _ in range(2):
        batch = rollout.collect()
        assert not (batch["action"] & ~batch["action_mask"]).any()
        metrics = algorithm.learn(batch)
        assert metrics["ratio_start"] == 1.0
        assert metrics["ratio_first"] == pytest.approx(1.0, abs=1e-4)
    rooted = Rollout(env, algorithm.policy, steps=12, keep_state=True).collect()
    assert torch.equal(rooted["next", "state", "scheduled"], rooted["action"])


def test_the_same_weights_serve_larger_graphs():
    small = make_env("queueing", graphs=("line3",), num_envs=2, seed=0)
    large = make_env("queueing", graphs=("grid4x5",), num_envs=2, seed=0, initial_queue=3)
    actor = make_actor_critic(small.graph, small.actions, SMALL).actor
    with actor.on(large.graph):
        root = actor(large.reset())
    assert root["action"].shape == (2, 20)
    assert root["action"].any(-1).all()


def test_an_order_by_a_feature_that_is_not_there_is_refused():
    env = make_env("queueing", graphs=("line3",), num_envs=2, seed=0)
    config = ModelConfig(yielding=True, asked_by=5)
    with pytest.raises(ValueError, match="5 features"):
        make_actor_critic(env.graph, env.actions, config)
