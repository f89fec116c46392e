"""Whether a recipe still works: its config can be written and read, its parts build, and it learns."""

from __future__ import annotations

from edgewise.config.errors import ConfigError
from edgewise.recipes.load import load_config
from edgewise.recipes.recipe import Recipe

SMALL = {
    "training.num_envs": 4,
    "training.steps": 8,
    "evaluation.episodes": 4,
    "evaluation.stages": [],
    "evaluation.every": None,
}


LONGEST = 40
"""Steps after which episodes are cut, where an environment lets them be cut."""


def check_recipe(recipe: Recipe) -> None:
    """Runs a recipe small, end to end.

    Raises:
        ConfigError: naming what does not work.
    """
    if recipe.schema.from_plain(recipe.config.to_plain()) != recipe.config:
        raise ConfigError(f"{recipe.name}: its config is not the same after being written and read")
    parts = recipe.load_builder()(load_config(recipe.config, keywords=SMALL | _short_episodes(recipe)))
    metrics = parts.algorithm.learn(parts.rollout.collect())
    broken = [name for name, value in metrics.items() if not bool(value.isfinite())]
    if broken:
        raise ConfigError(f"{recipe.name}: not finite after one batch: {', '.join(broken)}")
    parts.evaluate(parts.algorithm.policy)
    for policy in parts.baselines.values():
        parts.evaluate(policy)


def _short_episodes(recipe: Recipe) -> dict[str, int]:
    limit = getattr(recipe.config.env, "max_steps", None)
    return {"env.max_steps": min(limit, LONGEST)} if isinstance(limit, int) else {}
