"""Checks a recipe: its config survives a round trip, its parts build, and it makes an update."""

from __future__ import annotations

from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config

NUM_ENVS = 4
LONGEST = 40
"""Step limit of episodes, where an environment has `max_steps`."""


def check_recipe(config: AnyRun) -> None:
    """Run a small version of the config of a recipe, end to end.

    Raises:
        ConfigError: naming what fails.
    """
    if type(config).from_plain(config.to_plain()) != config:
        raise ConfigError(f"{config.name}: its config is not the same after being written and read")
    # Algorithms that compare pairs of candidates play each of them in a world of its own.
    few = {"algorithm.pairs": NUM_ENVS // 2} if hasattr(config.algorithm, "pairs") else {}
    small = load_config(config, keywords={**_short_episodes(config), **few})
    parts = Builder(small, num_envs=NUM_ENVS, rollout_length=8, episodes=4).parts()
    metrics = parts.algorithm.learn(parts.rollout.collect())
    broken = [name for name, value in metrics.items() if not bool(value.isfinite())]
    if broken:
        raise ConfigError(f"{config.name}: not finite after one batch: {', '.join(broken)}")
    parts.evaluate(parts.algorithm.policy)
    for policy in parts.baselines.values():
        parts.evaluate(policy)


def _short_episodes(config: AnyRun) -> dict[str, Any]:
    """Return settings that limit the episodes of training and of evaluation to `LONGEST` steps."""
    limit = getattr(config.env, "max_steps", None)
    if not isinstance(limit, int):
        return {}
    settings = config.evaluation.settings
    given = settings.get("max_steps", limit)
    shortest = {"max_steps": min(given, LONGEST)} if isinstance(given, int) else {}
    return {"env.max_steps": min(limit, LONGEST), "evaluation.settings": {**settings, **shortest}}
