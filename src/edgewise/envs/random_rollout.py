"""Random rollouts of environments and their comparison, for checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor

STEPS = 12
SEED = 20


def random_policy(env: Any) -> Callable[[TensorDictBase], TensorDictBase]:
    """Return a random policy with a fixed seed."""
    generator = torch.Generator(env.device).manual_seed(SEED)

    def act(root: TensorDictBase) -> TensorDictBase:
        return root.set("action", env.actions.sample(root, env.graph, generator=generator))

    return act


def rollout(env: Any, steps: int = STEPS) -> Iterator[tuple[TensorDictBase, TensorDictBase]]:
    """Yield root and next of every step of a random rollout with resets."""
    act, root = random_policy(env), env.reset()
    for _ in range(steps):
        stepped, root = env.step_and_maybe_reset(act(root))
        yield stepped.exclude("next"), stepped["next"]


def differing(left: TensorDictBase, right: TensorDictBase) -> dict[str, Tensor]:
    """Return which rows `[B]` bool differ, by dotted name of the entries that do; NaN equals NaN."""
    found = {}
    for name in left.keys(include_nested=True, leaves_only=True):
        mine, other = left[name], right[name]
        if mine.shape != other.shape:
            same = torch.zeros(len(mine), 1, dtype=torch.bool, device=mine.device)
        else:
            same = (mine == other) | ((mine != mine) & (other != other))
        if not same.all():
            found[name if isinstance(name, str) else ".".join(name)] = ~same.reshape(len(same), -1).all(-1)
    return found


def same_rollouts(first: Any, second: Any) -> bool:
    """Return whether two environments have the same random rollout from one seed."""
    for env in (first, second):
        env.set_seed(SEED)
    for pair, other in zip(rollout(first), rollout(second), strict=True):
        if any(differing(left, right) for left, right in zip(pair, other, strict=True)):
            return False
    return True
