"""What a recipe is: a whole configuration with a name, and the function that builds it, without torch."""

from __future__ import annotations

from dataclasses import dataclass
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
    """

    name: str
    summary: str
    env: str
    algorithm: str
    config: AnyRun

    @property
    def schema(self) -> type[AnyRun]:
        """The class of its configs, which knows the fields of environment, model and algorithm."""
        return type(self.config)
