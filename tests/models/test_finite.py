"""No distribution acts on parameters that are not finite; what is masked or padded may hold anything."""

import pytest
import torch

from edgewise.config.errors import NumericalStop
from edgewise.models.distributions.masked import JointCategorical, MaskedCategorical
from edgewise.models.distributions.ragged import RaggedCategorical
from edgewise.models.distributions.squashed import SquashedNormal

BAD = [float("nan"), float("inf"), -float("inf")]
MASK = torch.tensor([[True, False, True]])


def logits(value, place):
    found = torch.zeros(1, 3)
    found[0, place] = value
    return found


MAKERS = {
    "categorical": lambda values: MaskedCategorical(values, MASK),
    "joint": lambda values: JointCategorical(values.unsqueeze(0), MASK.unsqueeze(0)),
    "ragged": lambda values: RaggedCategorical(values[0, [0, 2, 1]], torch.tensor([0, 0, 1]), num_segments=1),
}


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", MAKERS)
def test_a_choice_that_is_allowed_must_be_finite(name, value):
    with pytest.raises(NumericalStop, match="not finite"):
        MAKERS[name](logits(value, 0))


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_masked_may_hold_anything(name, value):
    assert MAKERS[name](logits(value, 1)).sample() is not None


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("part", ["mean", "deviation"])
def test_continuous_actions_too(part, value):
    loc, scale = torch.zeros(2, 3), torch.ones(2, 3)
    (loc if part == "mean" else scale)[1, 0] = value
    with pytest.raises(NumericalStop, match="not finite"):
        SquashedNormal(loc, scale)
    counted = torch.tensor([True, False])
    assert SquashedNormal(loc, scale, counted=counted).mode[0].isfinite().all()
