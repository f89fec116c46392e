"""Turns rollouts of many agents into single transitions: n steps of one agent of one episode, no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.graphs.keys import ACTIVE, EGO

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
"""What is read of a rollout."""
PENDING = "pending"
MOST_STEPS = 127
"""The longest window that a stored transition can say."""


class TransitionMaker:
    """Makes transitions batch after batch, each batch going on where the one before ended.

    A transition starts wherever an agent was active before a step. Its window ends after `steps` steps, or
    where the agent or its world ended, whichever comes first. Windows that run off the end of a batch are
    kept, with the last `steps - 1` steps, and come out of the next call.

    Args:
        steps: n, the longest window.
        discount: γ of one step.

    Example:
        >>> make = TransitionMaker(steps=3, discount=0.99)
        >>> first, second = make(rollout.collect()), make(rollout.collect())
    """

    def __init__(self, *, steps: int = 1, discount: float) -> None:
        if not 1 <= steps <= MOST_STEPS:
            raise ValueError(f"a transition spans 1 to {MOST_STEPS} steps, got {steps}")
        self.steps, self.discount = steps, discount
        self._carried: TensorDictBase | None = None

    def __call__(self, batch: TensorDictBase) -> TensorDictBase:
        """The transitions `[M]` whose windows are complete with this batch `[B, T]`, oldest steps first.

        See `agent_transitions` for the entries. A GPU is waited for once, to learn M.
        """
        fresh = batch.select(*NEEDED)
        fresh.set(PENDING, fresh[ACTIVE])
        played = fresh
        if self._carried is not None:
            played = TensorDict.cat((self._carried.to(fresh.device), fresh), dim=1)
        found, complete = _windows(played, steps=self.steps, discount=self.discount)
        kept = min(self.steps - 1, played.shape[1])
        if kept:
            self._carried = played[:, -kept:].clone()
            self._carried.set(PENDING, (played[PENDING] & ~complete)[:, -kept:].clone())
        return found

    def state_dict(self) -> dict[str, Any]:
        """The steps that wait for what follows them."""
        return {} if self._carried is None else self._carried.to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with those steps."""
        self._carried = None
        if state:
            size = state[PENDING].shape[:2]
            self._carried = TensorDict(dict(state), batch_size=size).clone()


def agent_transitions(batch: TensorDictBase, *, steps: int = 1, discount: float) -> TensorDictBase:
    """The transitions of one rollout `[B, T]` whose windows are complete within it, `[M]`, oldest first.

    Args:
        batch: needs `action`, `agents.active`, `agents.ego`, and under `next` the same observations with
            `reward [B, T, A, 1]`, `done`, `terminated`, `agents.terminated [B, T, A]`.
        steps: n, the longest window.
        discount: γ of one step.

    Returns:
        `ego` and `next_ego` as observed, `action`, `reward [M]` (Σ γᵏ r over the window), `steps [M]` int8
        (its length m) and `discount [M]` (γᵐ; 0 where the agent or its world terminated, but not where time
        ran out).
    """
    return TransitionMaker(steps=steps, discount=discount)(batch)


def compact(transitions: TensorDictBase) -> TensorDictBase:
    """Transitions as a replay stores them: `span [M]` int8 says length and ending instead of two numbers.

    A span of m bootstraps after m steps, one of -m ended there.
    """
    steps = transitions["steps"]
    span = torch.where(transitions["discount"] > 0, steps, -steps)
    return transitions.exclude("steps", "discount").set("span", span)


def expand(stored: TensorDictBase, *, discount: float) -> TensorDictBase:
    """Stored transitions with `steps` and `discount` again, in place; γ is that of one step."""
    span = stored["span"]
    steps = span.abs()
    return stored.set("steps", steps).set("discount", _powers(discount, steps) * (span > 0))


def _windows(played: TensorDictBase, *, steps: int, discount: float) -> tuple[TensorDictBase, Tensor]:
    """The transitions that start where `pending` says and are complete, and which are, `[B, L, A]` bool."""
    terminated = played["next", "agents", "terminated"] | played["next", "terminated"]
    ended = terminated | played["next", "done"] | ~played["next", *ACTIVE]
    reward, length = _returns(played["next", "reward"].squeeze(-1), ended, steps=steps, discount=discount)
    time = torch.arange(played.shape[1], device=length.device).unsqueeze(-1)
    last = time + length - 1
    complete = (length == steps) | ended.gather(1, last)
    # Time first, so that a ring which is full forgets the oldest steps of all worlds, not whole worlds.
    when, world, agent = (played[PENDING] & complete).transpose(0, 1).nonzero(as_tuple=True)
    here, there = (world, when, agent), (world, last[world, when, agent], agent)
    span = length[here].to(torch.int8)
    rows = {
        "ego": _at(played[EGO], here),
        "action": played["action"][here],
        "reward": reward[here],
        "next_ego": _at(played["next", *EGO], there),
        "discount": _powers(discount, span) * ~terminated[there],
        "steps": span,
    }
    return TensorDict(rows, batch_size=[len(when)], device=played.device), complete


def _returns(reward: Tensor, ended: Tensor, *, steps: int, discount: float) -> tuple[Tensor, Tensor]:
    """Discounted sums `[B, L, A]` over windows from each step on, and how many steps they hold, int64.

    Windows hold fewer than `steps` where an end, or the end of what was played, comes first.
    """
    total, length = torch.zeros_like(reward), torch.zeros_like(ended, dtype=torch.int64)
    goes_on = torch.ones_like(ended)
    for ahead in range(min(steps, reward.shape[1])):
        rest = reward.shape[1] - ahead
        goes_on = goes_on[:, :rest]
        total[:, :rest] += reward[:, ahead:] * goes_on * discount**ahead
        length[:, :rest] += goes_on
        goes_on = goes_on & ~ended[:, ahead:]
    return total, length


def _powers(base: float, exponent: Tensor) -> Tensor:
    """`base` to each of the powers, float32."""
    return torch.pow(torch.full_like(exponent, base, dtype=torch.float32), exponent)


def _at(observed: TensorDictBase, place: tuple[Tensor, ...]) -> TensorDict:
    """Each entry `[B, L, A, ...]` of an observation at `place`, `[M, ...]`."""
    entries = {name: value[place] for name, value in observed.items()}
    return TensorDict(entries, batch_size=place[0].shape, device=observed.device)
