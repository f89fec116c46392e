"""Settings of environments whose instances are graphs of a file or folder. Never imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from edgewise.config.bounds import ROWS
from edgewise.config.errors import ConfigError
from edgewise.config.model import AppliesIf, Config

IF_GRAPHS = AppliesIf("graphs are given", lambda _, own: own.graphs is not None)


class GraphsConfig(Config):
    """Settings of an environment that takes graphs as instances; `ew.load_graphs` reads them.

    Example:
        >>> class TourConfig(GraphsConfig):
        ...     max_steps: int = 40
        >>> TourConfig(graphs="cities/").split
        'train'
    """

    graphs: str | None = None
    """Folder or file of graphs to use as instances: GraphML, edge lists, CSV or node-link JSON."""
    split: Annotated[Literal["train", "valid", "test", "all"], IF_GRAPHS] = "train"
    """Split of the graphs that worlds are drawn from; evaluation uses `valid` if it is not told otherwise."""
    split_seed: Annotated[int, IF_GRAPHS] = Field(0, ge=0, le=ROWS)
    """Random seed of the split, where graphs have no folders train, valid and test."""


def with_split(env: Config, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an evaluation with the split named, if instances are given graphs.

    Args:
        env: config of the environment, before the settings are applied.
        settings: how the evaluation differs from it.
    """
    named = dict(settings)
    if isinstance(env, GraphsConfig) and named.get("graphs", env.graphs) is not None:
        named.setdefault("split", "all" if env.split == "all" else "valid")
    return named


def check_training_split(env: Config) -> None:
    """Raise ConfigError if a run would be trained on graphs that are kept for evaluation."""
    if isinstance(env, GraphsConfig) and env.graphs is not None and env.split in ("valid", "test"):
        raise ConfigError(
            f"env.split: training on the split {env.split} would mix it with evaluation",
            hint="train on train, or on all; evaluation.settings.split says what is evaluated on",
        )
