"""How much of a return's lower tail a robot looks at: all, a fixed share, or less the nearer danger is."""

from __future__ import annotations

from typing import Protocol

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.models.agents.ego import nearest_gap


class Risk(Protocol):
    """How much risk to take, as a config says it."""

    @property
    def risk(self) -> str:
        """`mean`, `cvar` or `adaptive`."""

    @property
    def risk_alpha(self) -> float:
        """The smallest share of returns that is looked at."""

    @property
    def risk_reach(self) -> float:
        """Metres between hulls from which on `adaptive` looks at all of them."""

    @property
    def robot_radius(self) -> float:
        """Of the robot's hull, in metres."""


def tail_share(ego: TensorDictBase, risk: Risk, *, metres: tuple[float, float]) -> Tensor | None:
    """The share of the worst returns whose mean decides, `[*B]` in (0, 1], or None for all of them.

    Args:
        ego: what is seen.
        risk: `mean` for all returns; `cvar` for the worst `risk_alpha`; `adaptive` for a share that falls
            from 1, where the nearest object is farther than `risk_reach`, in proportion down to `risk_alpha`.
        metres: see `EgoConfig.metres`.
    """
    if risk.risk == "mean":
        return None
    if risk.risk == "cvar":
        return torch.full(ego["mask"].shape[:-1], risk.risk_alpha, device=ego["mask"].device)
    gap = nearest_gap(ego, radius=risk.robot_radius, metres=metres)
    return (gap / risk.risk_reach).clamp(risk.risk_alpha, 1.0)


def scale_levels(levels: Tensor, share: Tensor | None) -> Tensor:
    """Levels `[*B, Q]` or `[Q]` squeezed into the tail: the mean of their quantiles is the tail's mean."""
    return levels if share is None else levels * share.unsqueeze(-1)


def tail_mean(probability: Tensor, support: Tensor, share: Tensor | None) -> Tensor:
    """The mean of the worst share of a distribution over `support [atoms]`, ascending.

    Args:
        probability: `[*B, A, atoms]`.
        support: the returns.
        share: `[*B]`, or None for the plain mean.
    """
    if share is None:
        return (probability * support).sum(-1)
    limit = share.reshape(*share.shape, *(1,) * (probability.dim() - share.dim()))
    below = probability.cumsum(-1)
    counted = torch.minimum(probability, (limit - (below - probability)).clamp(min=0.0))
    return (counted * support).sum(-1) / limit.squeeze(-1)
