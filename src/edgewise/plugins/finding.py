"""Finds one extension by its name or address, and refuses code that nobody allowed."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from inspect import signature
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.plugins.addresses import Address, import_place, load, module_of_file, resolve_part
from edgewise.plugins.installed import entry_points
from edgewise.plugins.kinds import KINDS, Kind
from edgewise.plugins.places import is_beside, real_file
from edgewise.plugins.registry import (
    declared,
    defined_in,
    entry_of,
    registered_at,
    use_project_plugins,
)
from edgewise.plugins.trust import allow, allowed_files, is_allowed, project_plugins, refusal

log = logging.getLogger(__name__)

LOCAL = "<locals>"


def find(kind_name: str, reference: str) -> Any:
    """Return the extension of a kind that a name or an address refers to.

    Args:
        kind_name: one of `KINDS`.
        reference: a name, or an address `module:name`, `file.py` or `file.py:Name`.

    Raises:
        ConfigError: nothing has this name, the code may not be imported, or it is of another kind.
    """
    kind = KINDS[kind_name]
    built_in = load(kind.built_in) if kind.built_in else {}
    known = {**declared(kind.name), **built_in}.get(reference) or registered_at(kind.name, reference)
    if known is not None:
        return resolve_part(known)
    for declaration in declared(kind.name).values():
        if reference in (
            declaration,
            getattr(declaration, "env", None),
            getattr(declaration, "algorithm", None),
        ):
            return resolve_part(declaration)
    address = Address.parse(reference)
    if address is None:
        return _by_name(kind, reference, built_in)
    return entry_of(kind.name, _at(kind, _granted_of(kind, address), reference))


def find_function(reference: str, *, of: str, what: str) -> Any:
    """Return the function at an address.

    Args:
        reference: its address.
        of: name of its first parameter.
        what: what the function is, for messages.

    Raises:
        ConfigError: the code may not be imported, or is no such function.
    """
    address = Address.parse(reference)
    found = None
    if address is not None and address.name:
        granted = _granted(what, address, lambda module: hasattr(module, address.name))
        module = import_place(granted)
        found = _attribute(granted, module)
        _check_home(found, granted, module, reference)
    if not isinstance(found, FunctionType) or next(iter(signature(found).parameters), None) != of:
        raise ConfigError(f"{reference} is no {what}: expected the address of a function of `{of}`")
    return found


def check_allowed(kind_name: str, reference: str) -> None:
    """Raise ConfigError if code at an address may not be imported; a name passes, and nothing is imported."""
    address = Address.parse(reference)
    if address is not None and registered_at(kind_name, reference) is None:
        _granted_of(KINDS[kind_name], address)


def _by_name(kind: Kind, reference: str, built_in: Iterable[str]) -> Any:
    """Look a name up among installed entry points, then among the plug-ins of the project's file."""
    points = entry_points(kind.group)
    for point in points:
        if point.name == reference:
            return _checked(kind, point.load(), reference)
    if LOCAL in reference:
        raise ConfigError(
            f"the {kind.name} {reference} was defined inside a function, where it cannot be found again",
            hint="define it at the top level of its file, or define it again and call ew.register",
        )
    use_project_plugins()
    if reference in declared(kind.name):
        return resolve_part(declared(kind.name)[reference])
    from difflib import get_close_matches

    names = sorted({*declared(kind.name), *built_in, *(point.name for point in points)})
    near = get_close_matches(reference, names, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise ConfigError(
        f"no {kind.name} is called {reference!r}",
        hint=f"{guess}There are: {', '.join(names)}; or give an address, such as file.py:Name, "
        "or --plugin with the file that registers the name",
    )


def _granted_of(kind: Kind, address: Address) -> Address:
    """Return the address of an extension if its code may be imported; see `_granted`."""
    return _granted(kind.name, address, lambda module: _defines(kind, address.name, module))


def _granted(what: str, address: Address, defines: Callable[[ModuleType], bool]) -> Address:
    """Return the address if its code may be imported; that of an allowed file if it has moved there.

    Raises:
        ConfigError: with the flag that would allow it.
    """
    if not is_allowed(address):
        for listed in project_plugins():
            allow(listed)
    if is_allowed(address):
        return address
    moved = _moved(address, defines)
    if moved is not None:
        log.info("%s is taken from %s", address, moved)
        return Address(str(moved), address.name)
    if address.place == "__main__":
        raise ConfigError(
            f"the {what} {address.name} was defined in a notebook or an interactive session",
            hint=f"define it again and call ew.register({address.name}), or name a file that defines it "
            "with --plugin",
        )
    raise refusal(address)


def _moved(address: Address, defines: Callable[[ModuleType], bool]) -> Path | None:
    """Return the only allowed file of the same name; else the only plug-in that defines what is wanted."""
    wanted = Path(address.place).name if address.is_file else f"{address.place.rpartition('.')[2]}.py"
    same = [file for file in allowed_files() if file.name == wanted]
    if not same:
        same = [file for file in allowed_files() if (module := module_of_file(file)) and defines(module)]
    return same[0] if len(same) == 1 else None


def _defines(kind: Kind, name: str, module: ModuleType) -> bool:
    """Return whether a module defines this name of a kind; without a name, whether it defines just one."""
    names = [found for found, _ in defined_in(module, kind)]
    return name in names if name else len(names) == 1


def _at(kind: Kind, address: Address, reference: str) -> Any:
    """Import what an address refers to, and check that it is of the kind and defined there."""
    module = import_place(address)
    if not address.name:
        return _only_one(kind, module, reference)
    found = _checked(kind, _attribute(address, module), reference)
    _check_home(found, address, module, reference)
    return found


def _attribute(address: Address, module: ModuleType) -> Any:
    if not hasattr(module, address.name):
        from difflib import get_close_matches

        near = get_close_matches(address.name, vars(module), n=1)
        raise ConfigError(
            f"{address.place} has no name {address.name}", hint=f"did you mean {near[0]}?" if near else None
        )
    return getattr(module, address.name)


def _check_home(found: Any, address: Address, module: ModuleType, reference: str) -> None:
    """Raise ConfigError if what an address refers to is defined elsewhere."""
    home = _home(found)
    if home is not None and not _is_near(home, module):
        raise ConfigError(
            f"{reference} is defined in {home}, and only imported by {address.place}",
            hint="give the address where it is defined",
        )


def _home(found: Any) -> str | None:
    """Return the module that defines a class or function; None for an object, which is where it is named."""
    if isinstance(found, ModuleType):
        return found.__name__
    return found.__module__ if isinstance(found, type | FunctionType) else None


def _is_near(home: str, module: ModuleType) -> bool:
    """Return whether a module belongs to the package of another, or is a file beside it."""
    if home.partition(".")[0] == module.__name__.partition(".")[0]:
        return True
    mine, other = real_file(module), real_file(sys.modules.get(home))
    return mine is not None and other is not None and is_beside(other, mine)


def _checked(kind: Kind, found: Any, reference: str) -> Any:
    if not kind.fits(found):
        raise ConfigError(f"{reference} is no {kind.name}: expected {kind.expected}")
    return found


def _only_one(kind: Kind, module: ModuleType, reference: str) -> Any:
    found = dict(defined_in(module, kind))
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise ConfigError(f"{reference} defines no {kind.name}", hint=f"name it, as in {reference}:Name")
    names = ", ".join(f"{reference}:{name}" for name in found)
    raise ConfigError(f"{reference} defines several of kind {kind.name}", hint=f"choose one: {names}")
