"""Sets without lists: diagrams against lists, sequential sampling against all sets of a small graph."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.envs.registry import make_env
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig
from edgewise.systems.queueing.graphs import conflict_graphs
from edgewise.systems.queueing.models.config import SetModelConfig
from edgewise.systems.queueing.models.decoding import best_maximal_set
from edgewise.systems.queueing.models.diagram_set import SetDiagrams
from edgewise.systems.queueing.models.maximal_set import SetLists
from edgewise.systems.queueing.models.sequential_set import SequentialSet, SetGraphs
from edgewise.systems.queueing.models.set_tables import set_tables
from edgewise.systems.queueing.sets.diagram import set_diagram
from edgewise.systems.queueing.sets.diagram_batch import DiagramBatch
from edgewise.systems.queueing.sets.heaviest import heaviest_maximal_set

cases = st.tuples(st.integers(1, 8), st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.integers(0, 1000))


def random_case(nodes, density, seed, graphs=2, worlds=4):
    """Graphs, logits, who is allowed, and the graph of each world."""
    generator = torch.Generator().manual_seed(seed)
    adjacent = torch.rand(graphs, nodes, nodes, generator=generator).triu(1) > 1 - density
    logits = 2 * torch.randn(worlds, nodes, generator=generator, dtype=torch.float64)
    allowed = torch.rand(worlds, nodes, generator=generator) < 0.7
    graph = torch.randint(graphs, (worlds,), generator=generator)
    return adjacent | adjacent.transpose(-1, -2), logits, allowed, graph


def every_set(nodes):
    return torch.tensor(list(product([False, True], repeat=nodes))).view(-1, nodes)


@given(cases)
def test_a_diagram_gives_the_distribution_of_the_list(size):
    """Probabilities of every set, entropies, modes, and gradients of both."""
    adjacency, logits, allowed, graph = random_case(*size)
    found = []
    for tables in (set_tables(adjacency), set_tables(adjacency, max_sets=0)):
        leaf = logits.clone().requires_grad_()
        dist = tables.distribution(leaf, allowed, graph=graph)
        rows = every_set(size[0]).unsqueeze(1).expand(-1, len(graph), -1)
        log_probs = torch.stack([dist.log_prob(row) for row in rows])
        chosen = torch.where(log_probs > -1e30, log_probs, 0.0)
        weights = torch.linspace(0.5, 1.5, log_probs.numel(), dtype=torch.float64).view_as(log_probs)
        ((chosen * weights).sum() + dist.entropy().sum()).backward()
        found.append((log_probs.detach(), dist.entropy().detach(), dist.mode, leaf.grad))
    listed, drawn = found
    assert isinstance(set_tables(adjacency), SetLists)
    for one, other in zip(listed, drawn, strict=True):
        torch.testing.assert_close(one, other)


def test_where_no_set_goes_on_is_the_same_row_for_graphs_of_every_width():
    """A line has fewer states than a ladder; where it ends, no state of the ladder begins."""
    line = torch.zeros(8, 8, dtype=torch.bool)
    line[range(7), range(1, 8)] = True
    ladder = line.clone()
    ladder[range(6), range(2, 8)] = True
    both = [set_diagram(each | each.T) for each in (line, ladder)]
    batch = DiagramBatch(both)
    for number in range(7):
        widths = [len(each.layers[number + 1]) for each in both]
        states = torch.arange(max(widths) + 1).unsqueeze(-1).expand(-1, 2)
        after = batch.after(states, number, torch.tensor([0, 1]))
        for world, (diagram, none) in enumerate(zip(both, widths, strict=True)):
            table = torch.from_numpy(diagram.layers[number])
            expected = torch.where(table == none, max(widths), table).T
            assert torch.equal(after[:, : len(table), world], expected)
    assert both[0].width < both[1].width


def test_samples_of_a_diagram_have_their_probabilities():
    adjacency, logits, allowed, graph = random_case(6, 0.4, 24, graphs=1, worlds=1)
    dist = set_tables(adjacency, max_sets=0).distribution(logits / 4, allowed, graph=graph)
    exact = torch.stack([dist.log_prob(row.unsqueeze(0)) for row in every_set(6)]).exp()[:, 0]
    draws = dist.sample((5_000,), generator=torch.Generator().manual_seed(0))[:, 0]
    share = (draws.unsqueeze(1) == every_set(6)).all(-1).double().mean(0)
    assert (exact > 0.05).sum() > 1
    torch.testing.assert_close(share, exact, rtol=0, atol=0.025)


def test_marginals_of_a_long_line_by_transfer_matrices():
    """The log-partition of 100 equal nodes in a line, by hand: maximal sets have gaps of one or two."""
    line = conflict_graphs(("line100",)).adjacency
    logit = torch.full((1, 100), 0.3, dtype=torch.float64, requires_grad=True)
    tables = set_tables(line)
    assert isinstance(tables, SetDiagrams)
    dist = tables.distribution(logit, torch.ones(1, 100, dtype=torch.bool), graph=torch.tensor([0]))
    weight = torch.tensor(0.3, dtype=torch.float64).exp()
    last = [0.0 * weight, weight, weight]
    for _ in range(98):
        last.append(weight * (last[-2] + last[-3]))
    assert dist.log_partition.item() == pytest.approx(float((last[-1] + last[-2]).log()), rel=1e-10)
    dist.log_partition.sum().backward()
    expected = (dist.sample((2000,), torch.Generator().manual_seed(0)).double().mean(0) - logit.grad).abs()
    assert expected.max() < 0.06
    assert dist.entropy().item() == pytest.approx(float(dist.log_partition - (0.3 * logit.grad).sum()))


@pytest.mark.parametrize(("name", "width"), [("line100", 3), ("ring60", 9), ("star20", 3), ("grid6x6", 96)])
def test_narrow_graphs_have_few_states(name, width):
    assert set_diagram(conflict_graphs((name,)).adjacency[0]).width <= width


def test_a_wide_graph_has_no_diagram():
    adjacency = conflict_graphs(("grid6x6",)).adjacency
    assert set_diagram(adjacency[0], limit=50) is None
    assert isinstance(set_tables(adjacency, max_states=50), SetGraphs)
    assert isinstance(set_tables(adjacency), SetDiagrams)


@given(cases)
def test_the_heaviest_maximal_set_is_the_mode_of_the_list(size):
    adjacency, logits, allowed, graph = random_case(*size, worlds=1)
    mode = set_tables(adjacency).distribution(logits, allowed, graph=graph).mode[0]
    assert torch.equal(heaviest_maximal_set(adjacency[graph[0]], logits[0], allowed[0]), mode)


@pytest.mark.parametrize("name", ["line100", "ring30", "grid4x5", "barabasi20", "star20"])
def test_an_exported_policy_decodes_the_heaviest_set(name):
    """With numpy alone, from edges in both directions, of which some are absent."""
    graph = conflict_graphs((name,)).graphs[0]
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(1, graph.num_nodes, generator=generator)
    allowed = torch.rand(1, graph.num_nodes, generator=generator) < 0.8
    index = torch.tensor([*graph.pairs, (0, 0)]).T.unsqueeze(0)
    exists = torch.arange(index.shape[-1]).unsqueeze(0) < len(graph.pairs)
    inputs = {"node_mask": allowed, "edge_index": index, "edge_mask": exists}
    arrays = {key: value.numpy() for key, value in inputs.items()}
    found = best_maximal_set(arrays, {"logits": logits.numpy()})
    expected = heaviest_maximal_set(graph.adjacency, logits[0], allowed[0])
    assert torch.equal(torch.from_numpy(found[0]), expected)


def sequential(size):
    adjacency, logits, allowed, graph = random_case(*size, worlds=1)
    leaf = logits[0].clone().requires_grad_()
    return (
        leaf,
        SequentialSet(leaf, allowed[0], adjacent=adjacency[graph[0]]),
        adjacency[graph[0]],
        allowed[0],
    )


@given(cases)
def test_sequential_sets_sum_to_one_and_include_every_maximal_set(size):
    _, dist, adjacent, allowed = sequential(size)
    rows = every_set(size[0])
    log_probs = torch.stack([dist.log_prob(row) for row in rows]).detach()
    assert log_probs.exp().sum().item() == pytest.approx(1.0)
    for row, log_prob in zip(rows, log_probs, strict=True):
        beside = (adjacent & row).any(-1)
        independent = not (row & (beside | ~allowed)).any()
        assert independent or log_prob < -1e30
        if independent and (row | beside | ~allowed).all():
            assert log_prob > -1e30


def test_gradients_of_sequential_sets_are_those_of_the_enumeration():
    """Score-function estimates of a reward's gradient and of the entropy's, against sums over all sets."""
    leaf, dist, *_ = sequential((6, 0.5, 5))
    rows = every_set(6)
    reward = torch.linspace(-1, 1, len(rows), dtype=torch.float64)[torch.randperm(len(rows))]
    log_probs = torch.stack([dist.log_prob(row) for row in rows])
    exact = (log_probs.exp() * reward).sum()
    entropy = -torch.where(log_probs > -1e30, log_probs.exp() * log_probs, 0.0).sum()
    wanted = [torch.autograd.grad(value, leaf, retain_graph=True)[0] for value in (exact, entropy)]
    draws = dist.sample((20_000,), torch.Generator().manual_seed(0))
    place = (draws.long() * 2 ** torch.arange(5, -1, -1)).sum(-1)
    many = SequentialSet(leaf, dist.allowed, adjacent=dist.adjacent, entropy_samples=20_000)
    found = [(log_probs[place] * (reward[place] - exact.detach())).mean(), many.entropy()]
    assert many.entropy().item() == pytest.approx(entropy.item(), abs=0.02)
    for value, gradient in zip(found, wanted, strict=True):
        torch.testing.assert_close(
            torch.autograd.grad(value, leaf, retain_graph=True)[0], gradient, rtol=0, atol=0.02
        )


def test_an_actor_of_small_graphs_schedules_large_ones_and_begins_as_maxweight():
    """With a small gain, the mode is that of the prior: queue times channel."""
    config = SetModelConfig(
        encoder=EncoderConfig(hidden=8, layers=1), policy_gain=1e-6, sets="whole", prior=1.0
    )
    small = make_env("queueing", num_envs=2, seed=0, graphs=("line3",), prior="weight")
    large = make_env(
        "queueing", num_envs=4, seed=0, graphs=("line100", "ring60"), initial_queue=9, prior="weight"
    )
    actor = make_actor_critic(small.graph, small.actions, config).actor
    with actor.on(large), torch.no_grad():
        seen = large.reset()
        dist = actor.get_dist(seen)
        sampled = dist.sample()
    queues, adjacent = seen["state", "queues"], large.conflict_graphs.adjacency[seen["graph", "topology"]]
    for world in range(4):
        best = heaviest_maximal_set(adjacent[world], queues[world], seen["action_mask"][world])
        assert (queues[world] * dist.mode[world]).sum() == (queues[world] * best).sum()
    assert not (sampled.unsqueeze(-2) & sampled.unsqueeze(-1) & adjacent).any()


TABLES = set_tables(random_case(5, 0.5, 0)[0], max_sets=0)


def test_diagrams_on_another_device(fake_device):
    tables = TABLES
    for module in tables.modules():
        for name, table in list(module.named_buffers(recurse=False)):
            empty = torch.zeros(table.shape, dtype=table.dtype, device=fake_device)
            module.register_buffer(name, empty)
    logits = torch.zeros(3, 5, device=fake_device, requires_grad=True)
    allowed = torch.ones(3, 5, dtype=torch.bool, device=fake_device)
    dist = tables.distribution(logits, allowed, graph=torch.zeros(3, dtype=torch.int64, device=fake_device))
    found = (dist.sample(), dist.mode, dist.log_prob(dist.mode), dist.entropy())
    assert {value.device for value in found} == {fake_device}
    (dist.log_prob(dist.mode) + dist.entropy()).sum().backward()
    assert logits.grad.device == fake_device
