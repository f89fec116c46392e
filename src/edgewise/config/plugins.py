"""The one door for extensions: what a system declares, and how declarations are found. Never imports torch.

A declaration names code by its address, `module:name`. The address is imported when the code is used, so
listing everything that is available stays fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from edgewise.config.errors import ConfigError

SYSTEMS = "edgewise.systems"
"""The package whose `SYSTEMS` lists the declarations that ship with edgewise."""


@dataclass(frozen=True)
class Verb:
    """A verb of the command line.

    Args:
        name: what users type.
        summary: one line for `edgewise --help`.
        module: module with `configure(parser)` and `run(options, console)`, imported when the verb is used.
    """

    name: str
    summary: str
    module: str

    def load(self) -> Any:
        """Import the module."""
        return import_module(self.module)


@dataclass(frozen=True)
class Environment:
    """Where the parts of an environment are, as addresses `module:name`.

    Args:
        env: the subclass of `GraphEnv`.
        config: its settings; importing them must not import torch.
        summary: one sentence for lists.
        baselines: mapping from names to functions that build a policy for an environment.
        replay: function that turns the states of one episode into a replay.
        simulation: function that runs baselines on one network file.
        exploitability: function that finds the positions in which a player can be beaten, exactly.
        oracle: function that solves small instances exactly.
    """

    env: str
    config: str
    summary: str
    baselines: str | None = None
    replay: str | None = None
    simulation: str | None = None
    exploitability: str | None = None
    oracle: str | None = None

    def load(self, part: str) -> Any:
        """Import one part by its field name; None if the environment does not have it."""
        address = getattr(self, part)
        return None if address is None else load(address)

    def load_baselines(self) -> Mapping[str, Callable[..., Any]]:
        """Return the baselines by name; empty if there are none."""
        return self.load("baselines") or {}


@dataclass(frozen=True)
class System:
    """Everything that one system brings, by name.

    Args:
        name: of the system.
        environments: by name.
        recipes: name to the address of a `Recipe`.
        verbs: for the command line.
        encoders: value of `model.encoder.kind` to the address of a class.
        evaluation_modes: modules that add a mode to `edgewise eval`.
        file_formats: modules that read config files of another layout.
    """

    name: str
    environments: Mapping[str, Environment] = field(default_factory=dict)
    recipes: Mapping[str, str] = field(default_factory=dict)
    verbs: Sequence[Verb] = ()
    encoders: Mapping[str, str] = field(default_factory=dict)
    evaluation_modes: Sequence[str] = ()
    file_formats: Sequence[str] = ()


@cache
def systems() -> tuple[System, ...]:
    """Return the declarations of all systems."""
    return tuple(load(f"{module}:SYSTEM") for module in import_module(SYSTEMS).SYSTEMS)


def environments() -> dict[str, Environment]:
    """Return every declared environment by name."""
    return {name: found for system in systems() for name, found in system.environments.items()}


def recipes() -> dict[str, str]:
    """Return the address of every declared recipe by name."""
    return {name: address for system in systems() for name, address in system.recipes.items()}


def verbs() -> dict[str, Verb]:
    """Return the verbs that systems declare, by name."""
    return {verb.name: verb for system in systems() for verb in system.verbs}


def encoders() -> dict[str, str]:
    """Return the address of every declared encoder by its kind."""
    return {kind: address for system in systems() for kind, address in system.encoders.items()}


def evaluation_modes() -> list[Any]:
    """Import and return the modules that add modes to `edgewise eval`."""
    return [import_module(module) for system in systems() for module in system.evaluation_modes]


def file_formats() -> list[Any]:
    """Import and return the modules that read other layouts of config files."""
    return [import_module(module) for system in systems() for module in system.file_formats]


def environment(name: str) -> Environment:
    """Return the declaration of the environment `name`.

    Raises:
        ConfigError: no environment has this name; the hint lists those there are.
    """
    known = environments()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"no environment is called {name!r}", hint=f"{guess}There are: {', '.join(sorted(known))}"
        )
    return known[name]


def load(address: str) -> Any:
    """Import what an address `module:name` refers to."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)
