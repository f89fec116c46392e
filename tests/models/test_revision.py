"""Given weights compute what they always did, or the revision says that they no longer do."""

import pytest
import torch
from tests.models.worlds import radius_spec, random_graph

from edgewise.graphs.actions import ChooseNode
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import REVISION, EncoderConfig, ModelConfig

COMPUTED = {
    1: {
        "transformer": (0.143063, 0.638106),
        "gnn": (0.142668, 0.232142),
        "mlp": (0.098734, 0.609620),
    }
}
"""By revision and encoder: the probability of the first action, and the value, of the first world."""


@pytest.mark.parametrize("kind", ["transformer", "gnn", "mlp"])
def test_given_weights_compute_what_they_did_when_the_revision_was_named(kind):
    probability, value = _computed(kind)
    expected = COMPUTED[REVISION][kind]
    assert (probability, value) == pytest.approx(expected, abs=2e-4), (
        "models compute something else of the same weights: raise models.config.REVISION and write it here"
    )


def _computed(kind):
    spec = radius_spec()
    model = make_actor_critic(spec, ChooseNode(), ModelConfig(encoder=EncoderConfig(kind=kind, hidden=16)))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            wave = torch.arange(parameter.numel(), dtype=torch.float32) * 0.7 + number
            parameter.copy_(wave.sin().view_as(parameter) * 0.3)
        graph = random_graph(spec, 2, full=True)
        world = graph.new_empty(2).exclude(*graph.keys()).set("graph", graph)
        distribution, values = model.evaluate(world)
    return distribution.probs[0, 0].item(), values[0, 0].item()
