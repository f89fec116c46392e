"""What every action layout must do, on one small graph; tests of layouts call these."""

import pytest
import torch
from tensordict import TensorDict

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec

SPEC = GraphSpec(4, 1, edges=Explicit(6))
EDGES = 6


def observation(layout, mask=None, lead=(3,)):
    """A path 0 - 1 - 2 with an absent fourth node, in every world; the second agent is inactive."""
    graph = SPEC.zeros(*lead)
    graph["node_mask"][..., :3] = True
    graph["edge_index"][..., :4] = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph["edge_mask"][..., :4] = True
    seen = TensorDict({"graph": graph, "n_actions": torch.full(lead, 2)}, batch_size=lead)
    if layout.num_agents:
        seen["agents"] = TensorDict({"active": torch.tensor([True, False]).expand(*lead, 2)}, batch_size=lead)
    if mask is not None:
        allowed = torch.tensor(mask)
        seen["action_mask"] = allowed.expand(*lead, *allowed.shape)
    return seen


def legal(layout, actions, mask=None):
    """Whether each of `actions`, one per world, is legal."""
    action = torch.tensor(actions)
    return layout.is_legal(action, observation(layout, mask, (len(action),)), SPEC).tolist()


def spec_of(layout):
    return layout.spec(SPEC, num_envs=3, num_edges=EDGES, device=torch.device("cpu"))


def check_shapes(layout, mask=None):
    """Actions of the spec have the shape of samples, and masks that of the layout."""
    spec = spec_of(layout)
    action = layout.sample(observation(layout, mask), SPEC, generator=torch.Generator().manual_seed(0))
    assert (action.shape, action.dtype) == (spec.shape, spec.dtype)
    assert spec.is_in(action)
    if mask is not None:
        assert layout.mask_shape(SPEC, num_edges=EDGES) == torch.tensor(mask).shape


def check_samples(layout, mask, lead):
    """Sampled actions are legal."""
    seen = observation(layout, mask, lead)
    action = layout.sample(seen, SPEC, generator=torch.Generator().manual_seed(1))
    allowed = layout.is_legal(action, seen, SPEC)
    assert allowed.shape == lead
    assert allowed.all()


def check_wrong_actions(layout, mask):
    """Actions of another shape or type are an error."""
    seen, zero = observation(layout, mask), spec_of(layout).zero()
    for wrong in (zero[:2], zero.to(torch.int16), zero.unsqueeze(-1)):
        with pytest.raises(ValueError, match="the action must be"):
            layout.is_legal(wrong, seen, SPEC)


def check_missing_mask(layout):
    """A missing mask is an error."""
    seen, message = observation(layout), f"{type(layout).__name__} needs `action_mask`"
    with pytest.raises(ValueError, match=message):
        layout.is_legal(spec_of(layout).zero(), seen, SPEC)
    with pytest.raises(ValueError, match=message):
        layout.sample(seen, SPEC)
