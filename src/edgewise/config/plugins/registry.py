"""Finds what is declared, registered, installed or addressed: names to declarations, declarations to code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from edgewise.config.errors import ConfigError
from edgewise.config.plugins.addresses import Address, import_place, load, resolve_part
from edgewise.config.plugins.declarations import AlgorithmEntry, Environment, System, Verb
from edgewise.config.plugins.installed import EntryPoint, entry_points
from edgewise.config.plugins.trust import allow, allowed_files, is_allowed, project_plugins

SYSTEMS = "edgewise.systems"
"""The package whose `SYSTEMS` lists the declarations that ship with edgewise."""

T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """A kind of extension.

    Args:
        name: as messages call it.
        group: of installed entry points.
        base: address of the class that it must be an instance of or a subclass of; empty where `methods` say.
        methods: that it must have.
        instance: whether it is an object of `base` rather than a class.
    """

    name: str
    group: str
    base: str = ""
    methods: tuple[str, ...] = ()
    instance: bool = False

    def fits(self, found: object) -> bool:
        """Return whether an object is of this kind."""
        if self.base:
            module, _, name = self.base.partition(":")
            base = getattr(import_module(module), name)
            is_one = (
                isinstance(found, base)
                if self.instance
                else isinstance(found, type) and issubclass(found, base)
            )
            if not is_one or found is base:
                return False
        elif not self.instance and not isinstance(found, type | ModuleType) and not callable(found):
            return False
        return all(hasattr(found, method) for method in self.methods)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("environment", "edgewise.envs", "edgewise.envs.base:GraphEnv"),
        Kind(
            "algorithm",
            "edgewise.algorithms",
            methods=("from_setup", "policy", "learn", "state_dict", "load_state_dict"),
        ),
        Kind("recipe", "edgewise.recipes", "edgewise.experiments.recipe:Recipe", instance=True),
        Kind("encoder", "edgewise.encoders", "edgewise.models.encoders.encoder:GraphEncoder"),
        Kind("convolution", "edgewise.convolutions", "torch_geometric.nn:MessagePassing"),
        Kind("head", "edgewise.heads", "edgewise.models.heads:Head"),
        Kind("action layout", "edgewise.action_layouts", "edgewise.graphs.actions:ActionLayout"),
        Kind("edge rule", "edgewise.edge_rules", methods=("edges",)),
        Kind("baseline", "edgewise.baselines"),
        Kind("replay", "edgewise.replays"),
        Kind("logger", "edgewise.loggers", "edgewise.training.callbacks:Callback"),
        Kind("evaluation mode", "edgewise.evaluation_modes", methods=("add_arguments", "run")),
        Kind("file format", "edgewise.file_formats", methods=("recognises", "planned_runs")),
        Kind("verb", "edgewise.verbs", "edgewise.config.plugins.declarations:Verb", instance=True),
        Kind("system", "edgewise.plugins", "edgewise.config.plugins.declarations:System", instance=True),
    )
}
"""Every kind of extension by its name."""

_registered: dict[str, dict[str, Any]] = {}


def register(
    extension: Any,
    *,
    name: str | None = None,
    baselines: Mapping[str, Any] | None = None,
    replay: Callable[..., dict[str, Any]] | None = None,
    summary: str | None = None,
    kind: str | None = None,
) -> None:
    """Make an extension known in this process, under a name.

    Args:
        extension: an environment, algorithm, encoder, convolution, recipe, logger, verb or `System`.
        name: under which it can be chosen; from its class if not given.
        baselines: of an environment.
        replay: of an environment.
        summary: one sentence for lists.
        kind: which kind of extension it is, where that is not clear from the object: `baseline`, `replay`,
            `head`, `edge rule`, …; a baseline or replay is named `ENVIRONMENT.NAME` or `ENVIRONMENT`.

    Example:
        >>> import edgewise as ew
        >>> ew.register(TSPEnv, name="tsp", baselines={"nearest": nearest})
    """
    chosen = kind or _kind_of(extension)
    if chosen not in KINDS:
        raise ConfigError(f"register: got kind {chosen!r}, expected one of {', '.join(KINDS)}")
    entry: Any = extension
    if chosen == "environment" and not isinstance(extension, Environment):
        entry = Environment(
            env=extension, baselines=baselines, replay=replay, summary=summary or _summary(extension)
        )
        _registered.setdefault(chosen, {})[address_of(extension)] = entry
    elif chosen == "algorithm" and not isinstance(extension, AlgorithmEntry):
        entry = AlgorithmEntry(algorithm=extension, summary=summary or _summary(extension))
        _registered.setdefault(chosen, {})[address_of(extension)] = entry
    elif isinstance(extension, type):
        _registered.setdefault(chosen, {})[address_of(extension)] = entry
    _registered.setdefault(chosen, {})[name or _name(extension)] = entry
    _merged.cache_clear()


def registered(kind: str) -> dict[str, Any]:
    """Return what was registered in this process, by name and by address."""
    return dict(_registered.get(kind, {}))


def use_plugin(reference: str) -> ModuleType:
    """Allow a plug-in that the user named, import it, and register what it defines."""
    address = allow(reference)
    module = import_place(address)
    _register_module(module)
    return module


def address_of(cls: type) -> str:
    """Return the address of a class: by file where its module is a file of nobody's package."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    is_script = cls.__module__ == "__main__" or (file is not None and Path(file).resolve() in allowed_files())
    if file is not None and is_script:
        return f"{_shown(Path(file).resolve())}:{cls.__qualname__}"
    return f"{cls.__module__}:{cls.__qualname__}"


def environments() -> dict[str, Environment]:
    """Return every environment that can be chosen by name."""
    return _table("environment", lambda point: Environment(env=point, summary=_of_package(point)))


def environment(reference: str) -> Environment:
    """Return the declaration of an environment, by its name or its address.

    Raises:
        ConfigError: there is none, or its code may not be imported.
    """
    found = find("environment", reference)
    entry = found if isinstance(found, Environment) else Environment(env=found, summary=_summary(found))
    extra = {
        name.partition(".")[2]: each
        for name, each in _registered.get("baseline", {}).items()
        if name.partition(".")[0] == reference
    }
    drawn = _registered.get("replay", {}).get(reference)
    if extra:
        entry = replace(entry, baselines={**entry.load_baselines(), **extra})
    return replace(entry, replay=drawn) if drawn is not None else entry


def algorithms() -> dict[str, AlgorithmEntry]:
    """Return every algorithm that can be chosen by name."""
    built_in = load("edgewise.algorithms.registry:ALGORITHMS")
    return built_in | _table(
        "algorithm", lambda point: AlgorithmEntry(algorithm=point, summary=_of_package(point))
    )


def algorithm(reference: str) -> AlgorithmEntry:
    """Return the declaration of an algorithm, by its name or its address."""
    built_in: dict[str, AlgorithmEntry] = load("edgewise.algorithms.registry:ALGORITHMS")
    if reference in built_in:
        return built_in[reference]
    found = find("algorithm", reference, also=built_in)
    return (
        found
        if isinstance(found, AlgorithmEntry)
        else AlgorithmEntry(algorithm=found, summary=_summary(found))
    )


def recipes() -> dict[str, Any]:
    """Return every recipe that can be chosen by name, or its address."""
    return _table("recipe", lambda point: point)


def verbs() -> dict[str, Verb]:
    """Return the verbs of systems, registered ones and those of installed packages."""
    return _table("verb", lambda point: Verb(point.name, _of_package(point), _LazyVerb(point)))


def encoders() -> dict[str, Any]:
    """Return every declared encoder by its kind."""
    return _table("encoder", lambda point: point)


def evaluation_modes() -> list[Any]:
    """Import and return the modules that add modes to `edgewise eval`."""
    return [*_modules("evaluation_modes"), *_registered.get("evaluation mode", {}).values()]


def file_formats() -> list[Any]:
    """Import and return the modules that read other layouts of config files."""
    return [*_modules("file_formats"), *_registered.get("file format", {}).values()]


@cache
def systems() -> tuple[System, ...]:
    """Return the declarations of the systems that ship with edgewise."""
    return tuple(load(f"{module}:SYSTEM") for module in import_module(SYSTEMS).SYSTEMS)


def find(kind_name: str, reference: str, *, also: Mapping[str, Any] | None = None) -> Any:
    """Return the extension of a kind that a name or an address refers to.

    Args:
        kind_name: one of `KINDS`.
        reference: a name, or an address `module:name`, `file.py` or `file.py:Name`.
        also: further names, for the message where nothing is found.

    Raises:
        ConfigError: nothing has this name, the code may not be imported, or it is of another kind.
    """
    kind, known = KINDS[kind_name], _merged(kind_name)
    if reference in known:
        found = known[reference]
        return resolve_part(found)
    address = Address.parse(reference)
    if address is None:
        for point in entry_points(kind.group):
            if point.name == reference:
                return _checked(kind, resolve_part(point), reference)
        for listed in project_plugins():
            use_plugin(listed)
        if reference in _merged(kind_name):
            return find(kind_name, reference)
        names = sorted(
            {name for name in {**known, **(also or {})} if ":" not in name} | _point_names(kind.group)
        )
        near = get_close_matches(reference, names, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"no {kind.name} is called {reference!r}",
            hint=f"{guess}There are: {', '.join(names)}; or give an address, such as file.py:Name",
        )
    return _found_at(kind, _granted(kind, address), reference)


def _granted(kind: Kind, address: Address) -> Address:
    """Return the address if its code may be imported; a file may have moved, if its name is the same.

    Raises:
        ConfigError: with the flag that would allow it.
    """
    if not is_allowed(address):
        for listed in project_plugins():
            allow(listed)
    if is_allowed(address):
        return address
    if address.is_file:
        moved = [file for file in allowed_files() if file.name == Path(address.place).name]
        if len(moved) == 1:
            return Address(str(moved[0]), address.name)
    if address.place == "__main__":
        raise ConfigError(
            f"the {kind.name} {address.name} was defined in a notebook or an interactive session",
            hint=f"define it again and call ew.register({address.name})",
        )
    raise ConfigError(
        f"{address} is code that nothing on this command line allows: "
        "neither a run folder nor a config file may import it",
        hint=f"if you trust it, add --plugin {address.place}",
    )


def _found_at(kind: Kind, address: Address, reference: str) -> Any:
    """Import what an address refers to, and check that it is of the kind and defined there."""
    module = import_place(address)
    if not address.name:
        return _only_one(kind, module, reference)
    if not hasattr(module, address.name):
        near = get_close_matches(address.name, vars(module), n=1)
        raise ConfigError(
            f"{address.place} has no name {address.name}", hint=f"did you mean {near[0]}?" if near else None
        )
    found = getattr(module, address.name)
    home = getattr(found, "__module__", None)
    if isinstance(found, type) and home is not None and not _is_near(home, module):
        raise ConfigError(
            f"{reference} is defined in {home}, and only imported by {address.place}",
            hint="give the address where it is defined",
        )
    return _checked(kind, found, reference)


def _checked(kind: Kind, found: Any, reference: str) -> Any:
    if isinstance(found, Environment | AlgorithmEntry) or kind.fits(found):
        return found
    needed = f"a subclass of {kind.base.partition(':')[2]}" if kind.base and not kind.instance else ""
    needed = needed or (f"an object of class {kind.base.partition(':')[2]}" if kind.base else "")
    needed = needed or f"something with {', '.join(kind.methods)}"
    raise ConfigError(f"{reference} is no {kind.name}: expected {needed}")


def _only_one(kind: Kind, module: ModuleType, reference: str) -> Any:
    found = dict(_defined(kind, module))
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise ConfigError(f"{reference} defines no {kind.name}", hint=f"name it, as in {reference}:Name")
    names = ", ".join(f"{reference}:{name}" for name in found)
    raise ConfigError(f"{reference} defines several of kind {kind.name}", hint=f"choose one: {names}")


def _defined(kind: Kind, module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module itself defines of a kind, by name."""
    for name, found in vars(module).items():
        is_own = not isinstance(found, type) or found.__module__ == module.__name__
        is_abstract = bool(getattr(found, "__abstractmethods__", ()))
        if not name.startswith("_") and is_own and not is_abstract and kind.fits(found):
            yield name, found


def _register_module(module: ModuleType) -> None:
    """Register what a plug-in's module defines of the kinds that are recognised by their class."""
    for kind in ("system", "verb", "recipe", "environment"):
        if kind == "environment" and "edgewise.envs.base" not in sys.modules:
            continue
        if kind == "recipe" and "edgewise.experiments.recipe" not in sys.modules:
            continue
        for _, found in _defined(KINDS[kind], module):
            known = _registered.get(kind, {})
            if all(found is not each and getattr(each, "env", None) is not found for each in known.values()):
                register(found, kind=kind)


def _is_near(home: str, module: ModuleType) -> bool:
    """Whether a module belongs to the package of another, or is a file beside it."""
    if home == module.__name__ or home.partition(".")[0] == module.__name__.partition(".")[0]:
        return True
    mine, other = getattr(module, "__file__", None), getattr(sys.modules.get(home), "__file__", None)
    return (
        mine is not None and other is not None and Path(mine).resolve().parent == Path(other).resolve().parent
    )


@cache
def _merged(kind: str) -> dict[str, Any]:
    """What is declared by systems or registered, by name."""
    found: dict[str, Any] = {}
    for system in (*systems(), *_registered.get("system", {}).values()):
        field = {
            "environment": "environments",
            "algorithm": "algorithms",
            "recipe": "recipes",
            "verb": "verbs",
        }
        part = field.get(kind, f"{kind}s".replace(" ", "_"))
        given = getattr(system, part, {})
        found |= (
            {verb.name: verb for verb in given}
            if kind == "verb"
            else given
            if isinstance(given, Mapping)
            else {}
        )
    return found | _registered.get(kind, {})


def _table(kind: str, of_point: Callable[[EntryPoint], T]) -> dict[str, Any]:
    """All that can be chosen by name: declared, registered, and installed."""
    installed = {point.name: of_point(point) for point in entry_points(KINDS[kind].group)}
    return installed | {name: each for name, each in _merged(kind).items() if ":" not in name}


def _modules(part: str) -> list[Any]:
    found = [
        each
        for system in (*systems(), *_registered.get("system", {}).values())
        for each in getattr(system, part)
    ]
    return [import_module(each) if isinstance(each, str) else each for each in found]


def _point_names(group: str) -> set[str]:
    return {point.name for point in entry_points(group)}


class _LazyVerb:
    """The module of an installed verb, imported when it is used."""

    def __init__(self, point: EntryPoint) -> None:
        self._point = point

    def __getattr__(self, name: str) -> Any:
        found = resolve_part(self._point)
        return getattr(found.load() if isinstance(found, Verb) else found, name)


def _kind_of(extension: Any) -> str:
    for name in ("system", "verb"):
        if KINDS[name].fits(extension):
            return name
    if isinstance(extension, Environment):
        return "environment"
    if isinstance(extension, AlgorithmEntry):
        return "algorithm"
    for name in (
        "environment",
        "algorithm",
        "recipe",
        "encoder",
        "convolution",
        "logger",
        "head",
        "action layout",
    ):
        if KINDS[name].fits(extension):
            return name
    raise ConfigError(
        f"register: got {extension!r}, expected an environment, algorithm, encoder, recipe, logger, verb or System",
        hint="say what it is with kind=, such as kind='baseline'",
    )


def _name(extension: Any) -> str:
    given = getattr(extension, "name", None)
    if isinstance(given, str):
        return given
    cls = extension if isinstance(extension, type) else type(extension)
    return (
        cls.__name__.removesuffix("Env").lower()
        if isinstance(extension, type)
        else getattr(extension, "__name__", "")
    )


def _summary(extension: Any) -> str:
    return (getattr(extension, "__doc__", None) or "").strip().partition("\n")[0].rstrip(".")


def _of_package(point: EntryPoint) -> str:
    return f"of the package {point.package}"


def _shown(path: Path) -> str:
    """A path as a user would type it from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
