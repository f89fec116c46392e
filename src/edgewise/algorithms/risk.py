"""Which share of the worst returns decides, from the config and the observation."""

from __future__ import annotations

from tensordict import TensorDictBase
from torch import Tensor

from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.off_policy_config import DistributionalConfig
from edgewise.config.errors import ConfigError
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
        return deciders.full(observation, config.risk_alpha)
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
    if config.risk == "adaptive" and deciders.ego is None:
        raise ConfigError(
            "algorithm.risk: adaptive needs the distance to the nearest object, which only `agents.ego` has",
            hint="set it to mean or cvar",
        )
