"""Environments by name: their settings and their construction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.config.plugins import environment
from edgewise.config.settings import from_keywords

if TYPE_CHECKING:
    import torch

    from edgewise.envs.base import GraphEnv


def make_config(name: str, **fields: Any) -> Config:
    """Return the settings of environment `name` with some fields changed.

    Raises:
        ConfigError: naming every field that is unknown or has an invalid value.
    """
    schema: type[Config] = environment(name).load("config")
    return resolve(schema, [from_keywords(schema, fields)])


def make_env(
    name: str, *, num_envs: int = 1, seed: int | None = 0, device: torch.device | str = "cpu", **fields: Any
) -> GraphEnv[Any]:
    """Build environment `name` with `num_envs` worlds, a TorchRL EnvBase of batch size `[num_envs]`.

    Args:
        name: of a declared environment; `edgewise envs` lists them.
        num_envs: number of worlds that step together.
        seed: the same seed gives the same worlds; None for different ones each time.
        device: of its tensors.
        fields: settings of the environment, by the names in its config class.

    Example:
        >>> make_env("graphwalk", num_envs=4, num_nodes=(5, 8)).batch_size
        torch.Size([4])
    """
    config = make_config(name, **fields)
    return environment(name).load("env")(config, num_envs=num_envs, seed=seed, device=device)
