"""InforMARL's network against PyG's own layers, and the growth with degree that its remedies are for."""

import pytest
import torch
from torch_geometric.nn import TransformerConv

from edgewise.systems.swarm.models.informarl import InforMARLTrunk, Remedies

ENTITIES = 9


def seen(graphs=5, entities=ENTITIES, seed=0):
    """Random views: features with the type last, and distances of a random plane."""
    torch.manual_seed(seed)
    features = torch.cat((torch.randn(graphs, entities, 6), torch.randint(3, (graphs, entities, 1))), -1)
    place = torch.rand(graphs, entities, 2) * 1.6
    return features, torch.cdist(place, place)


def pyg_twin(attention, *, beta):
    """PyG's convolution with the weights of ours."""
    twin = TransformerConv(16, 16, heads=3, concat=False, beta=beta, edge_dim=1)
    pairs = {
        "lin_query": "query",
        "lin_key": "key",
        "lin_value": "value",
        "lin_edge": "edge",
        "lin_skip": "root",
    }
    state = {}
    for theirs, ours in pairs.items():
        state |= {f"{theirs}.{name}": value for name, value in getattr(attention, ours).state_dict().items()}
    if beta:
        state["lin_beta.weight"] = attention.gate.weight
    twin.load_state_dict(state)
    return twin


@pytest.mark.parametrize("beta", [False, True])
def test_attention_is_pyg_s_transformer_conv(beta):
    torch.manual_seed(0)
    attention = InforMARLTrunk(Remedies(beta=beta)).layers[0]
    _, distance = seen()
    h, linked = torch.randn(5, ENTITIES, 16), (distance > 0) & (distance < 1)
    ours, _, _ = attention(h, distance, linked)
    graph, target, source = linked.nonzero().T
    index = torch.stack((graph * ENTITIES + source, graph * ENTITIES + target))
    theirs = pyg_twin(attention, beta=beta)(h.flatten(0, 1), index, distance[linked].unsqueeze(-1)).relu()
    assert torch.allclose(ours.flatten(0, 1), theirs, atol=1e-5)


def test_the_embedding_sums_messages_of_neighbours_one_by_one():
    torch.manual_seed(1)
    embed = InforMARLTrunk().embed
    features, distance = seen()
    linked = (distance > 0) & (distance < 1)
    found = embed(features, distance, linked)
    for node in range(ENTITIES):
        total = torch.zeros(16)
        for other in linked[0, node].nonzero().flatten():
            x = torch.cat((features[0, other, :6], embed.kinds.weight[features[0, other, 6].long()]))
            x = torch.cat((x, distance[0, node, other : other + 1]))
            x = embed.norm(embed.first(x).relu())
            total = total + embed.norm(embed.second(x).relu())
        assert torch.allclose(found[0, node], total, atol=1e-5)


def test_it_has_as_many_parameters_as_published():
    assert sum(parameter.numel() for parameter in InforMARLTrunk().parameters()) == 8774


def sizes(remedies, entities):
    """Root mean squares of the embedding and of the first attention's logits."""
    torch.manual_seed(3)
    trunk = InforMARLTrunk(remedies)
    with torch.no_grad():
        _, traces = trunk.traced(*seen(8, entities))
    logits = traces.logits[0].transpose(0, 1)[:, traces.linked]
    return float(traces.embedding.square().mean().sqrt()), float(logits.square().mean().sqrt())


def growth(remedies):
    """By what factors both grow from 10 entities to 80."""
    return [large / small for large, small in zip(sizes(remedies, 80), sizes(remedies, 10), strict=True)]


def test_published_embeddings_grow_with_the_degree_and_logits_with_its_square():
    embedding, logit = growth(Remedies())
    assert 5 < embedding < 9
    assert logit == pytest.approx(embedding**2, rel=0.5)


@pytest.mark.parametrize("cure", [{"aggregation": "mean"}, {"embed_norm": True}, {"embed": "node"}])
def test_what_removes_the_degree_before_attention_stops_the_growth(cure):
    assert max(growth(Remedies(**cure))) < 1.2


@pytest.mark.parametrize(
    "no_cure", [{"beta": True}, {"residual": 0.1}, {"graph_norm": True}, {"clamp": 10.0}]
)
def test_what_comes_after_the_first_logits_does_not(no_cure):
    assert growth(Remedies(**no_cure)) == pytest.approx(growth(Remedies()), rel=0.5)


def test_a_clipped_logit_has_no_gradient_and_a_capped_one_has():
    for remedies, alive in ((Remedies(logit_clip=1.0), False), (Remedies(soft_cap=1.0), True)):
        logits = torch.tensor([3.0], requires_grad=True)
        InforMARLTrunk(remedies).layers[0]._bounded(logits).sum().backward()
        assert bool(logits.grad > 0) is alive


def test_an_entity_without_neighbours_embeds_to_nothing_unless_embedded_by_itself():
    features, distance = seen()
    far = torch.full_like(distance, 5.0)
    assert (InforMARLTrunk().embed(features, far, far < 1) == 0).all()
    torch.manual_seed(0)
    own = InforMARLTrunk(Remedies(embed="node"))(features, far)
    assert own.isfinite().all()
    assert own.std(1).max() > 0


def test_the_depth_scaled_start_reaches_every_matrix():
    torch.manual_seed(0)
    plain = InforMARLTrunk()
    torch.manual_seed(0)
    scaled = InforMARLTrunk(Remedies(depth_init=True))
    before, after = dict(plain.named_parameters()), dict(scaled.named_parameters())
    matrices = [name for name, value in before.items() if value.dim() == 2 and "kinds" not in name]
    assert len(matrices) == 17
    assert all(not torch.equal(before[name], after[name]) for name in matrices)
