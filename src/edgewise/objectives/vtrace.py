"""V-trace: value targets and advantages from steps that older weights made, as pure functions."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.objectives.masked import mean_of_all
from edgewise.objectives.returns import discounted_scan
from edgewise.scale.processes.group import ALONE, Group


def vtrace(
    reward: Tensor,
    value: Tensor,
    *,
    next_value: Tensor,
    log_ratio: Tensor,
    done: Tensor,
    terminated: Tensor,
    gamma: float,
    lmbda: float = 1.0,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
    active: Tensor | None = None,
    time_dim: int = -1,
) -> tuple[Tensor, Tensor]:
    """Compute V-trace advantages and value targets (https://arxiv.org/abs/1802.01561), without gradient.

    The target is `v_t = V_t + Σ_{k ≥ t} γ^{k-t} (Π_{t ≤ i < k} c_i) δ_k` up to the end of the episode or of
    the data, with `δ_k = ρ_k (r_k + γ V'_k - V_k)`, `ρ = min(clip_rho, π / μ)` and
    `c = λ min(clip_c, π / μ)`. The advantage is `ρ_t (r_t + γ v'_t - V_t)`, where v' is the target of the
    next step, or V' at a truncation and at the end of the data. V' and v' are zero at a termination.

    On steps of the policy itself the target equals that of GAE(λ).

    Args:
        reward: `[..., T, ...]`.
        value: same shape, of the state before each step.
        next_value: same shape, of the state after each step; at a truncation, of the last state of the
            episode.
        log_ratio: same shape, `log π(a_t | s_t) - log μ(a_t | s_t)`, where μ made the step.
        done: same shape, bool.
        terminated: same shape, bool.
        gamma: discount factor.
        lmbda: trace decay λ.
        clip_rho: upper bound of ρ, which decides whose value is learnt: infinity for that of π.
        clip_c: upper bound of c, which decides how fast.
        active: same shape, bool; an inactive agent has the target `value` and the advantage zero, and no
            trace reaches it. None if all are active.
        time_dim: the dimension of time.

    Returns:
        Advantages and value targets, both in the shape of `value`.

    Example:
        >>> zeros, never = torch.zeros(3), torch.zeros(3, dtype=torch.bool)
        >>> advantage, target = vtrace(
        ...     torch.ones(3), zeros, next_value=zeros, log_ratio=torch.tensor([2.0, 0.5, 1.0]).log(),
        ...     done=never, terminated=never, gamma=1.0,
        ... )
        >>> target
        tensor([2.0000, 1.0000, 1.0000])
    """
    stop = done | terminated
    present = torch.ones_like(stop) if active is None else active
    ratio = log_ratio.masked_fill(~present, 0.0).exp()
    rho = ratio.clamp(max=clip_rho).masked_fill(~present, 0.0)
    bootstrap = gamma * next_value.masked_fill(terminated, 0.0)
    error = torch.where(present, rho * (reward + bootstrap - value), 0.0)
    follows = ~stop & present.roll(-1, time_dim)
    follows.select(time_dim, -1).fill_(False)
    decay = (gamma * lmbda * ratio.clamp(max=clip_c)).masked_fill(~(follows & present), 0.0)
    target = value + discounted_scan(error, decay, time_dim=time_dim)
    ahead = torch.where(follows, gamma * target.roll(-1, time_dim), bootstrap)
    advantage = torch.where(present, rho * (reward + ahead - value), 0.0)
    return advantage.detach(), target.detach()


def importance_statistics(
    log_ratio: Tensor, mask: Tensor | None = None, *, group: Group = ALONE
) -> dict[str, Tensor]:
    """Compute statistics of importance weights, 0-d each.

    Args:
        log_ratio: logarithms of the weights, any shape.
        mask: same shape, bool, those that count; None if all do.
        group: processes whose weights count too.

    Returns:
        `importance` and `importance_max`, the mean and the largest weight; `importance_clipped`, the share
        above 1; and `importance_effective`, the effective number of samples as a share of their number.
    """
    ratio = log_ratio.exp()
    mean, square = (mean_of_all(ratio**power, mask, group=group) for power in (1, 2))
    largest = ratio if mask is None else ratio.masked_fill(~mask, 0.0)
    return {
        "importance": mean,
        "importance_max": group.max(largest.amax()),
        "importance_clipped": mean_of_all((ratio > 1).float(), mask, group=group),
        "importance_effective": mean.square() / square.clamp_min(torch.finfo(square.dtype).tiny),
    }
