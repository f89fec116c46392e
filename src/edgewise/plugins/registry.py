"""What is declared by systems and registered in this process, by name and by address."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.plugins.addresses import import_place, is_imported_by_path, load
from edgewise.plugins.declarations import System
from edgewise.plugins.kinds import KINDS, Kind, kind_of
from edgewise.plugins.places import is_installed, real_file, real_path
from edgewise.plugins.trust import allow, allowed_files, allowed_modules, project_plugins

SYSTEMS = "edgewise.systems"
"""The package whose `SYSTEMS` lists the declarations that ship with edgewise."""
PROBLEMS = "edgewise.problems"
"""The package that declares construction and selection problems together."""


@dataclass(frozen=True)
class _Registered:
    """What was registered of one kind: by name, and by address where it has one."""

    names: dict[str, Any] = field(default_factory=dict)
    addresses: dict[str, Any] = field(default_factory=dict)


_registered = {kind: _Registered() for kind in KINDS}


def register(
    extension: Any,
    *,
    name: str | None = None,
    baselines: Mapping[str, Any] | None = None,
    replay: Callable[..., dict[str, Any]] | None = None,
    summary: str | None = None,
) -> None:
    """Make an extension known in this process, under a name.

    Args:
        extension: an environment, algorithm, encoder, convolution, head, recipe, logger or `System`.
        name: under which it can be chosen; from its class if not given.
        baselines: of an environment.
        replay: of an environment.
        summary: one sentence for lists.

    Raises:
        ConfigError: it is of no kind, or the name belongs to something that ships with edgewise.

    Example:
        >>> import edgewise as ew
        >>> ew.register(TSPEnv, name="tsp", baselines={"nearest": nearest})
    """
    kind, known = kind_of(extension), name or name_of(extension)
    is_taken = known in _shipped(kind)
    if is_taken and name is not None:
        raise ConfigError(
            f"register: the {kind.name} {name} ships with edgewise, and runs refer to it by this name",
            hint="choose another name",
        )
    parts = {"baselines": baselines, "replay": replay} if kind.name == "environment" else {}
    entry = kind.declare(extension, summary=summary or summary_of(extension), **parts)
    stored = _registered[kind.name]
    if isinstance(extension, type):
        stored.addresses[address_key(address_of(extension))] = entry
    if not is_taken:
        stored.names[known] = entry
    declared.cache_clear()


def registered(kind: str) -> dict[str, Any]:
    """Return what was registered of a kind in this process, by name."""
    return dict(_registered[kind].names)


def registered_at(kind: str, reference: str) -> Any:
    """Return what was registered of a kind under an address; None if nothing was."""
    return _registered[kind].addresses.get(address_key(reference))


def references() -> list[str]:
    """Return the files and modules that the user allowed or registered a class of, for another process."""
    places = [key.rpartition(":")[0] for each in _registered.values() for key in each.addresses]
    own = [place for place in places if place.partition(".")[0] != "edgewise"]
    return list(dict.fromkeys([*map(str, allowed_files()), *allowed_modules(), *own]))


def entry_of(kind: str, found: Any) -> Any:
    """Return the declaration with which a class was registered; the class itself if it was not."""
    for entry in _registered[kind].addresses.values():
        if found in (getattr(entry, "env", None), getattr(entry, "algorithm", None)):
            return entry
    return found


def use_plugin(reference: str) -> ModuleType:
    """Allow a plug-in that the user named, import it, and register what it defines.

    Raises:
        ConfigError: it is not there, or fails while it is imported.
    """
    module = import_place(allow(reference))
    for kind in KINDS.values():
        for _, found in defined_in(module, kind):
            if entry_of(kind.name, found) is found and found not in _registered[kind.name].names.values():
                register(found)
    return module


def use_project_plugins() -> None:
    """Import the plug-ins that the project's own file lists, and register what they define."""
    for reference in project_plugins():
        use_plugin(reference)


def defined_in(module: ModuleType, kind: Kind) -> Iterator[tuple[str, Any]]:
    """Return what a module itself defines of a kind, with its names."""
    for name, found in list(vars(module).items()):
        is_own = not isinstance(found, type) or found.__module__ == module.__name__
        is_abstract = bool(getattr(found, "__abstractmethods__", ()))
        if not name.startswith("_") and is_own and not is_abstract and kind.fits(found):
            yield name, found


def address_of(cls: type) -> str:
    """Return the address of a class: by file where its module is a single file of nobody's package."""
    module = sys.modules.get(cls.__module__)
    file = real_file(module)
    if file is not None and _is_single(cls.__module__, file):
        return f"{_shown(file)}:{cls.__qualname__}"
    return f"{cls.__module__}:{cls.__qualname__}"


def address_key(reference: str) -> str:
    """Return an address in a form that does not depend on the working directory."""
    place, _, name = reference.rpartition(":")
    return f"{real_path(place)}:{name}" if place.endswith(".py") else reference


def name_of(extension: Any) -> str:
    """Return the name of an extension: its own, or that of its class in lower case and without `Env`."""
    given = getattr(extension, "name", None)
    if isinstance(given, str):
        return given
    return str(getattr(extension, "__name__", type(extension).__name__)).removesuffix("Env").lower()


def summary_of(extension: Any) -> str:
    """Return the first line of a docstring, without its full stop."""
    return (getattr(extension, "__doc__", None) or "").strip().partition("\n")[0].rstrip(".")


@cache
def systems() -> tuple[System, ...]:
    """Return the declarations of the systems that ship with edgewise."""
    modules = (*import_module(SYSTEMS).SYSTEMS, PROBLEMS)
    return tuple(load(f"{module}:SYSTEM") for module in modules)


def all_systems() -> tuple[System, ...]:
    """Return the systems that ship with edgewise and those that were registered."""
    return (*systems(), *_registered["system"].names.values())


@cache
def declared(kind: str) -> Mapping[str, Any]:
    """Return what systems declare and what was registered, by name; what ships with edgewise goes first."""
    found: dict[str, Any] = {}
    for table in (*(_parts(system, kind) for system in all_systems()), _registered[kind].names):
        for name, part in table.items():
            found.setdefault(name, part)
    return found


def _shipped(kind: Kind) -> dict[str, Any]:
    found = dict(load(kind.built_in)) if kind.built_in else {}
    return found | {name: part for system in systems() for name, part in _parts(system, kind.name).items()}


def _parts(system: System, kind: str) -> dict[str, Any]:
    return {system.name: system} if kind == "system" else dict(getattr(system, KINDS[kind].part))


def _is_single(name: str, file: Path) -> bool:
    """Return whether a module is a file by itself: a script, a plug-in, or one that is not in any package."""
    if name == "__main__" or file in allowed_files():
        return True
    is_module = "." not in name and file.name != "__init__.py"
    return is_module and (is_imported_by_path(file) or not is_installed(file))


def _shown(path: Path) -> str:
    """Return a path as a user would type it from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
