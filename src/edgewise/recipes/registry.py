"""Recipes by name, imported when asked for. Never imports torch."""

from __future__ import annotations

from importlib import import_module

from edgewise.config.errors import ConfigError
from edgewise.config.wording import did_you_mean
from edgewise.recipes.recipe import Recipe

RECIPES = {
    "graphwalk-ppo": "edgewise.recipes.graphwalk_ppo",
    "queueing-family-dagger": "edgewise.recipes.queueing_family_dagger",
    "queueing-line3-clone": "edgewise.recipes.queueing_line3_clone",
    "queueing-line3-ppo": "edgewise.recipes.queueing_line3_ppo",
    "hex-quick": "edgewise.recipes.hex_quick",
    "hex-selfplay": "edgewise.recipes.hex_selfplay",
    "swarm-mappo": "edgewise.recipes.swarm_mappo",
    "swarm-mappo-mixed": "edgewise.recipes.swarm_mappo_mixed",
    "swarm-mappo-published": "edgewise.recipes.swarm_mappo_published",
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
