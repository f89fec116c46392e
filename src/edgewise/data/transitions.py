"""Turn rollouts of many agents into n-step transitions of single agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.graphs.keys import ACTIVE, EGO, MASK

NEEDED = (
    ACTIVE,
    EGO,
    "action",
    ("next", "reward"),
    ("next", "done"),
    ("next", "terminated"),
    ("next", *ACTIVE),
    ("next", *EGO),
    ("next", "agents", "terminated"),
)
"""The entries of a rollout that transitions are made of."""
PENDING = "pending"
MAX_STEPS = 127
"""Largest n of an n-step transition, the limit of int8."""


class TransitionMaker:
    """Makes n-step transitions from consecutive batches of a rollout.

    A transition starts at every step of an active agent. It ends after `steps` steps, or at the end of the
    agent's or the world's episode. Transitions that are incomplete at the end of a batch are carried over to
    the next call.

    Args:
        steps: n, the largest number of steps of a transition.
        discount: γ of one step.

    Example:
        >>> make = TransitionMaker(steps=3, discount=0.99)
        >>> first, second = make(rollout.collect()), make(rollout.collect())
    """

    def __init__(self, *, steps: int = 1, discount: float) -> None:
        if not 1 <= steps <= MAX_STEPS:
            raise ValueError(f"a transition has 1 to {MAX_STEPS} steps, got {steps}")
        self.steps, self.discount = steps, discount
        self._carried: TensorDictBase | None = None

    def __call__(self, batch: TensorDictBase) -> TensorDictBase:
        """Return the transitions `[M]` that are complete with this batch `[B, T]`, oldest first.

        See `agent_transitions` for the entries. It synchronises a GPU once, since M depends on data.
        """
        fresh = batch.select(*NEEDED).update(batch.select(MASK, ("next", MASK), strict=False))
        fresh.set(PENDING, fresh[ACTIVE])
        rollout = fresh
        if self._carried is not None:
            rollout = TensorDict.cat((self._carried.to(fresh.device), fresh), dim=1)
        transitions, complete = _windows(rollout, steps=self.steps, discount=self.discount)
        carried = min(self.steps - 1, rollout.shape[1])
        if carried:
            self._carried = rollout[:, -carried:].clone()
            self._carried.set(PENDING, (rollout[PENDING] & ~complete)[:, -carried:].clone())
        return transitions

    def stored(self, batch: TensorDictBase) -> TensorDictBase:
        """Return the transitions that are complete with this batch in the form that is stored."""
        return compact(self(batch))

    def expand(self, stored: TensorDictBase) -> TensorDictBase:
        """Restore `steps` and `discount` of stored transitions, in place."""
        return expand(stored, discount=self.discount)

    def state_dict(self) -> dict[str, Any]:
        """Return the steps of incomplete transitions."""
        return {} if self._carried is None else self._carried.to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the steps of incomplete transitions."""
        self._carried = None
        if state:
            size = state[PENDING].shape[:2]
            self._carried = TensorDict(dict(state), batch_size=size).clone()


def agent_transitions(batch: TensorDictBase, *, steps: int = 1, discount: float) -> TensorDictBase:
    """Return the n-step transitions that are complete within one rollout `[B, T]`, `[M]`, oldest first.

    Args:
        batch: needs `action`, `agents.active`, `agents.ego`, and under `next` the same observations with
            `reward [B, T, A, 1]`, `done`, `terminated`, `agents.terminated [B, T, A]`.
        steps: n, the largest number of steps of a transition.
        discount: γ of one step.

    Returns:
        `observation`, `next_observation`, `action`, `reward [M]` (Σ γᵏ r over the steps), `steps [M]` int8
        (their number m) and `discount [M]` (γᵐ, or 0 at a termination of the agent or its world; not at a
        truncation).
    """
    return TransitionMaker(steps=steps, discount=discount)(batch)


def compact(transitions: TensorDictBase) -> TensorDictBase:
    """Convert transitions to the form that the replay buffer stores.

    One entry `span [M]` int8 replaces `steps` and `discount`: m for a transition of m steps that bootstraps,
    -m for one that ends in a termination.
    """
    steps = transitions["steps"]
    span = torch.where(transitions["discount"] > 0, steps, -steps)
    return transitions.exclude("steps", "discount").set("span", span)


def expand(stored: TensorDictBase, *, discount: float) -> TensorDictBase:
    """Restore `steps` and `discount` of stored transitions, in place; `discount` is γ of one step."""
    span = stored["span"]
    steps = span.abs()
    return stored.set("steps", steps).set("discount", powers(discount, steps) * (span > 0))


def _windows(rollout: TensorDictBase, *, steps: int, discount: float) -> tuple[TensorDictBase, Tensor]:
    """Return the complete transitions that start at a pending step, and the mask of complete ones.

    The mask is `[B, L, A]` bool.
    """
    terminated = rollout["next", "agents", "terminated"] | rollout["next", "terminated"]
    ended = terminated | rollout["next", "done"] | ~rollout["next", *ACTIVE]
    reward, length = _returns(rollout["next", "reward"].squeeze(-1), ended, steps=steps, discount=discount)
    time = torch.arange(rollout.shape[1], device=length.device).unsqueeze(-1)
    last = time + length - 1
    complete = (length == steps) | ended.gather(1, last)
    # Sorted by time first, so that a full ring buffer drops the oldest steps of all worlds, not whole worlds.
    when, world, agent = (rollout[PENDING] & complete).transpose(0, 1).nonzero(as_tuple=True)
    here, there = (world, when, agent), (world, last[world, when, agent], agent)
    span = length[here].to(torch.int8)
    rows = {
        "observation": _at(rollout, here),
        "action": rollout["action"][here],
        "reward": reward[here],
        "next_observation": _at(rollout["next"], there),
        "discount": powers(discount, span) * ~terminated[there],
        "steps": span,
    }
    return TensorDict(rows, batch_size=[len(when)], device=rollout.device), complete


def _returns(reward: Tensor, ended: Tensor, *, steps: int, discount: float) -> tuple[Tensor, Tensor]:
    """Return n-step discounted sums of rewards from each step on, `[B, L, A]`, and their lengths, int64.

    A sum has fewer than `steps` rewards if an episode or the data end earlier.
    """
    total, length = torch.zeros_like(reward), torch.zeros_like(ended, dtype=torch.int64)
    running = torch.ones_like(ended)
    for ahead in range(min(steps, reward.shape[1])):
        rest = reward.shape[1] - ahead
        running = running[:, :rest]
        total[:, :rest] += reward[:, ahead:] * running * discount**ahead
        length[:, :rest] += running
        running = running & ~ended[:, ahead:]
    return total, length


def powers(base: float, exponent: Tensor) -> Tensor:
    """Compute `base ** exponent`, float32."""
    return torch.pow(torch.full_like(exponent, base, dtype=torch.float32), exponent)


def _at(rollout: TensorDictBase, index: tuple[Tensor, ...]) -> TensorDict:
    """Return the agents' own observations `[M, ...]` at `index`, with their mask if there is one."""
    entries = {name: value[index] for name, value in rollout[EGO].items()}
    mask = rollout.get(MASK, None)
    if mask is not None:
        entries[MASK] = mask[index]
    return TensorDict(entries, batch_size=index[0].shape, device=rollout.device)
