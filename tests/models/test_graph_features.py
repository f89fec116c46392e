"""Features of deciders from an uneven graph: whose they are, how wide, and what they must not depend on."""

import pytest
import torch
from tests.uneven import (
    AGENTS,
    COUNTS,
    EDGES,
    GRAPH_FEATURES,
    HIDDEN,
    NODES,
    WORLDS,
    uneven_encoder,
    uneven_root,
    uneven_spec,
)

from edgewise.graphs.actions import (
    AgentsDiscrete,
    ChooseEdge,
    ChooseEdgePerGroup,
    ChooseFromSet,
    ChooseNode,
    EdgesDiscrete,
)
from edgewise.models.bridge import pool_nodes
from edgewise.models.config import ValueConfig
from edgewise.models.graph_features import make_graph_features

GROUPS, GROUP_SIZE, OFFERED = 5, 3, 9
LAYOUTS = {
    "node": (ChooseNode(), (NODES,), True),
    "agents": (AgentsDiscrete(AGENTS, 2), (AGENTS,), False),
    "edge": (ChooseEdge(), (EDGES,), True),
    "edges": (EdgesDiscrete(2), (EDGES,), False),
    "groups": (ChooseEdgePerGroup(GROUPS, GROUP_SIZE), (GROUPS, 1 + GROUP_SIZE), True),
    "set of nodes": (ChooseFromSet(OFFERED, members="nodes"), (OFFERED,), True),
    "set of edges": (ChooseFromSet(OFFERED, members="edges"), (OFFERED,), True),
}


def observed(layout, *, garbage=torch.nan, seed=0):
    """An observation with the mask, and the choices, of a layout."""
    root = uneven_root(garbage=garbage, seed=seed)
    graph = root["graph"]
    if isinstance(layout, ChooseNode):
        root["action_mask"] = graph["node_mask"].clone()
    elif isinstance(layout, ChooseEdge):
        root["action_mask"] = graph["edge_mask"].clone()
    elif isinstance(layout, ChooseEdgePerGroup):
        used = graph["edge_mask"][:, : GROUPS * GROUP_SIZE].unflatten(1, (GROUPS, GROUP_SIZE))
        root["action_mask"] = torch.cat((torch.ones(WORLDS, GROUPS, 1, dtype=torch.bool), used), -1)
    elif isinstance(layout, ChooseFromSet):
        exists = graph["node_mask"] if layout.members == "nodes" else graph["edge_mask"]
        places = torch.zeros(WORLDS, OFFERED, dtype=torch.int64)
        mask = torch.zeros(WORLDS, OFFERED, dtype=torch.bool)
        for world, each in enumerate(exists):
            there = each.nonzero().squeeze(-1).flip(0)[: OFFERED - 2]
            places[world, 1 : 1 + len(there)], mask[world, 1 : 1 + len(there)] = there, True
        root["choices"] = places.masked_fill(~mask, 10**6)
        root["action_mask"] = mask
    return root


def made(name, role, **changes):
    torch.manual_seed(3)
    config = ValueConfig(encoder=uneven_encoder(), **changes)
    return make_graph_features(uneven_spec(), LAYOUTS[name][0], config, role=role).eval()


def valid(name, root):
    """Which of the features count."""
    graph = root["graph"]
    if name in ("node", "groups") or name.startswith("set"):
        return root["action_mask"]
    if name == "agents":
        return graph["node_mask"][:, :AGENTS]
    return graph["edge_mask"]


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("role", ["actor", "critic"])
def test_shapes_and_widths(name, role):
    layout, shape, per_choice = LAYOUTS[name]
    features = made(name, role)
    found = features(observed(layout))
    assert features.width == HIDDEN * (2 if role == "critic" else 1)
    assert found.shape == (WORLDS, *shape, features.width)
    assert bool(getattr(features, "per_choice", False)) == per_choice
    assert found[valid(name, observed(layout))].isfinite().all()
    two = torch.stack((observed(layout), observed(layout, seed=1)))
    torch.testing.assert_close(features(two)[0][valid(name, two[0])], found[valid(name, two[0])])


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_critic_also_has_the_pooled_graph(name):
    layout = LAYOUTS[name][0]
    root = observed(layout)
    for pool in ("mean", "sum", "max"):
        features = made(name, "critic", pool=pool)
        h = features.encoder(root["graph"])
        pooled = pool_nodes(h, root["graph"]["node_mask"], how=pool)
        found = features(root)
        extra = (1,) * (found.dim() - 2)
        torch.testing.assert_close(
            found[..., HIDDEN:], pooled.reshape(WORLDS, *extra, -1).expand_as(found[..., HIDDEN:])
        )
        torch.testing.assert_close(found[..., :HIDDEN].nan_to_num(), features.select(h, root).nan_to_num())
    assert made(name, "critic", pooled=False).width == HIDDEN


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_spare_slots_hold_does_not_matter(name):
    layout = LAYOUTS[name][0]
    features = made(name, "critic")
    here, there = observed(layout, garbage=torch.nan), observed(layout, garbage=7.0)
    kept = valid(name, here)
    torch.testing.assert_close(features(here)[kept], features(there)[kept])


def test_features_are_those_of_the_right_nodes():
    root = observed(LAYOUTS["node"][0])
    nodes = made("node", "actor")
    h = nodes.encoder(root["graph"])
    torch.testing.assert_close(nodes(root).nan_to_num(), h.nan_to_num())
    agents = made("agents", "actor")
    torch.testing.assert_close(
        agents(root).nan_to_num(), agents.encoder(root["graph"])[:, :AGENTS].nan_to_num()
    )
    offered = observed(LAYOUTS["set of nodes"][0])
    members = made("set of nodes", "actor")
    h, found = members.encoder(offered["graph"]), members(offered)
    for world in range(WORLDS):
        for place in offered["action_mask"][world].nonzero().squeeze(-1).tolist():
            torch.testing.assert_close(found[world, place], h[world, offered["choices"][world, place]])


def test_offered_and_grouped_edges_have_the_features_of_their_edge():
    for name in ("set of edges", "groups"):
        root = observed(LAYOUTS[name][0])
        features = made(name, "actor")
        h = features.encoder(root["graph"])
        every = features.edges(h, features.graph.edges_of(root["graph"]))
        found = features(root)
        if name == "groups":
            torch.testing.assert_close(found[..., 0, :], features.none.expand(WORLDS, GROUPS, HIDDEN))
            assert features.none.shape == (HIDDEN,)
            flat = found[..., 1:, :].flatten(1, 2)
            kept = root["graph"]["edge_mask"][:, : GROUPS * GROUP_SIZE]
            torch.testing.assert_close(flat[kept], every[:, : GROUPS * GROUP_SIZE][kept])
            continue
        for world in range(WORLDS):
            for place in root["action_mask"][world].nonzero().squeeze(-1).tolist():
                torch.testing.assert_close(found[world, place], every[world, root["choices"][world, place]])


def test_an_edge_has_a_direction_and_its_own_features():
    features, root = made("edge", "actor"), observed(LAYOUTS["edge"][0])
    found = features(root)
    slot = int(root["graph"]["edge_mask"][0].nonzero()[0])
    turned = root.clone()
    turned["graph", "edge_index"][0, :, slot] = root["graph", "edge_index"][0, :, slot].flip(0)
    assert not torch.allclose(features(turned)[0, slot], found[0, slot])
    other = root.clone()
    other["graph", "edge_attr"][0, slot] += 1.0
    assert not torch.allclose(features(other)[0, slot], found[0, slot])


def test_legal_choices_are_those_of_the_layout():
    for name in ("node", "edge", "groups"):
        root = observed(LAYOUTS[name][0])
        assert made(name, "actor").legal(root).equal(root["action_mask"])
    assert sum(COUNTS) == int(uneven_root()["graph", "node_mask"].sum())
    assert uneven_root()["graph", "u"].shape[-1] == GRAPH_FEATURES


def test_the_graph_of_features_is_that_of_their_encoder():
    features = made("node", "actor")
    other = uneven_spec()
    features.graph = other
    assert features.encoder.graph is other
    assert features.graph is other
