"""Heads: the shapes of every way to act, masks obeyed, and an error where nothing is allowed."""

import pytest
import torch
from tests.models.worlds import NODES, explicit_spec, observation, radius_spec

from edgewise.graphs.actions import (
    AgentsContinuous,
    AgentsDiscrete,
    ChooseEdgePerGroup,
    ChooseFromSet,
    ChooseNode,
    EdgesDiscrete,
)
from edgewise.models import from_set_head
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.models.distributions.masked import MaskedCategorical

AGENTS, EDGES = 3, 20
SMALL = ModelConfig(encoder=EncoderConfig(hidden=8, heads=2, layers=1), head_hidden=(8,), policy_gain=1.0)
ROWS = {
    ChooseNode(): (),
    AgentsDiscrete(AGENTS, 4): (AGENTS,),
    AgentsContinuous(AGENTS, 2, -2.0, 3.0): (AGENTS,),
    EdgesDiscrete(3): (),
    ChooseEdgePerGroup(4, 5): (),
    ChooseFromSet(6): (),
    ChooseFromSet(6, "edges"): (),
}
ACTIONS = {
    ChooseNode(): (),
    AgentsDiscrete(AGENTS, 4): (AGENTS,),
    AgentsContinuous(AGENTS, 2, -2.0, 3.0): (AGENTS, 2),
    EdgesDiscrete(3): (EDGES,),
    ChooseEdgePerGroup(4, 5): (4,),
    ChooseFromSet(6): (),
    ChooseFromSet(6, "edges"): (),
}
LAYOUTS = list(ROWS)


def seen_by(layout, *lead, seed=0):
    """An observation with what the layout needs."""
    generator = torch.Generator().manual_seed(seed)
    agents = getattr(layout, "num_agents", 0)
    seen = observation(explicit_spec(edges=EDGES), *lead, seed=seed, agents=agents)

    def some(*shape):
        return (torch.rand(*lead, *shape, generator=generator) < 0.6).index_fill(-1, torch.tensor([0]), True)

    match layout:
        case ChooseNode():
            seen["action_mask"] = some(NODES)
        case AgentsDiscrete(_, actions):
            seen["action_mask"] = some(AGENTS, actions)
        case EdgesDiscrete(actions):
            seen["action_mask"] = some(EDGES, actions)
        case ChooseEdgePerGroup(groups, size):
            seen["action_mask"] = some(groups, 1 + size)
        case ChooseFromSet(places, members):
            seen["action_mask"] = some(places)
            seen["choices"] = torch.randint(
                0, EDGES if members == "edges" else NODES, (*lead, places), generator=generator
            )
    return seen


def actor_of(layout):
    torch.manual_seed(0)
    return make_actor_critic(explicit_spec(edges=EDGES), layout, SMALL).actor


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
def test_shapes_of_actions_log_probs_and_entropies(layout, lead):
    seen = seen_by(layout, *lead)
    actor = actor_of(layout)
    actor(seen)
    assert seen["action"].shape == (*lead, *ACTIONS[layout])
    assert seen["action_log_prob"].shape == (*lead, *ROWS[layout])
    dist = actor.get_dist(seen)
    assert dist.entropy().shape == (*lead, *ROWS[layout])
    assert dist.mode.shape == seen["action"].shape
    assert dist.mode.dtype == seen["action"].dtype
    assert torch.equal(dist.log_prob(seen["action"]), seen["action_log_prob"])


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_batch_equals_singles(layout):
    seen = seen_by(layout, 5)
    actor = actor_of(layout)
    actor(seen)
    for world in range(5):
        single = actor.get_dist(seen[world])
        torch.testing.assert_close(
            single.log_prob(seen[world]["action"]), seen[world]["action_log_prob"], rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_gradient_reaches_every_parameter(layout):
    seen = seen_by(layout, 32)
    actor = actor_of(layout)
    actor(seen)
    seen["action_log_prob"].sum().backward()
    untouched = [name for name, p in actor.named_parameters() if p.grad is None or not p.grad.any()]
    # The last bias of one logit per member shifts all of them alike: its gradient is zero but for rounding.
    shift = {"head.score.score.0.bias"} if isinstance(layout, ChooseFromSet) else set()
    assert set(untouched) <= shift


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
def test_chosen_edges_have_the_scores_that_all_edges_have(lead, compact, monkeypatch):
    layout = ChooseFromSet(6, members="edges")
    seen, actor = seen_by(layout, *lead), actor_of(layout)
    monkeypatch.setattr(from_set_head, "may_compact", lambda *_: compact)
    h = torch.randn(*lead, NODES, SMALL.encoder.hidden)
    edges = actor.head.graph.edges_of(seen["graph"])
    of_all = actor.head.score(h, edges).squeeze(-1).gather(-1, seen["choices"])
    probs = actor.head(h, seen).probs
    torch.testing.assert_close(probs, MaskedCategorical(of_all, seen["action_mask"]).probs)


MASKED = [layout for layout in LAYOUTS if not isinstance(layout, AgentsContinuous)]


@pytest.mark.parametrize("layout", MASKED, ids=str)
def test_actions_obey_the_mask(layout):
    seen = seen_by(layout, 500)
    actor = actor_of(layout)
    mask, action = seen["action_mask"], actor(seen)["action"]
    allowed = mask.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    if isinstance(layout, EdgesDiscrete):
        exists = seen["graph", "edge_mask"]
        assert (action[~exists] == 0).all()
        allowed = allowed | ~exists
    assert allowed.all()


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (ChooseNode(), "^world 1 has no allowed node"),
        (AgentsDiscrete(AGENTS, 4), "^row 0 of world 1 has no allowed action"),
        (EdgesDiscrete(3), "of world 1 has no allowed action of an edge"),
        (ChooseEdgePerGroup(4, 5), "^row 0 of world 1 has no allowed edge of a group"),
        (ChooseFromSet(6), "^world 1 has no allowed choice"),
    ],
    ids=str,
)
def test_an_all_false_mask_raises_and_names_the_world(layout, message):
    seen = seen_by(layout, 3)
    seen["action_mask"][1] = False
    with pytest.raises(ValueError, match=message):
        actor_of(layout)(seen)


def test_an_absent_node_is_never_chosen_though_the_mask_allows_it():
    spec = explicit_spec()
    seen = observation(spec, 200, full=False)
    seen["action_mask"] = torch.ones(200, NODES, dtype=torch.bool)
    action = make_actor_critic(spec, ChooseNode(), SMALL).actor(seen)["action"]
    assert seen["graph", "node_mask"].gather(-1, action.unsqueeze(-1)).all()


@pytest.mark.parametrize("layout", [AgentsDiscrete(AGENTS, 4), AgentsContinuous(AGENTS, 2)], ids=str)
def test_inactive_agents_do_nothing_even_without_an_allowed_action(layout):
    seen = seen_by(layout, 4)
    seen["agents", "active"][2, 1] = False
    if isinstance(layout, AgentsDiscrete):
        seen["action_mask"][2, 1] = False
    actor_of(layout)(seen)
    assert (seen["action"][2, 1] == 0).all()
    assert seen["action_log_prob"][2, 1] == 0


@pytest.mark.parametrize("layout", [AgentsDiscrete(AGENTS, 4), AgentsContinuous(AGENTS, 2)], ids=str)
@pytest.mark.parametrize("critic", ["node", "central", "graph"])
def test_a_model_of_3_agents_runs_on_6_without_a_rebuild(layout, critic):
    model = make_actor_critic(radius_spec(), layout, SMALL.model_copy(update={"critic": critic}))
    larger = observation(radius_spec(nodes=15), 4, agents=6)
    model.actor(larger)
    model.critic(larger)
    assert larger["action"].shape[:2] == (4, 6)
    assert larger["state_value"].shape == ((4, 1) if critic == "graph" else (4, 6, 1))


def test_the_number_of_agents_comes_from_the_mask_where_nothing_says_who_is_active():
    model = make_actor_critic(radius_spec(), AgentsDiscrete(AGENTS, 4), SMALL)
    larger = observation(radius_spec(nodes=15), 4)
    larger["action_mask"] = torch.ones(4, 5, 4, dtype=torch.bool)
    assert model.actor(larger)["action"].shape == (4, 5)


def test_bounds_of_continuous_actions():
    layout = AgentsContinuous(AGENTS, 2, -2.0, 3.0)
    action = actor_of(layout)(seen_by(layout, 500))["action"]
    assert action.min() >= -2
    assert action.max() <= 3
    assert action.min() < -1
    assert action.max() > 2


def test_the_initial_standard_deviation_is_the_configured_one():
    layout = AgentsContinuous(AGENTS, 2)
    config = SMALL.model_copy(update={"initial_std": 0.37, "policy_gain": 1e-6})
    dist = make_actor_critic(explicit_spec(), layout, config).actor.get_dist(seen_by(layout, 4))
    torch.testing.assert_close(dist.scale, torch.full_like(dist.scale, 0.37), rtol=1e-4, atol=0)
