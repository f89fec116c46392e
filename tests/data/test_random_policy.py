"""Random actions are legal in every layout, and each legal one comes up as often as the next."""

import pytest
import torch
from tensordict import TensorDict

from edgewise.data.random_policy import RandomPolicy
from edgewise.graphs.actions import (
    AgentsContinuous,
    AgentsDiscrete,
    ChooseEdgePerGroup,
    ChooseFromSet,
    ChooseNode,
    EdgesDiscrete,
)
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec

SPEC = GraphSpec(4, 1, edges=Explicit(6))
WORLDS = 3000


def observation(mask=None, lead=(WORLDS,)):
    """A path 0 - 1 - 2 with an absent fourth node, in every world."""
    graph = SPEC.zeros(*lead)
    graph["node_mask"][..., :3] = True
    graph["edge_index"][..., :4] = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph["edge_mask"][..., :4] = True
    seen = TensorDict({"graph": graph}, batch_size=lead)
    return (
        seen
        if mask is None
        else seen.set("action_mask", torch.tensor(mask).expand(*lead, *torch.tensor(mask).shape))
    )


def shares(actions, count):
    return torch.bincount(actions.flatten(), minlength=count) / actions.numel()


@pytest.mark.parametrize("layout", [ChooseNode(), ChooseFromSet(4)])
def test_one_of_the_allowed(layout):
    seen = observation([True, False, True, False])
    action = RandomPolicy(layout, SPEC, seed=0)(seen)["action"]
    assert action.shape == (WORLDS,)
    assert shares(action, 4) == pytest.approx(torch.tensor([0.5, 0.0, 0.5, 0.0]), abs=0.04)


def test_each_agent_and_each_group_by_its_own_mask():
    mask = [[True, True, False], [False, False, True]]
    for layout in (AgentsDiscrete(2, 3), ChooseEdgePerGroup(2, 2)):
        action = RandomPolicy(layout, SPEC, seed=0)(observation(mask))["action"]
        assert action.shape == (WORLDS, 2)
        assert shares(action[:, 0], 3) == pytest.approx(torch.tensor([0.5, 0.5, 0.0]), abs=0.04)
        assert (action[:, 1] == 2).all()


def test_without_a_mask_everything_is_allowed():
    agents = RandomPolicy(AgentsDiscrete(2, 3), SPEC, seed=0)(observation())["action"]
    edges = RandomPolicy(EdgesDiscrete(2), SPEC, seed=0)(observation())["action"]
    assert shares(agents, 3) == pytest.approx(torch.full((3,), 1 / 3), abs=0.04)
    assert edges.shape == (WORLDS, 6)
    assert shares(edges, 2) == pytest.approx(torch.full((2,), 1 / 2), abs=0.04)


def test_continuous_actions_fill_their_interval():
    action = RandomPolicy(AgentsContinuous(2, 3, low=-2.0, high=4.0), SPEC, seed=0)(observation())["action"]
    assert action.shape == (WORLDS, 2, 3)
    assert action.min() >= -2
    assert action.max() <= 4
    assert action.mean().item() == pytest.approx(1.0, abs=0.1)
    assert action.var().item() == pytest.approx(3.0, abs=0.1)


def test_any_leading_dimensions():
    seen = observation([True, False, True, False], lead=(2, 3, 5))
    assert RandomPolicy(ChooseNode(), SPEC)(seen)["action"].shape == (2, 3, 5)


def test_nothing_allowed_names_the_world():
    seen = observation([True, False, True, False], lead=(4,))
    seen["action_mask"] = seen["action_mask"].clone()
    seen["action_mask"][2] = False
    with pytest.raises(ValueError, match="world 2 has no legal action"):
        RandomPolicy(ChooseNode(), SPEC)(seen)


def test_a_layout_that_needs_a_mask_says_so():
    with pytest.raises(ValueError, match="ChooseNode needs `action_mask`"):
        RandomPolicy(ChooseNode(), SPEC)(observation())


def test_seeds():
    seen = observation([True, True, True, False])
    first, again, other = (
        RandomPolicy(ChooseNode(), SPEC, seed=seed)(seen.copy())["action"] for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
