"""The result of a step: environments return a `Transition`, from which counters and flags are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.entries import Entries
from edgewise.graphs.masks import unless_all

DONE = ("done", "terminated", "truncated")


@dataclass(frozen=True)
class Transition:
    """The result of one step of B worlds.

    Attributes:
        state: the entries of the state that change.
        reward: `[B]`, or `[B, A]` if agents act; the reward of inactive agents is ignored. A last dimension
            of size 1, as TorchRL has it, may be there too; the same holds for the flags.
        terminated: `[B]` bool, worlds that terminate; None for none. If agents act, a world also terminates
            with its last active agent.
        agents_terminated: `[B, A]` bool, agents that terminate in this step; None for none.
        truncated: `[B]` bool, worlds truncated for another reason than `max_steps`; None for none.
    """

    state: Entries
    reward: Tensor
    terminated: Tensor | None = None
    agents_terminated: Tensor | None = None
    truncated: Tensor | None = None

    def __post_init__(self) -> None:
        for name in ("terminated", "agents_terminated", "truncated"):
            flag = getattr(self, name)
            if flag is not None and flag.dtype != torch.bool:
                raise ConfigError(f"Transition.{name}: got {flag.dtype}, expected torch.bool")


def apply_transition(
    before: TensorDict, transition: Transition, *, max_steps: int | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the state after a step, and the outcome of the step: `reward` and the three flags.

    Args:
        before: the state before the step, with `step` and, if agents act, `active` and `terminated`.
        transition: from the environment's `advance`.
        max_steps: steps after which worlds are truncated; None for no limit.
    """
    after = {**dict(before.items()), **dict(transition.state.items()), "step": before.get("step") + 1}
    active = before.get("active", None)
    reward = _without_last(transition.reward, 1 if active is None else 2)
    terminated, truncated = (_without_last(flag, 1) for flag in (transition.terminated, transition.truncated))
    if active is not None:
        idle = unless_all(active)
        reward = reward if idle is None else reward.masked_fill(~idle, 0.0)
        if transition.agents_terminated is not None:
            ended = _without_last(transition.agents_terminated, 2) & active
            after["active"], after["terminated"] = active & ~ended, before.get("terminated") | ended
            none_left = ~after["active"].any(-1)
            terminated = none_left if terminated is None else terminated | none_left
    flags = _flags(after["step"], terminated, truncated, max_steps=max_steps)
    return after, {"reward": reward.unsqueeze(-1), **flags}


@overload
def _without_last(values: Tensor, dims: int) -> Tensor: ...
@overload
def _without_last(values: None, dims: int) -> None: ...
def _without_last(values: Tensor | None, dims: int) -> Tensor | None:
    """Return values of `dims` dimensions, without one more at the end if it has size 1."""
    if values is None or values.dim() != dims + 1 or values.shape[-1] != 1:
        return values
    return values.squeeze(-1)


def _flags(
    step: Tensor, terminated: Tensor | None, truncated: Tensor | None, *, max_steps: int | None
) -> dict[str, Tensor]:
    """Compute the three flags `[B, 1]`; a world that terminates is not truncated as well."""
    terminal = torch.zeros_like(step, dtype=torch.bool) if terminated is None else terminated
    if max_steps is None:
        cut_off = torch.zeros_like(terminal) if truncated is None else truncated
    else:
        cut_off = step >= max_steps if truncated is None else (step >= max_steps) | truncated
    terminal, cut_off = terminal.unsqueeze(-1), (cut_off & ~terminal).unsqueeze(-1)
    return {"done": terminal | cut_off, "terminated": terminal, "truncated": cut_off}
