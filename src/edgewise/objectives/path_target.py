"""Retrace(λ) for stored transitions of several steps, whose target policy is greedy."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.objectives.retrace import retrace_target


def path_target(
    samples: TensorDictBase,
    *,
    next_value: Tensor,
    path_value: Tensor,
    path_best: Tensor,
    followed: Tensor,
    active: Tensor | None = None,
    gamma: float,
    lmbda: float,
) -> Tensor:
    """Compute the target of Retrace(λ) for the first step of every transition, `[*D]`, without gradient.

    A greedy policy takes its action with probability 1, so `min(1, π / μ)` is 1 where an action is greedy and
    0 elsewhere, whatever the probability μ with which it was taken.

    Args:
        samples: transitions `[M]` of up to n steps with `rewards [M, n]` or `[M, n, A]`, `steps [M]`,
            `discount [*D]`, and `path [M, n - 1]`; see `Transitions`.
        next_value: `[*D]`, the largest value at the end of the transition.
        path_value: `[M * (n - 1)]` or `[M * (n - 1), A]`, the value of the action of every step after the
            first.
        path_best: same shape, the largest value there.
        followed: same shape, bool, where the action is greedy.
        active: same shape, bool, where a decider acts; its episode has terminated before otherwise.
        gamma: discount factor.
        lmbda: trace decay λ.
    """
    rewards, discount, steps = samples["rewards"], samples["discount"], samples["steps"]
    count, length = rewards.shape[:2]
    lead, tail = (count, length - 1), path_value.shape[1:]
    path_value, path_best = path_value.reshape(*lead, *tail), path_best.reshape(*lead, *tail)
    sign = samples.get(("path", "sign"), None)
    if sign is not None:
        sign = sign.reshape(*lead, *[1] * len(tail))
        path_value, path_best = path_value * sign, path_best * sign
    end = (next_value * discount.sign()).unsqueeze(1)  # zero at a termination, as is the discount
    last = torch.arange(length, device=steps.device) == steps.unsqueeze(-1) - 1
    last = last.reshape(count, length, *[1] * len(tail)).expand(count, length, *tail)
    gone = torch.zeros_like(last)
    if active is not None:
        gone[:, :-1] = ~active.reshape(*lead, *tail)
    trace = torch.where(followed.reshape(*lead, *tail), 0.0, -torch.inf)
    first = torch.zeros_like(end)
    found = retrace_target(
        rewards.reshape(count, length, *rewards.shape[2:], *[1] * (len(tail) + 2 - rewards.dim())).expand_as(
            last
        ),
        torch.cat((first, path_value), 1),
        next_value=torch.where(last, end, torch.cat((path_best, end), 1)),
        log_ratio=torch.cat((first, trace), 1),
        done=last,
        terminated=gone & ~last,
        gamma=gamma,
        lmbda=lmbda,
        time_dim=1,
    )
    return found[:, 0]
