"""Values of the steps of a batch of instances, whose graphs the critic encodes once."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor

from edgewise.data.instance_batch import COUNTED, make_instance_batch, true_places
from edgewise.graphs.keys import GRAPH, STEPS


def valued_steps(
    batch: TensorDictBase, critic: TensorDictModuleBase, *, steps_at_once: int
) -> TensorDictBase:
    """Return the steps of a batch of instances `[1, M]`, with `state_value` before and after each step.

    Only states at time limits are evaluated again as next states; the others are those of the step after.

    Args:
        batch: instances `[I]` with steps `[I, Q]`, whose `next` has `step`.
        critic: writes `state_value`.
        steps_at_once: largest number of steps that the critic evaluates in one call.
    """
    steps = batch[STEPS]
    rows = max(1, steps_at_once // steps.batch_size[1])
    made = true_places(steps[COUNTED])
    flat = steps.reshape(-1)[made].unsqueeze(0)
    value = _values(batch, critic, rows).flatten(0, 1)[made].unsqueeze(0)
    following = value.roll(-1, 1)
    cut_off = flat["next", "truncated"]
    if cut_off.device.type != "cpu" or bool(cut_off.any()):
        after = make_instance_batch(batch[GRAPH], steps["next"].copy(), steps[COUNTED])
        beyond = _values(after, critic, rows).flatten(0, 1)[made].unsqueeze(0)
        following = torch.where(cut_off, beyond, following)
    return flat.set("state_value", value).set(("next", "state_value"), following)


def _values(batch: TensorDictBase, critic: TensorDictModuleBase, rows: int) -> Tensor:
    """Return the values of all steps, `[I, Q, 1]`, some instances at a time."""
    return torch.cat([critic(part.copy())["state_value"] for part in batch.split(rows)])
