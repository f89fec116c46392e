"""Which share of the worst returns decides, from the config and the observation."""

from __future__ import annotations

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.algorithms.deciders import Deciders, EgoDeciders
from edgewise.algorithms.off_policy_config import DistributionalConfig
from edgewise.graphs.keys import GRAPH
from edgewise.objectives.risk import adaptive_tail_share, scale_levels


def tail_share(
    observation: TensorDictBase, config: DistributionalConfig, deciders: Deciders
) -> Tensor | None:
    """Return the share of the worst returns whose mean decides, `[*D]` in (0, 1], or None for all returns.

    `mean` uses all returns, `cvar` the worst `risk_alpha`, and `adaptive` a share that falls from 1 at
    `risk_reach` in proportion to the distance to the nearest object, down to `risk_alpha`.

    Args:
        observation: what the deciders observe.
        config: see `DistributionalConfig`.
        deciders: who decides.
    """
    if config.risk == "mean":
        return None
    if config.risk == "cvar":
        like = observation["mask"] if isinstance(deciders, EgoDeciders) else _choices(observation, deciders)
        return torch.full(like.shape[:-1], config.risk_alpha, device=like.device)
    gap = deciders.nearest_gap(observation)
    return adaptive_tail_share(gap, smallest=config.risk_alpha, reach=config.risk_reach)


def tail_levels(
    levels: Tensor, observation: TensorDictBase, config: DistributionalConfig, deciders: Deciders
) -> Tensor:
    """Scale quantile levels `[Q]` to the worst returns that decide: `[Q]`, or `[*D, Q]` if rows differ.

    Networks evaluate levels that all rows share in less time.
    """
    if config.risk == "cvar":
        return levels * config.risk_alpha
    return scale_levels(levels, tail_share(observation, config, deciders))


def check_risk(config: DistributionalConfig, deciders: Deciders) -> None:
    """Raise ConfigError if the risk setting needs distances that the deciders do not observe."""
    if config.risk == "adaptive" and not isinstance(deciders, EgoDeciders):
        deciders.nearest_gap(TensorDict())


def _choices(observation: TensorDictBase, deciders: Deciders) -> Tensor:
    """Return a tensor whose dimensions but the last are those of the decisions."""
    legal = deciders.legal(observation)
    if legal is not None:
        return legal
    return observation[GRAPH, "node_mask"][..., : deciders.actions.num_agents].unsqueeze(-1)
