"""What a recipe is: a whole configuration with a name, and the function that builds it, without torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from edgewise.config.run import RunConfig

AnyRun = RunConfig[Any, Any, Any]


@dataclass(frozen=True)
class Recipe:
    """One reproducible result.

    Args:
        name: what users call it.
        summary: what it shows, in a line.
        env: name of the environment, as in the registry of environments.
        algorithm: name of the algorithm, as in the registry of algorithms.
        config: every setting; files and flags change it.
        builder: `module:function` that turns a config of this recipe into the parts of a run. The usual one
            suits whatever collects from one environment with one actor-critic; a recipe with demonstrations,
            self-play or other needs names its own.
    """

    name: str
    summary: str
    env: str
    algorithm: str
    config: AnyRun
    builder: str = "edgewise.recipes.compose:build"

    @property
    def schema(self) -> type[AnyRun]:
        """The class of its configs, which knows the fields of environment, model and algorithm."""
        return type(self.config)

    def load_builder(self) -> Callable[..., Any]:
        """The function that builds a run; importing it imports torch."""
        module, _, name = self.builder.partition(":")
        return getattr(import_module(module), name)
