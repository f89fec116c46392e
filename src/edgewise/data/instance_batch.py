"""Batches of whole episodes in which every instance is stored once, and its steps refer to it.

Environments with `describe` are collected in whole episodes. Their batch is a TensorDict `[I]`, a row per
instance, with

| entry | shape | meaning |
|---|---|---|
| `graph` | `[I]` | what `describe` returned |
| `steps` | `[I, Q]` | the steps of all episodes of the instance, episode by episode |
| `steps.counted` | `[I, Q]` bool | false after the end of an episode that is shorter than the longest |

So any selection of rows keeps an instance together with its steps, and networks encode it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from tensordict import NestedKey, TensorDict, TensorDictBase
from torch import Tensor

from edgewise.graphs.keys import ACTIVE, GRAPH, STEPS

COUNTED = "counted"
"""Which steps of a batch of instances were made, `[I, Q]` bool."""


def make_instance_batch(graph: TensorDictBase, steps: TensorDictBase, counted: Tensor) -> TensorDict:
    """Return the batch of graphs `[I]` and steps `[I, Q]`."""
    return TensorDict({GRAPH: graph, STEPS: steps.set(COUNTED, counted)}, batch_size=graph.batch_size)


def is_instance_batch(batch: TensorDictBase) -> bool:
    """Return whether every instance is stored once."""
    return STEPS in batch.keys()  # noqa: SIM118 - a TensorDict iterates rows


def steps_of(batch: TensorDictBase) -> TensorDictBase:
    """Return the steps of a batch `[B, T]`; of a batch of instances `[1, M]`, those that were made."""
    if not is_instance_batch(batch):
        return batch
    steps = batch[STEPS]
    return steps.reshape(-1)[true_places(steps[COUNTED])].unsqueeze(0)


def true_places(mask: Tensor) -> Tensor:
    """Return where a mask is true, as places in the flattened batch.

    On a GPU the host waits once for them, and not for each entry that they index, as with a mask.
    """
    return mask.reshape(-1).nonzero().squeeze(-1)


def steps_with_graphs(batch: TensorDictBase) -> TensorDictBase:
    """Return the steps `[I, Q]` of a batch of instances, each with the graph of its instance."""
    steps = batch[STEPS]
    return steps.copy().set(GRAPH, batch[GRAPH].unsqueeze(1).expand(*steps.batch_size))


def restored(entries: Mapping[str, Any], *, device: torch.device | str) -> TensorDict:
    """Return a batch `[M]` or a batch of instances from plain entries, such as those of a checkpoint."""
    nested = TensorDict(dict(entries), device=device)
    batch = nested.auto_batch_size_(1).clone()
    if is_instance_batch(batch):
        batch[STEPS].batch_size = batch[STEPS, COUNTED].shape
    return batch


def with_step_values(
    batch: TensorDictBase, flat: TensorDictBase, names: Iterable[str], *, keys: Iterable[NestedKey]
) -> TensorDictBase:
    """Return a batch of instances to learn from, with entries that were computed for the steps that count.

    Steps that do not count are those of inactive agents, which no loss reads.

    Args:
        batch: as collected.
        flat: its steps that count, with the computed entries.
        names: of the computed entries.
        keys: entries of the steps to keep.
    """
    steps: TensorDictBase = batch[STEPS].select(*keys, strict=False)
    counted: Tensor = batch.get((STEPS, COUNTED))
    for name in names:
        value = flat[name].reshape(-1, *flat[name].shape[flat.batch_dims :])
        empty = value.new_zeros(*steps.batch_size, *value.shape[1:])
        mask = counted.reshape(*steps.batch_size, *(1,) * (value.dim() - 1))
        steps.set(name, empty.masked_scatter(mask, value))
    active = steps.get(ACTIVE, None)
    acts = counted.unsqueeze(-1) if active is None else active & counted.unsqueeze(-1)
    return make_instance_batch(batch[GRAPH], steps.set(ACTIVE, acts), counted)


def select_steps(batch: TensorDictBase, kept: Tensor) -> TensorDictBase:
    """Return a batch of instances with some of its steps only, in their order.

    Args:
        batch: instances `[I]` with steps `[I, Q]`.
        kept: `[I, Q]` bool. On a CPU, rows become as short as the most that an instance keeps. Elsewhere that
            would synchronise: all steps stay, and those that are not kept do not count.
    """
    steps = batch.get(STEPS)
    if kept.device.type == "cpu":
        most = max(1, int(kept.sum(1).max()))
        if most < steps.batch_size[1]:
            place = kept.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
            row = torch.arange(len(place), device=place.device).unsqueeze(-1)
            steps, kept = steps[row, place], kept.gather(1, place)
    active = steps.get(ACTIVE) & kept.unsqueeze(-1)
    return make_instance_batch(batch.get(GRAPH), steps.copy().set(ACTIVE, active), kept)


def graphs_of(batch: TensorDictBase, policy: object) -> TensorDictBase | None:
    """Return graphs as a policy encodes them: those of the instances, or of one step of each world."""
    remaining = getattr(policy, "remaining", None)
    if remaining is not None and is_instance_batch(batch):
        graph: TensorDictBase | None = remaining.of(batch.copy().set(STEPS, batch[STEPS][:, :1]))[0]
    else:
        graph = (batch if is_instance_batch(batch) else batch[..., -1]).get(GRAPH, None)
    return graph


def cat_instance_batches(batches: list[TensorDictBase]) -> TensorDictBase:
    """Return the instances of all batches, with as many steps as the longest has."""
    if len(batches) == 1:
        return batches[0]
    longest = max(batch[STEPS].batch_size[1] for batch in batches)
    steps: TensorDictBase = torch.cat([_padded(batch[STEPS], longest) for batch in batches])
    graph = torch.cat([batch[GRAPH] for batch in batches])
    return make_instance_batch(graph, steps, steps.get(COUNTED))


def _padded(steps: TensorDictBase, length: int) -> TensorDictBase:
    """Repeat the last step, which does not count, up to a length."""
    missing = length - steps.batch_size[1]
    if not missing:
        return steps
    last = steps[:, -1:].expand(len(steps), missing).clone()
    last[COUNTED] = torch.zeros_like(last[COUNTED])
    return torch.cat((steps, last), 1)
