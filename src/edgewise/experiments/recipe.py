"""A recipe is a preset: the config of a run that reproduces a result, with a name. Never imports torch."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.config.run import AnyRun


@dataclass(frozen=True)
class Recipe:
    """One reproducible result.

    Args:
        name: what users call it.
        summary: one line on what it shows.
        config: every setting, the names of environment and algorithm included; files and flags change it.
    """

    name: str
    summary: str
    config: AnyRun

    @property
    def env(self) -> str:
        """Name or address of the environment."""
        return self.config.env_name

    @property
    def algorithm(self) -> str:
        """Name or address of the algorithm."""
        return self.config.algorithm_name

    @property
    def schema(self) -> type[AnyRun]:
        """The class of its config, which has the fields of environment, model and algorithm."""
        return type(self.config)
