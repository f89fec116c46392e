"""Environments by name: their settings and their construction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edgewise.config.loading import resolve
from edgewise.config.model import Config
from edgewise.config.settings import from_keywords
from edgewise.plugins import Environment, allow_typed, environment

if TYPE_CHECKING:
    import torch

    from edgewise.envs.base import GraphEnv


def make_config(name: str | type, **fields: Any) -> Config:
    """Return the settings of environment `name` with some fields changed.

    Raises:
        ConfigError: naming every field that is unknown or has an invalid value.
    """
    schema: type[Config] = _entry(name).load("config")
    if "graphs" in fields:
        from edgewise.graphs.datasets import with_named_graphs

        fields = with_named_graphs(fields)
    return resolve(schema, [from_keywords(schema, fields)])


def make_env(
    name: str | type,
    *,
    num_envs: int = 1,
    seed: int | None = 0,
    device: torch.device | str = "cpu",
    **fields: Any,
) -> GraphEnv[Any]:
    """Build environment `name` with `num_envs` worlds, a TorchRL EnvBase of batch size `[num_envs]`.

    Args:
        name: of a declared environment, which `edgewise envs` lists; or the address or class of any other.
        num_envs: number of worlds that step together.
        seed: the same seed gives the same worlds; None for different ones each time.
        device: of its tensors.
        fields: settings of the environment, by the names in its config class.

    Example:
        >>> make_env("graphwalk", num_envs=4, num_nodes=(5, 8)).batch_size
        torch.Size([4])
    """
    from edgewise.scale.devices import check_device

    config = make_config(name, **fields)
    if str(device).startswith(("cuda", "mps")):
        check_device(str(device))
    return _entry(name).load("env")(config, num_envs=num_envs, seed=seed, device=device)


def _entry(name: str | type) -> Environment:
    """Return the declaration of an environment; an address that a user typed may be imported."""
    if isinstance(name, type):
        return Environment(env=name)
    allow_typed([name])
    return environment(name)
