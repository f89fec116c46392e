"""Recipes by name or address, imported when asked for. Never imports torch."""

from __future__ import annotations

from edgewise import plugins
from edgewise.config.wording import did_you_mean
from edgewise.experiments.recipe import Recipe


def recipe(reference: str) -> Recipe:
    """Return the recipe of this name or address."""
    found: Recipe = plugins.find("recipe", reference)
    return found


def nearest(name: str) -> str:
    """Return a hint that names the closest recipe, or all of them if none is close."""
    known = list(plugins.recipes())
    near = did_you_mean(name, known)
    return near if near.startswith("did") else f"there are {', '.join(known)}"
