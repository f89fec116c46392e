"""Every layout: its spec, the shape of its mask, random actions that are legal, and illegal ones found."""

import pytest
import torch
from tests.graphs.actions import contract
from tests.graphs.actions.contract import SPEC
from torchrl.data import Categorical

from edgewise.graphs.actions import (
    ActionLayout,
    AgentsContinuous,
    AgentsDiscrete,
    Choices,
    ChooseEdgePerGroup,
    ChooseFromSet,
    ChooseNode,
    DiscreteLayout,
    EdgesDiscrete,
)

MASKS = {
    ChooseNode(): [True, False, True, False],
    AgentsDiscrete(2, 3): [[True, True, False], [False, False, True]],
    AgentsContinuous(2, 2, -2.0, 3.0): None,
    EdgesDiscrete(2): [[True, False], *[[False, True]] * 3, *[[False, False]] * 2],
    ChooseEdgePerGroup(2, 2): [[True, True, False], [True, False, False]],
    ChooseFromSet(3): [True, True, False],
}
"""A mask for each layout on the graph of `observation`."""


def observation(layout, lead=(3,), *, mask=True):
    return contract.observation(layout, MASKS[layout] if mask else None, lead)


def legal(layout, actions, *, mask=True):
    return contract.legal(layout, actions, MASKS[layout] if mask else None)


def samplable(layout):
    """The mask of a layout; that of edges is empty at absent ones."""
    return None if isinstance(layout, EdgesDiscrete) else MASKS[layout]


@pytest.mark.parametrize("layout", MASKS, ids=str)
def test_actions_of_the_spec_have_the_shape_of_samples_and_masks_their_own(layout):
    contract.check_shapes(layout, samplable(layout))
    if MASKS[layout] is not None:
        assert layout.mask_shape(SPEC, num_edges=contract.EDGES) == torch.tensor(MASKS[layout]).shape


@pytest.mark.parametrize("layout", MASKS, ids=str)
@pytest.mark.parametrize("lead", [(), (200,), (4, 50)], ids=str)
def test_sampled_actions_are_legal(layout, lead):
    contract.check_samples(layout, samplable(layout), lead)


def test_a_node_must_exist_and_be_allowed():
    assert legal(ChooseNode(), [0, 1, 2, 3, -1, 4]) == [True, False, True, False, False, False]
    seen = observation(ChooseNode(), (4,))
    seen["action_mask"] = torch.ones(4, 4, dtype=torch.bool)
    assert ChooseNode().is_legal(torch.arange(4), seen, SPEC).tolist() == [True, True, True, False]


def test_active_agents_obey_the_mask_and_all_stay_in_range():
    layout = AgentsDiscrete(2, 3)
    actions = [[0, 2], [1, 2], [2, 2], [0, 0], [0, 3], [0, -1], [3, 2]]
    assert legal(layout, actions) == [True, True, False, True, False, False, False]
    assert legal(layout, [[2, 0], [3, 0]], mask=False) == [True, False]


def test_numbers_stay_within_their_bounds():
    layout = AgentsContinuous(2, 2, -2.0, 3.0)
    rows = [[-2.0, 3.0], [0.0, 3.1], [-2.1, 0.0], [float("nan"), 0.0]]
    for agent in range(2):
        action = torch.zeros(4, 2, 2)
        action[:, agent] = torch.tensor(rows)
        assert layout.is_legal(action, observation(layout, (4,)), SPEC).tolist() == [
            True,
            False,
            False,
            False,
        ]


@pytest.mark.parametrize("layout", [ChooseNode(), ChooseFromSet(3)], ids=str)
def test_one_world_without_a_choice_is_an_error(layout):
    seen = observation(layout)
    seen["action_mask"] = seen["action_mask"].clone()
    seen["action_mask"][1] = False
    with pytest.raises(ValueError, match="has no legal action"):
        layout.sample(seen, SPEC)


def test_edges_that_exist_obey_the_mask():
    layout, good = EdgesDiscrete(2), [0, 1, 1, 1, 0, 0]
    wrong = [[1, *good[1:]], [*good[:3], 0, 0, 0], [*good[:5], 2], [*good[:5], -1]]
    assert legal(layout, [good, [*good[:4], 1, 1], *wrong]) == [True, True, False, False, False, False]
    assert legal(layout, [[1] * 6, [2] * 6], mask=False) == [True, False]


def test_every_group_obeys_its_mask():
    actions = [[0, 0], [1, 0], [2, 0], [0, 1], [3, 0]]
    assert legal(ChooseEdgePerGroup(2, 2), actions) == [True, True, False, False, False]


def test_only_filled_places_of_a_set():
    assert legal(ChooseFromSet(3), [0, 1, 2, 3, -1]) == [True, True, False, False, False]


@pytest.mark.parametrize("layout", MASKS, ids=str)
def test_actions_of_another_shape_or_type_are_an_error(layout):
    contract.check_wrong_actions(layout, MASKS[layout])


@pytest.mark.parametrize("layout", [layout for layout in MASKS if layout.needs_mask], ids=str)
def test_a_missing_mask_is_an_error(layout):
    contract.check_missing_mask(layout)


def test_where_nodes_are_chosen_the_mask_is_by_default_the_nodes_there_are():
    nodes = observation(ChooseNode())["graph"]
    defined = {layout for layout in MASKS if layout.default_mask(nodes) is not None}
    assert defined == {ChooseNode()}
    for layout in defined:
        assert torch.equal(layout.default_mask(nodes), nodes["node_mask"])


def test_a_world_needs_a_legal_action():
    nothing = torch.zeros(2, 4, dtype=torch.bool)
    assert not ChooseNode().has_legal_action(nothing).any()
    agents = torch.tensor([[[True, False], [False, False]], [[True, False], [False, True]]])
    assert AgentsDiscrete(2, 2).has_legal_action(agents).tolist() == [False, True]


def test_who_acts():
    counts = {type(layout): layout.num_agents for layout in MASKS if layout.num_agents}
    assert counts == {AgentsDiscrete: 2, AgentsContinuous: 2}
    with pytest.raises(TypeError):
        AgentsDiscrete()


def test_a_layout_is_equal_to_its_like_and_cannot_be_changed():
    assert AgentsDiscrete(2, 3) == AgentsDiscrete(num_agents=2, num_actions=3)
    assert ChooseFromSet(3) != ChooseFromSet(3, "edges")
    assert len({ChooseNode(), ChooseNode(), ChooseFromSet(3)}) == 2
    with pytest.raises(AttributeError):
        AgentsDiscrete(2, 3).num_agents = 4


def test_a_layout_of_ones_own():
    class FirstOrSecond(ActionLayout):
        def spec(self, graph, *, num_envs, num_edges, device):
            return Categorical(2, shape=(num_envs,), device=device)

        def mask_shape(self, graph, *, num_edges):
            return (2,)

        def sample(self, observation, graph, *, generator=None):
            return torch.randint(2, observation.batch_size, generator=generator)

        def is_legal(self, action, observation, graph):
            return (action == 0) | (action == 1)

    seen = observation(ChooseNode())
    assert FirstOrSecond().is_legal(FirstOrSecond().sample(seen, SPEC), seen, SPEC).all()
    assert (FirstOrSecond().num_agents, FirstOrSecond().default_mask(seen["graph"])) == (0, None)


def test_a_layout_of_ones_own_from_its_choices():
    class LowerHalf(DiscreteLayout):
        def mask_shape(self, graph, *, num_edges):
            return (graph.num_nodes,)

        def choices(self, observation, graph):
            half = torch.arange(graph.num_nodes) < graph.num_nodes // 2
            return Choices(half.expand(*observation.batch_size, -1))

    contract.check_shapes(LowerHalf())
    contract.check_samples(LowerHalf(), None, (2, 3))
    assert contract.legal(LowerHalf(), [0, 1, 2, -1]) == [True, True, False, False]
    seen = observation(ChooseNode())
    assert LowerHalf().marks(torch.tensor(1), seen[0]).text == "action 1"
    assert LowerHalf().legal_nodes(seen) is None
