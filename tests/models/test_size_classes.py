"""Batches divided by size give what whole batches give; they are divided where most slots are empty."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict
from tests.models.worlds import explicit_spec, radius_spec, random_graph

from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.dqn import DQN
from edgewise.algorithms.off_policy_config import DQNConfig
from edgewise.graphs.actions import (
    AgentsContinuous,
    AgentsDiscrete,
    ChooseEdge,
    ChooseFromSet,
    ChooseNode,
    EdgesDiscrete,
)
from edgewise.graphs.ragged import pack
from edgewise.models import actor_critic as module
from edgewise.models import graph_features, size_classes
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig, ValueConfig

SLOTS, BATCH = 200, 48
SMALL = ModelConfig(encoder=EncoderConfig(hidden=16, heads=2, layers=2), policy_gain=1.0)
LAYOUTS = {
    "node": ChooseNode(),
    "edge": ChooseEdge(),
    "set": ChooseFromSet(4),
    "agents": AgentsDiscrete(3, 5),
    "thrusts": AgentsContinuous(3, 2),
}


def spec_of(edges):
    return explicit_spec(nodes=SLOTS, edges=90) if edges == "explicit" else radius_spec(nodes=SLOTS)


def observation(layout, edges="explicit", *, seed=0):
    """Graphs of 1 to 8 nodes, and one of 50."""
    spec = spec_of(edges)
    graph = random_graph(spec, BATCH, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    count = torch.randint(3, 9, (BATCH,), generator=generator)
    count[seed % BATCH] = 50
    exists = torch.arange(SLOTS) < count.unsqueeze(-1)
    graph["node_mask"] = exists
    graph["x"] = torch.rand(BATCH, SLOTS, 3, generator=generator).masked_fill(
        ~exists.unsqueeze(-1), torch.nan
    )
    if graph.get("pos", None) is not None:
        graph["pos"] = torch.rand(BATCH, SLOTS, 2, generator=generator)
    if graph.get("edge_index", None) is not None:
        links = 2 * count
        ends = torch.rand(BATCH, 2, 90, generator=generator) * count.view(-1, 1, 1)
        graph["edge_index"] = ends.long()
        graph["edge_mask"] = torch.arange(90) < links.clamp(max=90).unsqueeze(-1)
        graph["edge_attr"] = torch.rand(BATCH, 90, 2, generator=generator)
    root = TensorDict({"graph": graph}, [BATCH])
    if isinstance(layout, ChooseNode):
        root["action_mask"] = exists & (torch.rand(BATCH, SLOTS, generator=generator) < 0.8)
        root["action_mask"][:, 0] = True
    if isinstance(layout, ChooseFromSet):
        root["action_mask"] = torch.ones(BATCH, 4, dtype=torch.bool)
        root["choices"] = (torch.rand(BATCH, 4, generator=generator) * count.unsqueeze(-1)).long()
    if isinstance(layout, AgentsDiscrete):
        root["action_mask"] = torch.ones(BATCH, 3, 5, dtype=torch.bool)
    return root


def undivided(monkeypatch):
    for place in (module, graph_features):
        monkeypatch.setattr(place, "size_classes", lambda *_, **__: None)


def cases():
    for name, layout in LAYOUTS.items():
        yield pytest.param(layout, "explicit", id=f"{name}-explicit")
        if name != "edge":
            yield pytest.param(layout, "radius", id=f"{name}-radius")


def results(layout, spec, root):
    """Log-probabilities, entropies, values and gradients of one model."""
    torch.manual_seed(0)
    model = make_actor_critic(spec, layout, SMALL)
    distribution, value = model.evaluate(root)
    action = layout.sample(root, spec, generator=torch.Generator().manual_seed(0))
    found = [distribution.log_prob(action), distribution.entropy(), value, distribution.mode.float()]
    (found[0].mean() + found[1].mean() + value.square().mean()).backward()
    return [*found, *(each.grad for each in model.parameters() if each.grad is not None)]


@pytest.mark.parametrize("is_ragged", [False, True], ids=["padded", "ragged"])
@pytest.mark.parametrize(("layout", "edges"), cases())
def test_results_and_gradients_are_those_of_the_whole_batch(layout, edges, is_ragged, monkeypatch):
    spec, root = spec_of(edges), observation(layout, edges)
    given_root = pack(root, layout) if is_ragged else root
    divided = size_classes.size_classes(given_root, spec, layout=layout, keys=("graph",))
    assert divided is not None
    assert sorted(torch.cat([each.rows for each in divided]).tolist()) == list(range(BATCH))
    assert divided[0].observation["graph", "x"].shape[1] < 20
    found = results(layout, spec, given_root)
    undivided(monkeypatch)
    for mine, expected in zip(found, results(layout, spec, root), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-5)


def test_samples_are_legal_and_have_the_shape_of_the_batch():
    layout, spec = ChooseNode(), spec_of("explicit")
    root = observation(layout).reshape(6, 8)
    actor = make_actor_critic(spec, layout, SMALL).actor
    distribution = actor.get_dist(root)
    assert distribution.batch_shape == (6, 8)
    assert distribution.logits.shape == (6, 8, SLOTS)
    for action in (distribution.sample(), *distribution.sample((3,))):
        assert layout.is_legal(action, root, spec).all()
    torch.testing.assert_close(distribution.probs.sum(-1), torch.ones(6, 8))
    acted = actor(root.clone())
    assert torch.equal(acted["action_log_prob"], distribution.log_prob(acted["action"]))


@pytest.mark.parametrize("is_ragged", [False, True], ids=["padded", "ragged"])
def test_values_of_choices_are_those_of_the_whole_batch(is_ragged, monkeypatch):
    layout, spec, root = ChooseNode(), spec_of("explicit"), observation(ChooseNode())
    model = ValueConfig(encoder=SMALL.encoder, hidden=16)
    deciders = Deciders(layout, model, graph=spec, reads_graph=True, stored=("graph", "action_mask"))
    torch.manual_seed(0)
    network = DQN(deciders, config=DQNConfig(dueling=True)).networks["network"]
    found = network(pack(root, layout) if is_ragged else root)
    undivided(monkeypatch)
    torch.testing.assert_close(found, network(root), rtol=1e-4, atol=1e-5)


def test_batches_stay_whole_where_cutting_would_change_actions():
    root, spec = observation(ChooseNode()), spec_of("explicit")

    def divided(layout, spec=spec, root=root):
        return size_classes.size_classes(root, spec, layout=layout, keys=("graph",)) is not None

    assert divided(ChooseNode())
    assert divided(None)
    assert not divided(EdgesDiscrete(3))
    assert not divided(ChooseEdge(), spec=radius_spec(nodes=SLOTS), root=observation(ChooseEdge(), "radius"))
    full = root.clone()
    full["graph", "node_mask"][:] = True
    assert not divided(ChooseNode(), root=full)
    own = root.clone()
    own["graph", "own"] = torch.zeros(BATCH, SLOTS)
    assert not divided(ChooseNode(), root=own)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=60))
def test_classes_hold_every_graph_once_and_waste_little(sizes):
    used = torch.tensor(sizes)
    classes = size_classes.classes_by_size(used)
    assert sorted(torch.cat(classes).tolist()) == list(range(len(sizes)))
    slots = sum(len(rows) * int(used[rows].max()) for rows in classes)
    assert slots <= size_classes.STEP * sum(sizes) + len(sizes) + len(classes) * size_classes.LEAST_OF_CLASS
    for smaller, larger in pairwise(classes):
        assert used[smaller].max() <= used[larger].min()


def test_slots_of_agents_count_as_needed():
    """Else graphs with fewer nodes than agents would be divided again and again."""
    layout, spec = AgentsDiscrete(100, 5), spec_of("explicit")
    root = observation(layout)
    root["agents", "active"] = torch.arange(100) < 3 * torch.ones(BATCH, 1)
    root["action_mask"] = torch.ones(BATCH, 100, 5, dtype=torch.bool)
    assert size_classes.size_classes(root, spec, layout=layout, keys=("graph",), num_agents=100) is None
    root["agents", "active"] = root["agents", "active"][:, :20]
    root["action_mask"] = root["action_mask"][:, :20]
    torch.manual_seed(0)
    model = make_actor_critic(spec, AgentsDiscrete(20, 5), SMALL)
    distribution, value = model.evaluate(root)
    assert distribution.batch_shape == (BATCH, 20)
    assert value.shape == (BATCH, 20, 1)
