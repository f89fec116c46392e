"""Actions that are held: several steps of a world as one step of the environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.entries import where_rows

Hold = int | Literal["episode"]
"""Steps that an action is held for, or `episode`."""
Outcome = dict[str, Tensor]
"""`reward` and the three flags of a step."""


def check_hold(hold: object, *, max_steps: int | None, env: str) -> None:
    """Raise ConfigError if actions cannot be held so long."""
    if hold == "episode":
        if max_steps is None:
            raise ConfigError(
                f"{env}: hold is episode, and its episodes have no time limit",
                hint="give its config a field `max_steps`, or hold actions for a number of steps",
            )
    elif not isinstance(hold, int) or isinstance(hold, bool) or hold < 1:
        raise ConfigError(f"{env}: hold is {hold!r}, expected a number of steps of at least 1, or 'episode'")


def advance_held(
    advance: Callable[[dict[str, Any]], tuple[dict[str, Any], Outcome]],
    state: dict[str, Any],
    *,
    hold: Hold,
    max_steps: int | None,
    can_sync: bool,
) -> tuple[dict[str, Any], Outcome]:
    """Make the steps of one held action.

    Rewards are added up without a discount, so the discount factor of an algorithm is that of a decision. A
    world that ends stays in its last state while the others go on. If an action is held for the episode,
    nothing comes after it: a time limit then terminates.

    Args:
        advance: returns the state after one step, and its outcome.
        state: of B worlds.
        hold: steps, or `episode`.
        max_steps: time limit of an episode.
        can_sync: whether Python may branch on values of tensors, and so stop when all worlds have ended.
    """
    after, outcome = advance(state)
    steps = hold if isinstance(hold, int) else max_steps
    assert steps is not None
    for _ in range(steps - 1):
        done = outcome["done"].squeeze(-1)
        some_done = not can_sync or bool(done.any())
        if can_sync and some_done and bool(done.all()):
            break
        following, new = advance(after)
        new["reward"] = outcome["reward"] + new["reward"]
        after, outcome = (
            (where_rows(done, after, following), where_rows(done, outcome, new))
            if some_done
            else (following, new)
        )
    if hold == "episode":
        outcome["terminated"], outcome["truncated"] = outcome["done"], torch.zeros_like(outcome["done"])
    return after, outcome
