"""The head of sets: shapes, batches and singles, gradients, and sets that obey mask and edges."""

import pytest
import torch
from tests.models.worlds import NODES, explicit_spec, observation

from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.queueing.actions import ChooseIndependentSet

SMALL = ModelConfig(encoder=EncoderConfig(hidden=8, heads=2, layers=1), head_hidden=(8,), policy_gain=1.0)


def played(*lead):
    """An actor, and an observation on which it has acted."""
    seen = observation(explicit_spec(edges=20), *lead, seed=0)
    generator = torch.Generator().manual_seed(0)
    seen["action_mask"] = torch.rand(*lead, NODES, generator=generator) < 0.6
    torch.manual_seed(0)
    actor = make_actor_critic(explicit_spec(edges=20), ChooseIndependentSet(), SMALL).actor
    return actor, actor(seen)


@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
def test_shapes_of_actions_log_probs_and_entropies(lead):
    actor, seen = played(*lead)
    dist = actor.get_dist(seen)
    assert seen["action"].shape == dist.mode.shape == (*lead, NODES)
    assert seen["action"].dtype == dist.mode.dtype == torch.bool
    assert seen["action_log_prob"].shape == dist.entropy().shape == lead
    assert torch.equal(dist.log_prob(seen["action"]), seen["action_log_prob"])


def test_batch_equals_singles():
    actor, seen = played(5)
    for world in seen:
        single = actor.get_dist(world).log_prob(world["action"])
        torch.testing.assert_close(single, world["action_log_prob"], rtol=1e-5, atol=1e-5)


def test_gradient_reaches_every_parameter():
    actor, seen = played(32)
    seen["action_log_prob"].sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in actor.parameters())


def test_sets_obey_the_mask_and_have_no_edge_inside():
    _, seen = played(500)
    action = seen["action"]
    assert not (action & ~seen["action_mask"]).any()
    source, target = seen["graph", "edge_index"].unbind(-2)
    both = action.gather(-1, source) & action.gather(-1, target) & seen["graph", "edge_mask"]
    assert not both.any()
    assert action.any()
