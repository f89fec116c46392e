"""Transitions of environments that describe an instance once: each row has several steps of one instance."""

from __future__ import annotations

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.data.instance_batch import COUNTED
from edgewise.data.transitions import CUT, Transitions, powers, unpacked
from edgewise.graphs.keys import GRAPH, STEPS

STEPS_PER_ROW = 8
"""Steps of an instance in a row of a replay buffer: its graph is stored and encoded once for all of them."""
MADE = "made"
"""Which steps of a row were made; an episode need not fill its last row."""


class InstanceTransitions(Transitions):
    """Makes rows of n-step transitions from whole episodes, `STEPS_PER_ROW` of one instance in each.

    The steps of an episode are dealt to its rows in turn, so that a row has early and late ones.
    """

    def stored(self, batch: TensorDictBase) -> TensorDict:
        """Return the rows `[M]` of a batch of instances `[I]`, in which every episode has ended.

        It synchronises a GPU once, since M depends on data.

        Returns:
            `graph`, once per row, and for each of its Q steps, `[M, Q]`, the entries of
            `Transitions.stored` without the graph, and `made` bool.
        """
        rollout, counted = self._select(batch[STEPS]), batch[STEPS, COUNTED]
        instance, when, made = deal(counted, STEPS_PER_ROW)
        terminated = self._terminated(rollout)
        reward, length = self._returns(rollout, self._ended(rollout, terminated))
        time = torch.arange(counted.shape[1], device=counted.device)
        last = time.reshape(-1, *(1,) * (length.dim() - 2)) + length - 1
        world = instance.unsqueeze(-1).expand_as(when)
        here = (world, when)
        there = (world, last[here])
        graph = TensorDict({GRAPH: batch[GRAPH][instance]}, batch_size=instance.shape)
        rows = {
            **dict(self._in_few_bytes(graph).items()),
            "observation": self._at(rollout, here),
            "next_observation": self._at(rollout["next"], there),
            "action": self._packed("action", rollout["action"][here]),
            "reward": reward[here],
            "terminated": terminated[there],
            "span": length[here].to(torch.int8) * self._sign(rollout, here, there),
            MADE: made,
        }
        return TensorDict(rows, batch_size=instance.shape, device=rollout.device)

    def expand(self, stored: TensorDictBase) -> TensorDict:
        """Return rows of the replay buffer as algorithms take them, with observations `[M, Q]`.

        Integers are int64 again, and `discount` (± γᵐ, or 0 at a termination) and `steps` replace `span` and
        `terminated`. The graph is the same tensor in all steps of a row.
        """
        span, terminated = stored["span"], stored["terminated"]
        discount = powers(self.discount, span.abs()) * span.sign()
        discount = discount.reshape(*span.shape, *(1,) * (terminated.dim() - 2)) * ~terminated
        samples = stored.exclude("span", "terminated", GRAPH)
        graph = stored[GRAPH].apply(unpacked)
        graph = graph.unsqueeze(1).expand(*span.shape)
        for name in ("observation", "next_observation"):
            seen = stored[name].apply(unpacked)
            seen.batch_size = span.shape  # a restored buffer knows its first dimension only
            samples.set(name, seen.set(GRAPH, graph))
        samples.set("action", unpacked(stored["action"]))
        return samples.set("discount", discount).set("steps", span.abs())

    def _select(self, batch: TensorDictBase) -> TensorDictBase:
        chosen = super()._select(batch)
        return chosen.set(CUT, torch.zeros(chosen.batch_size, dtype=torch.bool, device=chosen.device))


def deal(counted: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Deal the steps of each instance to as few rows of `size` steps as they need, in turn.

    Args:
        counted: `[I, Q]` bool, the steps that were made.
        size: steps of a row.

    Returns:
        The instance of each row `[M]`; its steps `[M, size]`, numbers below Q; and which of them were made.
        The others repeat one that was.

    Example:
        >>> deal(torch.tensor([[True, True, True, False]]), 2)[1:]
        (tensor([[0, 2],
                [1, 1]]), tensor([[ True,  True],
                [ True, False]]))
    """
    steps = counted.sum(1)
    rows = -(-steps // size)
    instance = torch.repeat_interleave(rows)
    turn = torch.arange(len(instance), device=counted.device) - (rows.cumsum(0) - rows)[instance]
    rank = turn.unsqueeze(-1) + rows[instance].unsqueeze(-1) * torch.arange(size, device=counted.device)
    made = rank < steps[instance].unsqueeze(-1)
    place = counted.byte().argsort(dim=1, descending=True, stable=True)
    return instance, place[instance.unsqueeze(-1), torch.where(made, rank, turn.unsqueeze(-1))], made
