"""Environments, algorithms, recipes, verbs and other extensions: all that there are, and one by its name."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from importlib import import_module
from typing import Any

from edgewise.plugins.addresses import load
from edgewise.plugins.declarations import AlgorithmEntry, Environment, Verb
from edgewise.plugins.finding import find
from edgewise.plugins.installed import EntryPoint, entry_points
from edgewise.plugins.kinds import KINDS
from edgewise.plugins.registry import all_systems, declared, name_of, registered, summary_of


def environments() -> dict[str, Environment]:
    """Return every environment that can be chosen by name."""
    return _table("environment", lambda point: Environment(env=point, summary=_of_package(point)))


def environment(reference: str) -> Environment:
    """Return the declaration of an environment, by its name or its address.

    Raises:
        ConfigError: there is none, or its code may not be imported.
    """
    found = find("environment", reference)
    entry = found if isinstance(found, Environment) else Environment(env=found, summary=summary_of(found))
    names = {reference, *(name for name, each in registered("environment").items() if each is entry)}
    names |= {name_of(entry.env)} if isinstance(entry.env, type) else set()
    baselines = {
        name.partition(".")[2]: each
        for name, each in _table("baseline", _lazy).items()
        if name.partition(".")[0] in names
    }
    if baselines:
        entry = replace(entry, baselines={**entry.load_baselines(), **baselines})
    drawn = [each for name, each in _table("replay", _as_is).items() if name in names]
    return replace(entry, replay=drawn[0]) if drawn else entry


def algorithms() -> dict[str, AlgorithmEntry]:
    """Return every algorithm that can be chosen by name."""
    found = _table("algorithm", lambda point: AlgorithmEntry(algorithm=point, summary=_of_package(point)))
    built_in: dict[str, AlgorithmEntry] = load("edgewise.algorithms.registry:ALGORITHMS")
    return built_in | {name: each for name, each in found.items() if name not in built_in}


def algorithm(reference: str) -> AlgorithmEntry:
    """Return the declaration of an algorithm, by its name or its address.

    Raises:
        ConfigError: there is none, or its code may not be imported.
    """
    built_in: dict[str, AlgorithmEntry] = load("edgewise.algorithms.registry:ALGORITHMS")
    if reference in built_in:
        return built_in[reference]
    found = find("algorithm", reference, also=built_in)
    if isinstance(found, AlgorithmEntry):
        return found
    return AlgorithmEntry(algorithm=found, summary=summary_of(found))


def recipes() -> dict[str, Any]:
    """Return every recipe that can be chosen by name, or its address."""
    return _table("recipe", _as_is)


def verbs() -> dict[str, Verb]:
    """Return the verbs of systems, registered ones and those of installed packages."""
    return _table("verb", lambda point: Verb(point.name, _of_package(point), point))


def encoders() -> dict[str, Any]:
    """Return every declared encoder by its kind."""
    return _table("encoder", _as_is)


def convolutions() -> dict[str, Any]:
    """Return every declared convolution by its name."""
    return _table("convolution", _as_is)


def heads() -> dict[str, Any]:
    """Return every declared policy head by its name."""
    return _table("head", _as_is)


def evaluation_modes(words: Collection[str] = ()) -> list[Any]:
    """Import and return the modules that add modes to `edgewise eval`.

    Args:
        words: of the command line; the mode of an installed package is imported if its flag is among them.
    """
    return _modules("evaluation mode", "evaluation_modes", {word.removeprefix("--") for word in words})


def file_formats(named: str | None = None) -> list[Any]:
    """Import and return the modules that read config files of other layouts.

    Args:
        named: value of `format` in a file; a format of an installed package is imported by this name.
    """
    return _modules("file format", "file_formats", () if named is None else (named,))


def _table(kind: str, of_point: Callable[[EntryPoint], Any]) -> dict[str, Any]:
    """Return all that can be chosen by name: declared, registered, and installed."""
    installed = {point.name: of_point(point) for point in entry_points(KINDS[kind].group)}
    known = declared(kind)
    return {**known, **{name: each for name, each in installed.items() if name not in known}}


def _modules(kind: str, part: str, names: Collection[str]) -> list[Any]:
    found = [each for system in all_systems() for each in getattr(system, part)]
    found += registered(kind).values()
    found += [find(kind, point.name) for point in entry_points(KINDS[kind].group) if point.name in names]
    modules = [import_module(each) if isinstance(each, str) else each for each in found]
    # A module may be listed in a System and be a plug-in itself.
    return list({id(module): module for module in modules}.values())


def _as_is(point: EntryPoint) -> EntryPoint:
    return point


def _lazy(point: EntryPoint) -> Callable[..., Any]:
    """Return a function that imports the entry point when it is called."""
    return lambda *arguments, **options: point.load()(*arguments, **options)


def _of_package(point: EntryPoint) -> str:
    return f"of the package {point.package}"
