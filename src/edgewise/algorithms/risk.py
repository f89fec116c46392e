"""Which share of the worst returns an agent acts by, from its config and its observation."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.algorithms.off_policy_config import DistributionalConfig
from edgewise.models.agents.ego import nearest_gap
from edgewise.objectives.risk import adaptive_tail_share


def tail_share(
    ego: TensorDictBase, config: DistributionalConfig, *, units: tuple[float, float]
) -> Tensor | None:
    """Return the share of the worst returns whose mean decides, `[*B]` in (0, 1], or None for all returns.

    `mean` uses all returns, `cvar` the worst `risk_alpha`, and `adaptive` a share that falls from 1 at
    `risk_reach` in proportion to the distance to the nearest object, down to `risk_alpha`.

    Args:
        ego: observations of agents, see `EgoSpec`.
        config: see `DistributionalConfig`.
        units: see `EgoConfig.units`.
    """
    if config.risk == "mean":
        return None
    if config.risk == "cvar":
        return torch.full(ego["mask"].shape[:-1], config.risk_alpha, device=ego["mask"].device)
    gap = nearest_gap(ego, radius=config.agent_radius, units=units)
    return adaptive_tail_share(gap, smallest=config.risk_alpha, reach=config.risk_reach)
