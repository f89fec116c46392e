"""Which decisions of a batch a policy learns from: those of active agents, unless an expert intervened.

Also what PPO needs beyond one process and fresh batches: weights of the losses of several processes, and the
correction of batches that older weights collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torch.distributions import Distribution

from edgewise.data.intervention import INTERVENED
from edgewise.graphs.keys import ACTIVE, STALENESS, STEPS
from edgewise.graphs.masks import unless_all
from edgewise.graphs.ragged import stored_bytes
from edgewise.models.actor_critic import Actor
from edgewise.objectives.alignment import expand_agent_mask, match_shape
from edgewise.objectives.vtrace import importance_statistics
from edgewise.scale.processes.group import Group

WEIGHTS = "loss_weights"
"""Weights of the policy loss and of the value loss in a minibatch, if several processes learn together."""
SHUFFLED_AT_ONCE = 2**22
"""Bytes up to which all samples are shuffled at once: one operation per entry, and not one per minibatch."""


def log_ratio_of(distribution: Distribution, samples: TensorDictBase) -> tuple[Tensor, Tensor | None]:
    """Return the log-ratio of new to old probability of the actions, and the mask of the policy's actions.

    The log-ratio is zero where an agent is inactive or an expert intervened. The mask is None if all count.
    """
    log_ratio = distribution.log_prob(samples["action"]) - samples["action_log_prob"]
    mask = action_mask(samples, like=log_ratio)
    return log_ratio if mask is None else log_ratio.masked_fill(~mask, 0.0), mask


def action_mask(samples: TensorDictBase, *, like: Tensor) -> Tensor | None:
    """Return where an active agent took an action of the policy, in the shape of `like`; None if all did."""
    active, intervened = samples.get(ACTIVE, None), samples.get(INTERVENED, None)
    mask = unless_all(expand_agent_mask(active, like, batch_dims=samples.batch_dims))
    if intervened is None:
        return mask
    own = ~match_shape(intervened, like, batch_dims=samples.batch_dims, name=INTERVENED)
    return own if mask is None else mask & own


def max_ratio(log_ratio: Tensor) -> Tensor:
    """Return the largest of all ratios and their inverses, 0-d, at least 1 and at most e^80.

    A number that became improbable has a ratio near zero, whose inverse does not fit into a float.
    """
    return log_ratio.abs().amax().clamp(max=80.0).exp()


def minibatches_of(
    samples: TensorDictBase, parts: Iterable[Tensor], *, group: Group
) -> Iterator[TensorDictBase]:
    """Yield the samples of each part, indices `[M]`.

    With several processes, each minibatch also has the weights of its losses, so that the mean over processes
    of weighted losses is the loss of all their decisions. One process does not count its decisions: that
    takes time, and all weights are 1.
    """
    parts = tuple(parts)
    if group.size == 1 and stored_bytes(samples) <= SHUFFLED_AT_ONCE:
        yield from samples[torch.cat(parts)].split([len(part) for part in parts])
        return
    if group.size == 1:
        yield from (samples[part] for part in parts)
        return
    weights = group.weights(torch.stack([_counts(samples, part) for part in parts]))
    for part, weight in zip(parts, weights, strict=True):
        minibatch = samples[part]
        yield minibatch.set(WEIGHTS, weight.expand(*minibatch.batch_size, 2))


def loss_weights(samples: TensorDictBase) -> tuple[Tensor | float, Tensor | float]:
    """Return the weights of the policy loss and of the value loss of a minibatch; 1 in a single process."""
    weights = samples.get(WEIGHTS, None)
    if weights is None:
        return 1.0, 1.0
    of_policy, of_value = weights.reshape(-1, 2)[0]
    return of_policy, of_value


def times(weight: Tensor | float, value: Tensor) -> Tensor:
    """Return `weight * value`, without an operation if the weight is the 1 of a single process."""
    return value if isinstance(weight, float) and weight == 1.0 else weight * value


def corrected(
    batch: TensorDictBase, policy: Actor, *, minibatch_size: int, group: Group
) -> tuple[TensorDictBase, dict[str, Tensor]]:
    """Give a batch the probabilities of its actions under the current weights, if it may be older.

    Args:
        batch: a rollout; older weights may have made it if it has `staleness`.
        policy: the policy that learns.
        minibatch_size: samples that it evaluates at once.
        group: the processes that learn together.

    Returns:
        The batch, with `log_ratio` of the current to the collecting weights; and statistics of the ratio,
        the importance weight of V-trace before it is clipped.
    """
    if batch.get(STALENESS, None) is None:
        return batch, {}
    read = (*policy.in_keys, "action", "action_log_prob", ACTIVE, INTERVENED)
    samples = batch.select(*read, strict=False).reshape(-1)
    found = [log_ratio_of(policy.get_dist(part), part) for part in samples.split(minibatch_size)]
    log_ratio = torch.cat([ratio for ratio, _ in found])
    masks = [mask for _, mask in found if mask is not None]
    importance = importance_statistics(log_ratio, torch.cat(masks) if masks else None, group=group)
    log_ratio = log_ratio.unflatten(0, batch.batch_size)
    batch = batch.copy().set("log_ratio", log_ratio)
    return batch.set("action_log_prob", batch["action_log_prob"] + log_ratio), importance


def _counts(samples: TensorDictBase, part: Tensor) -> Tensor:
    """Count the entries that the policy loss and the value loss of some samples average, `[2]` int64."""
    names = (ACTIVE, INTERVENED, "action_log_prob", "state_value")
    read = samples.get(STEPS, samples).select(*names, strict=False)[part]
    action, value = read["action_log_prob"], read["state_value"]
    masks = (
        action_mask(read, like=action),
        expand_agent_mask(read.get(ACTIVE, None), value, batch_dims=read.batch_dims),
    )
    ones = (torch.ones_like(each, dtype=torch.bool) for each in (action, value))
    return torch.stack([(one if mask is None else mask).sum() for mask, one in zip(masks, ones, strict=True)])
