"""Opponents from other programs, which a system declares by a scheme: `scheme:rest` in `--opponents`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.plugins import Environment

FILE = ".onnx"
"""The scheme of opponents that are named by such a file."""


@dataclass(frozen=True)
class Opponent:
    """How to build the opponents of one scheme.

    Args:
        make: builds the policy for an environment from what follows the scheme.
        usage: how it is written, for messages.
        settings: fields of the environment's config that it needs.
    """

    make: Callable[[GraphEnv[Any], str], Policy]
    usage: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def needed_settings(entry: Environment, names: Sequence[str]) -> dict[str, Any]:
    """Return the settings that the opponents of these names need."""
    found = [_declared(entry, name) for name in names]
    return {key: value for one in found if one is not None for key, value in one.settings.items()}


def make_opponent(entry: Environment, env: GraphEnv[Any], name: str) -> Policy:
    """Build an opponent: `scheme:rest`, `FILE.onnx`, a baseline of the environment, or the address of one.

    Raises:
        ConfigError: there is none of this name.
    """
    declared = _declared(entry, name)
    if declared is not None:
        return declared.make(env, name if name.endswith(FILE) else name.partition(":")[2])
    known = entry.load_baselines()
    if name in known:
        policy: Policy = known[name](env)
        return policy
    schemes = [one.usage for one in (entry.load("opponents") or {}).values()]
    hint = f"it has {', '.join([*known.names(), *schemes])}"
    raise ConfigError(f"{env.name} has no player {name}", hint=hint)


def _declared(entry: Environment, name: str) -> Opponent | None:
    scheme, colon, _ = name.partition(":")
    scheme = FILE if name.endswith(FILE) else scheme if colon else ""
    found: Opponent | None = (entry.load("opponents") or {}).get(scheme)
    return found
