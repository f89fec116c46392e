"""Recipes by name, imported when asked for. Never imports torch."""

from __future__ import annotations

from importlib import import_module

from edgewise.config.errors import ConfigError
from edgewise.config.wording import did_you_mean
from edgewise.recipes.recipe import Recipe

RECIPES = {
    "graphwalk-ppo": "edgewise.recipes.graphwalk_ppo",
    "multihop-clone": "edgewise.recipes.multihop_clone",
    "queueing-family-dagger": "edgewise.recipes.queueing_family_dagger",
    "queueing-family-ppo": "edgewise.recipes.queueing_family_ppo",
    "queueing-line3-clone": "edgewise.recipes.queueing_line3_clone",
    "queueing-line3-ppo": "edgewise.recipes.queueing_line3_ppo",
    "hex-quick": "edgewise.recipes.hex_quick",
    "hex-selfplay": "edgewise.recipes.hex_selfplay",
    "reasoning-countries": "edgewise.recipes.reasoning_countries",
    "reasoning-family": "edgewise.recipes.reasoning_family",
    "reasoning-umls": "edgewise.recipes.reasoning_umls",
    "reasoning-wn18rr": "edgewise.recipes.reasoning_wn18rr",
    "swarm-mappo": "edgewise.recipes.swarm_mappo",
    "swarm-mappo-mixed": "edgewise.recipes.swarm_mappo_mixed",
    "swarm-mappo-published": "edgewise.recipes.swarm_mappo_published",
    "marine-dqn": "edgewise.recipes.marine_dqn",
    "marine-quick": "edgewise.recipes.marine_quick",
    "marine-rainbow": "edgewise.recipes.marine_rainbow",
    "marine-iqn": "edgewise.recipes.marine_iqn",
    "marine-ac-iqn": "edgewise.recipes.marine_ac_iqn",
    "marine-sac": "edgewise.recipes.marine_sac",
    "marine-ddpg": "edgewise.recipes.marine_ddpg",
}
"""Name → the module that holds its `RECIPE`."""


def recipe(name: str) -> Recipe:
    """The recipe called `name`."""
    if name not in RECIPES:
        raise ConfigError(f"no recipe is called {name}", hint=nearest(name))
    found: Recipe = import_module(RECIPES[name]).RECIPE
    return found


def nearest(name: str) -> str:
    """A clause that names the recipe that was probably meant, or all there are."""
    near = did_you_mean(name, list(RECIPES))
    return near if near.startswith("did") else f"there are {', '.join(RECIPES)}"
