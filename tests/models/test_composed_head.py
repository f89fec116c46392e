"""Composed actions against enumeration and quadrature: probabilities, entropies, samples, masks."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats
from tensordict import TensorDict
from torch.distributions import AffineTransform, Categorical, Normal, TanhTransform, TransformedDistribution

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import Amount, ChooseEdge, ChooseNode, Joint, PerEdge, PerNode, Then
from edgewise.graphs.actions import Category as Option
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.composed_head import ComposedHead
from edgewise.models.config import EncoderConfig, ModelConfig

NODES, EDGES, WIDTH, WORLDS = 3, 4, 8, 3
SPEC = GraphSpec(NODES, 1, Explicit(EDGES, 2))
LAYOUTS = {
    "node and amount": Joint(node=ChooseNode(), amount=Amount(-1, 3)),
    "node, then amount": Then(node=ChooseNode(), amount=Amount(-1, 3)),
    "edge, then amount": Then(edge=ChooseEdge(), amount=Amount(0, 5)),
    "node and edge": Joint(node=ChooseNode(), edge=ChooseEdge()),
    "node, then edge": Then(node=ChooseNode(), edge=ChooseEdge()),
    "node, option, amount": Then(node=ChooseNode(), option=Option(2), amount=Amount()),
    "amount, then node": Then(amount=Amount(), node=ChooseNode()),
    "two in turn beside an option": Joint(first=Then(node=ChooseNode(), amount=Amount()), option=Option(3)),
    "option": Option(3),
    "amount": Amount(2, 3),
    "amount of each node": PerNode(Amount(-2, 2)),
    "amount of each edge": PerEdge(Amount(0, 1)),
    "option of each node": PerNode(Option(2)),
    "option of each edge, then node": Then(each=PerEdge(Option(2)), node=ChooseNode()),
    "node, then option of each node": Then(node=ChooseNode(), each=PerNode(Option(2))),
    "option, then amount of each node": Then(option=Option(2), each=PerNode(Amount())),
}


def make(layout, *, seed=0, gain=2.0):
    torch.manual_seed(seed)
    config = ModelConfig(encoder=EncoderConfig(hidden=WIDTH, heads=2), head_hidden=(8,), policy_gain=gain)
    return ComposedHead(SPEC, config, layout=layout).double()


def observe(layout, *, seed=0, worlds=WORLDS, masks=True):
    """Random graphs with absent nodes and edges, and random masks in which every choice has a legal one."""
    draw = torch.Generator().manual_seed(seed)
    graph = SPEC.zeros(worlds)
    exists = torch.rand(worlds, NODES, generator=draw) < 0.9
    exists[:, 0] = True
    graph["node_mask"] = exists
    graph["edge_index"] = torch.randint(NODES, (worlds, 2, EDGES), generator=draw)
    graph["edge_mask"] = torch.rand(worlds, EDGES, generator=draw) < 0.9
    graph["edge_index"][..., 0] = 0
    graph["edge_mask"][:, 0] = True
    graph["edge_attr"] = torch.randn(worlds, EDGES, 2, generator=draw)
    graph = graph.apply(lambda value: value.double() if value.is_floating_point() else value)
    root = TensorDict({"graph": graph}, [worlds])
    known = {part.name: part for part in layout.parts if part.name}
    found = {}
    for part in layout.parts if masks else ():
        shapes = part.mask_shapes(NODES, EDGES, known.get(part.mask_given))
        if shapes:
            found[part.name] = torch.rand(worlds, *shapes[-1], generator=draw) < 0.7
            found[part.name][..., 0] = True
    if found:
        root["action_mask"] = found[""] if "" in found else TensorDict(found, [worlds])
    return root, torch.randn(worlds, NODES, WIDTH, generator=draw, dtype=torch.float64)


def reference_log_prob(layout, dist, root, action):
    """The same from torch's own distributions, part by part, entity by entity, world by world."""
    total = torch.zeros(WORLDS, dtype=torch.float64)
    values = {}
    columns = layout.split(action, nodes=NODES, edges=EDGES if layout.uses_edges else 0)
    for part, own in zip(layout.parts, columns, strict=True):
        of, exists = dist.of(part, values), part.exists(root, SPEC)
        values[part.name] = part.value_of(own)
        for world in range(WORLDS):
            if part.kind == "number":
                rows = own[world].reshape(-1, part.dim)
                loc, scale = (each[world].reshape(-1, part.dim) for each in (of.loc, of.scale))
                squash = [
                    TanhTransform(),
                    AffineTransform((part.low + part.high) / 2, (part.high - part.low) / 2),
                ]
                each = TransformedDistribution(Normal(loc, scale), squash).log_prob(rows).sum(-1)
            else:
                rows = own[world].long()
                logits = of.logits[world].reshape(len(rows), -1)
                each = Categorical(logits=logits).log_prob(rows)
            if exists is not None and part.kind != "choose":
                each = each[exists[world]]
            total[world] += each.sum()
    return total


@pytest.mark.parametrize("name", LAYOUTS)
def test_log_probabilities_are_those_of_the_parts(name):
    layout = LAYOUTS[name]
    root, h = observe(layout)
    dist = make(layout)(h, root)
    for seed in range(5):
        action = dist.sample(generator=torch.Generator().manual_seed(seed))
        expected = reference_log_prob(layout, dist, root, action)
        torch.testing.assert_close(dist.log_prob(action), expected, rtol=0, atol=1e-9)


def every_action(layout, root, world):
    """All values of discrete parts, and points and weights of the trapezoidal rule before squashing."""
    before = np.linspace(-11.0, 11.0, 500)
    points, weights = np.tanh(before), (before[1] - before[0]) / np.cosh(before) ** 2
    found = [([], 1.0, {})]
    nodes, edges = NODES, EDGES
    for part in layout.parts:
        exists = part.exists(root, SPEC)
        longer = []
        for columns, weight, _ in found:
            width = part.width(nodes, edges)
            if part.kind == "number":
                choices = []
                for row in range(width):
                    absent = exists is not None and not exists[world, row]
                    middle, half = (part.low + part.high) / 2, (part.high - part.low) / 2
                    one = (
                        [(middle, 1.0)]
                        if absent
                        else list(zip(middle + half * points, half * weights, strict=True))
                    )
                    choices.append(one)
            else:
                choices = [
                    [(0.0, 1.0)]
                    if part.kind == "category" and exists is not None and not exists[world, row]
                    else [(float(value), 1.0) for value in range(part.count(nodes, edges))]
                    for row in range(width)
                ]
            for combination in itertools.product(*choices):
                values = [value for value, _ in combination]
                longer.append(([*columns, *values], weight * math.prod(w for _, w in combination), {}))
        found = longer
    actions = torch.tensor([columns for columns, _, _ in found], dtype=torch.float64)
    return actions, torch.tensor([weight for _, weight, _ in found], dtype=torch.float64)


def log_prob_of_all(layout, head, root, h, world, actions):
    dtype = torch.float64 if layout.has_numbers else torch.int64
    many = root[world : world + 1].expand(len(actions)).clone()
    dist = head(h[world : world + 1].expand(len(actions), -1, -1), many)
    return dist.log_prob(actions.to(dtype))


SINGLE = [name for name in LAYOUTS if "of each" not in name or "option of each" in name]


@pytest.mark.parametrize("name", SINGLE)
@torch.no_grad()
def test_probabilities_sum_to_one_and_masked_values_have_none(name):
    """By enumeration of choices and quadrature over numbers, to 1e-9; illegal actions have probability 0."""
    layout = LAYOUTS[name]
    root, h = observe(layout)
    head = make(layout, gain=0.5)
    for world in range(WORLDS):
        actions, weights = every_action(layout, root, world)
        log_prob = log_prob_of_all(layout, head, root, h, world, actions)
        density = log_prob.exp()
        assert abs(float((density * weights).sum()) - 1) < 1e-9
        many = root[world : world + 1].expand(len(actions)).clone()
        given = actions if layout.has_numbers else actions.long()
        legal = layout.is_legal(given, many, SPEC)
        assert not density[~legal].any()
        assert (log_prob[legal] > -1e30).all()


@pytest.mark.parametrize("name", [n for n in SINGLE if n not in ("node, option, amount",)])
@torch.no_grad()
def test_entropies_are_those_of_the_enumerated_distribution(name):
    """Exact where the class says so; an estimate whose mean over samples is right elsewhere."""
    layout = LAYOUTS[name]
    root, h = observe(layout)
    head = make(layout, gain=0.5)
    dist = head(h, root)
    torch.manual_seed(0)
    found = torch.stack([dist.entropy() for _ in range(1 if is_exact(dist) else 3000)])
    for world in range(WORLDS):
        actions, weights = every_action(layout, root, world)
        log_prob = log_prob_of_all(layout, head, root, h, world, actions)
        terms = (log_prob.exp() * weights * log_prob).nan_to_num(0.0)
        expected = -float(terms[log_prob > -1e30].sum())
        error = 5 * float(found[:, world].std() / len(found) ** 0.5) if len(found) > 1 else 1e-6
        assert abs(float(found[:, world].mean()) - expected) < error + 1e-6


def is_exact(dist):
    return all(not part.given or dist._averages(part) for part in dist.layout.parts)


def test_the_gradient_of_an_estimated_entropy_is_unbiased():
    layout = LAYOUTS["node, then edge"]
    root, h = observe(layout)
    head = make(layout, gain=0.5)
    h = h.requires_grad_()
    actions, _ = every_action(layout, root, 0)
    log_prob = log_prob_of_all(layout, head, root, h, 0, actions)
    real = log_prob > -1e30
    (expected,) = torch.autograd.grad(-(log_prob[real].exp() * log_prob[real]).sum(), h)
    torch.manual_seed(0)
    many = root[:1].expand(20000).clone()
    (found,) = torch.autograd.grad(head(h[:1].expand(20000, -1, -1), many).entropy().mean(), h)
    torch.testing.assert_close(found[0], expected[0], rtol=0, atol=0.01)
    assert expected.abs().max() > 0.05


@pytest.mark.parametrize("name", SINGLE)
@torch.no_grad()
def test_samples_follow_the_probabilities(name):
    """By a chi-square test: of choices, and of the quantiles of numbers."""
    layout = LAYOUTS[name]
    root, h = observe(layout)
    head = make(layout, gain=0.5)
    world, count = 1, 40000
    dist = head(h[world : world + 1], root[world : world + 1])
    drawn = dist.sample((count,), generator=torch.Generator().manual_seed(1))[:, 0]
    if not layout.has_numbers:
        actions, _ = every_action(layout, root, world)
        probability = log_prob_of_all(layout, head, root, h, world, actions).exp()
        seen = torch.tensor([(drawn == action).all(-1).sum() for action in actions.long()])
        assert int(seen.sum()) == count
        likely = probability > 1e-4
        expected = probability[likely] / probability[likely].sum() * seen[likely].sum()
        assert stats.chisquare(seen[likely].numpy(), expected.numpy()).pvalue > 1e-4
        assert not seen[probability == 0].any()
        return
    values, many = {}, root[world : world + 1].expand(count).clone()
    repeated = head(h[world : world + 1].expand(count, -1, -1), many)
    for part, own in zip(layout.parts, layout.split(drawn, nodes=NODES, edges=EDGES), strict=True):
        of = repeated.of(part, values)
        values[part.name] = part.value_of(own)
        if part.kind == "number":
            unit = (own - (part.low + part.high) / 2) / ((part.high - part.low) / 2)
            quantile = Normal(of.loc, of.scale).cdf(torch.atanh(unit)).flatten()
            bins = torch.histc(quantile, 20, 0, 1)
        else:
            expected = of.probs.mean(0)
            bins = torch.bincount(values[part.name], minlength=len(expected)).double()
            bins, expected = bins[expected > 1e-4], expected[expected > 1e-4]
            assert (
                stats.chisquare(bins.numpy(), (expected / expected.sum() * bins.sum()).numpy()).pvalue > 1e-4
            )
            continue
        assert stats.chisquare(bins.numpy()).pvalue > 1e-4


def test_of_a_million_samples_none_is_illegal():
    worlds, repeats = 50, 700
    illegal = total = 0
    for name, layout in LAYOUTS.items():
        root, h = observe(layout, worlds=worlds)
        dist = make(layout)(h, root)
        for given in (
            dist.sample((repeats,)),
            layout.sample(root.expand(repeats, worlds), SPEC, generator=torch.Generator().manual_seed(0)),
        ):
            legal = layout.is_legal(given, root.expand(repeats, worlds), SPEC)
            illegal, total = illegal + int((~legal).sum()), total + legal.numel()
        assert layout.is_legal(dist.mode, root, SPEC).all(), name
    assert total >= 1_000_000
    assert illegal == 0


@pytest.mark.parametrize("name", LAYOUTS)
def test_packing_and_unpacking_and_the_spec(name):
    layout = LAYOUTS[name]
    root, _ = observe(layout)
    action = layout.sample(root, SPEC, generator=torch.Generator().manual_seed(0))
    values = layout.unpack(action, SPEC)
    again = layout.pack(**values) if isinstance(values, dict) else layout.pack(values)
    assert torch.equal(again, action)
    spec = layout.spec(SPEC, num_envs=WORLDS, num_edges=EDGES, device=torch.device("cpu"))
    assert spec.is_in(action)
    assert spec.shape == action.shape
    for wrong in (torch.full_like(action, 10**6), torch.full_like(action, -(10**6))):
        assert not layout.is_legal(wrong, root, SPEC).any()
    if layout.has_numbers:
        assert not layout.is_legal(torch.full_like(action, torch.nan), root, SPEC).any()
        if any(part.kind != "number" for part in layout.parts):
            assert not layout.is_legal(action + 0.25, root, SPEC).any()


def test_values_have_their_own_shapes():
    layout = Then(
        node=ChooseNode(), amount=Amount(dim=2), each=PerEdge(Amount(dim=2)), kind=PerNode(Option(2))
    )
    root, _ = observe(layout)
    values = layout.unpack(layout.sample(root, SPEC), SPEC)
    assert {name: (tuple(value.shape), value.dtype) for name, value in values.items()} == {
        "node": ((3,), torch.int64),
        "amount": ((3, 2), torch.float32),
        "each": ((3, EDGES, 2), torch.float32),
        "kind": ((3, NODES), torch.int64),
    }


def test_a_world_without_a_legal_choice_is_named():
    layout = LAYOUTS["node, then edge"]
    root, h = observe(layout, masks=False)
    root["action_mask"] = TensorDict(
        {"node": torch.ones(3, NODES).bool(), "edge": torch.ones(3, NODES, EDGES).bool()}, [3]
    )
    assert layout.worlds_with_action(root, SPEC).all()
    root["action_mask", "edge"][2, 0] = False
    assert layout.worlds_with_action(root, SPEC).tolist() == [True, True, False]
    root["action_mask", "node"][1] = False
    assert layout.worlds_with_action(root, SPEC).tolist() == [True, False, False]
    with pytest.raises(ValueError, match="world 1 has no allowed choice of node"):
        make(layout)(h, root).sample()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Then(node=ChooseNode()), "joins two or more parts"),
        (lambda: Then(node=ChooseNode(), agents=object()), "agents: object cannot be a part"),
        (lambda: Joint(a=Then(node=ChooseNode(), x=Amount()), node=ChooseNode()), "two parts called node"),
        (lambda: Amount(1, 0), "low < high"),
        (lambda: PerNode(ChooseNode()), "takes an Amount or a Category"),
        (lambda: Option(0), "at least 1"),
    ],
)
def test_wrong_compositions_are_refused_in_words(wrong, words):
    with pytest.raises(ConfigError, match=words):
        wrong()
