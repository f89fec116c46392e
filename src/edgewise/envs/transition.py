"""What a step does: an environment says it as a `Transition`; counters, agents and flags follow here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.packing import Entries

DONE = ("done", "terminated", "truncated")


@dataclass(frozen=True)
class Transition:
    """What one step does to B worlds.

    Attributes:
        state: the entries of the state that the step changes; the others stay as they were.
        reward: `[B]`, or `[B, A]` where agents act; what inactive agents are given is ignored.
        terminated: `[B]` bool, worlds that ended; None for none. Where agents act, a world also ends with its
            last active agent.
        agents_terminated: `[B, A]` bool, agents that ended in this step; None for none.
        truncated: `[B]` bool, worlds cut off for another reason than `max_steps`; None for none.
    """

    state: Entries
    reward: Tensor
    terminated: Tensor | None = None
    agents_terminated: Tensor | None = None
    truncated: Tensor | None = None


def follow(
    before: TensorDict, moved: Transition, *, max_steps: int | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The state after a step, and what the step gives: `reward` and the three flags.

    Args:
        before: the state it starts from, with `step` and, where agents act, `active` and `terminated`.
        moved: what the environment says.
        max_steps: where worlds are cut off.
    """
    after = {**dict(before.items()), **dict(moved.state.items()), "step": before.get("step") + 1}
    reward, terminated = moved.reward, moved.terminated
    active = before.get("active", None)
    if active is not None:
        reward = reward.masked_fill(~active, 0.0)
        if moved.agents_terminated is not None:
            ended = moved.agents_terminated & active
            after["active"], after["terminated"] = active & ~ended, before.get("terminated") | ended
            nobody = ~after["active"].any(-1)
            terminated = nobody if terminated is None else terminated | nobody
    flags = _flags(after["step"], terminated, moved.truncated, max_steps=max_steps)
    return after, {"reward": reward.unsqueeze(-1), **flags}


def _flags(
    step: Tensor, terminated: Tensor | None, truncated: Tensor | None, *, max_steps: int | None
) -> dict[str, Tensor]:
    """The three flags `[B, 1]`; a world that ends by itself is not called cut off as well."""
    over = torch.zeros_like(step, dtype=torch.bool) if terminated is None else terminated
    cut = torch.zeros_like(over) if max_steps is None else step >= max_steps
    if truncated is not None:
        cut = cut | truncated
    over, cut = over.unsqueeze(-1), (cut & ~over).unsqueeze(-1)
    return {"done": over | cut, "terminated": over, "truncated": cut}
