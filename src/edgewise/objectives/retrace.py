"""Retrace(λ): targets of action values from steps that another policy made, as a pure function."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.objectives.returns import discounted_scan


def retrace_target(
    reward: Tensor,
    value: Tensor,
    *,
    next_value: Tensor,
    log_ratio: Tensor,
    done: Tensor,
    terminated: Tensor,
    gamma: float,
    lmbda: float,
    active: Tensor | None = None,
    time_dim: int = -1,
) -> Tensor:
    """Compute the targets of Retrace(λ) (https://arxiv.org/abs/1606.02647), without gradient.

    `Q_t + Σ_{k ≥ t} γ^{k-t} (Π_{t < i ≤ k} c_i) δ_k` up to the end of the episode or of the data, with
    `c_i = λ min(1, π_i / μ_i)` and `δ_k = r_k + γ V'_k - Q_k`, where V' is zero at a termination.

    The weight of the first step is not used: its action is given. So `lmbda=0` is the one-step target, and on
    steps of the policy itself `lmbda=1` is the n-step return over the data.

    Args:
        reward: `[..., T, ...]`.
        value: same shape, `Q(s_t, a_t)` of the action taken.
        next_value: same shape, the mean of `Q(s_{t+1}, ·)` under the policy π that is learnt; at a
            truncation, in the last state of the episode.
        log_ratio: same shape, `log π(a_t | s_t) - log μ(a_t | s_t)`, where μ made the step.
        done: same shape, bool.
        terminated: same shape, bool.
        gamma: discount factor.
        lmbda: trace decay λ.
        active: same shape, bool; the target of an inactive agent is its value, and no trace reaches it. None
            if all are active.
        time_dim: the dimension of time.

    Example:
        >>> zeros, never = torch.zeros(3), torch.zeros(3, dtype=torch.bool)
        >>> retrace_target(
        ...     torch.ones(3), zeros, next_value=zeros, log_ratio=torch.tensor([9.0, 0.5, 0.5]).log(),
        ...     done=never, terminated=never, gamma=1.0, lmbda=1.0,
        ... )
        tensor([1.7500, 1.5000, 1.0000])
    """
    error = reward + gamma * next_value.masked_fill(terminated, 0.0) - value
    weight = lmbda * log_ratio.clamp(max=0.0).exp()
    stop = done | terminated
    if active is not None:
        error, weight = error.masked_fill(~active, 0.0), weight.masked_fill(~active, 0.0)
    decay = (gamma * weight.roll(-1, time_dim)).masked_fill(stop, 0.0)
    target = value + discounted_scan(error, decay, time_dim=time_dim)
    return (target if active is None else torch.where(active, target, value)).detach()
