"""Names of our environments for `gymnasium.make`, `edgewise/NAME`. Never imports torch.

`import edgewise.gym` calls `register`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from edgewise.plugins import environments

NAMESPACE = "edgewise"


def register() -> None:
    """Register every environment that is declared, under its name."""
    gymnasium = import_module("gymnasium")
    for name in environments():
        gymnasium.register(
            id=f"{NAMESPACE}/{name}",
            entry_point=make_world,
            vector_entry_point=make_worlds,
            kwargs={"name": name},
        )


def make_world(
    *, name: str, render_mode: Any = None, illegal: Any = "raise", graphs: Any = "dict", **settings: Any
) -> Any:
    """Build one world of an environment; `settings` are fields of its config."""
    adapter, registry = _parts()
    env = registry.make_env(name, seed=None, **settings)
    return adapter.to_gymnasium(env, illegal=illegal, graphs=graphs, render_mode=render_mode)


def make_worlds(*, name: str, num_envs: int, illegal: Any = "raise", **settings: Any) -> Any:
    """Build several worlds of an environment, which step together."""
    adapter, registry = _parts()
    return adapter.to_gymnasium(
        registry.make_env(name, num_envs=num_envs, seed=None, **settings), illegal=illegal
    )


def _parts() -> tuple[Any, Any]:
    return import_module("edgewise.envs.adapters.to_gymnasium"), import_module("edgewise.envs.registry")
