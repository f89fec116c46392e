"""Addresses of code, `module:name` or `file.py:Name`, and how they are imported.

A file is imported once per real path and under one name, whatever ways lead to it, so that its classes are
the same classes everywhere in a process.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from edgewise.config import files
from edgewise.config.errors import ConfigError, EdgewiseError
from edgewise.plugins.installed import EntryPoint
from edgewise.plugins.places import in_run_folder, is_installed, real_file, real_path

log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

_imported: dict[Path, int] = {}
"""Files that `import_file` has imported, with a checksum of what they were."""


@dataclass(frozen=True)
class Address:
    """Where a piece of code is.

    Args:
        place: a module's dotted name, or the path of a Python file.
        name: of an object in it; empty for the module itself.

    Example:
        >>> Address.parse("tsp.py:TSPEnv")
        Address(place='tsp.py', name='TSPEnv')
        >>> Address.parse("graphwalk") is None
        True
    """

    place: str
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Address | None:
        """Read an address; None for text that is not one, such as a plain name."""
        if not text.isprintable():
            return None
        if text.endswith(".py"):
            return cls(text)
        place, _, name = text.rpartition(":")
        if not _NAME.fullmatch(name):
            return None
        return cls(place, name) if place.endswith(".py") or _MODULE.fullmatch(place) else None

    @property
    def is_file(self) -> bool:
        """Whether the place is the path of a file."""
        return self.place.endswith(".py")

    @property
    def file(self) -> Path:
        """The real path of the file."""
        return real_path(self.place)

    def __str__(self) -> str:
        return f"{self.place}:{self.name}" if self.name else self.place


def load(address: str) -> Any:
    """Import what an address `module:name` refers to, without checking whether it may be imported.

    Only for addresses in declarations, which are code already; `find` is for what a user or a file names.
    """
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def resolve_part(given: Any) -> Any:
    """Return a declared part: an address or an installed entry point is imported, an object is itself."""
    if isinstance(given, str):
        return load(given)
    if isinstance(given, EntryPoint):
        return given.load()
    return given


def import_place(address: Address) -> ModuleType:
    """Import the module or file of an address.

    Raises:
        ConfigError: it is not there, or fails while it is imported.
    """
    if address.is_file:
        return import_file(address.file)
    _look_here(address.place.partition(".")[0])
    try:
        return import_module(address.place)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{address.place}.".startswith(f"{error.name}."):
            raise ConfigError(
                f"{address.place} needs the module {error.name}, which is not installed"
            ) from error
        raise ConfigError(
            f"there is no module {address.place}",
            hint="install its package, or give the path of its file, such as folder/file.py",
        ) from error
    except EdgewiseError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{address.place} fails while it is imported: {error!r}") from error


def _look_here(top: str) -> None:
    """Let a module that is installed nowhere be found in the working directory, unless that is a run's."""
    here = real_path(".")
    if top in sys.modules or not ((here / f"{top}.py").is_file() or (here / top).is_dir()):
        return
    if str(here) not in sys.path and importlib.util.find_spec(top) is None and not in_run_folder(here):
        sys.path.append(str(here))
        importlib.invalidate_caches()


def import_file(path: Path) -> ModuleType:
    """Import a Python file, or return its module if any name has imported it before.

    The folder of the file joins the end of `sys.path`, so that it can import files beside it. A file of a
    package is imported as a module of that package.

    Raises:
        ConfigError: it is not there, or fails while it is imported.
    """
    real = real_path(path)
    known = module_of_file(real)
    if known is not None:
        _warn_if_edited(real)
        return known
    if not os.path.isfile(real):
        raise ConfigError(f"there is no file {path}", hint="give the path of a Python file")
    _check_beside(real)
    folder, name = _folder_and_name(real)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    importlib.invalidate_caches()
    checksum = _checksum(real)
    try:
        module = import_module(name) if _leads_to(name, real) else _import_as(_own_name(real), real)
    except EdgewiseError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{path} fails while it is imported: {_where(error, real)}") from error
    _imported[real] = checksum
    return module


def is_imported_by_path(real: Path) -> bool:
    """Return whether a file was imported by its path, rather than by the name of a module."""
    return real in _imported


def module_of_file(real: Path) -> ModuleType | None:
    """Return the module that was imported from a file, whatever its name."""
    try:
        wanted = os.stat(real)
    except OSError:
        return None
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        # Comparing inodes is fast; a hard link is another file that happens to have the same one.
        try:
            found = os.stat(file)
        except (OSError, ValueError):
            continue
        if os.path.samestat(found, wanted) and real_path(file) == real:
            return module
    return None


def _check_beside(real: Path) -> None:
    """Raise ConfigError if the file would import another file of the same name in place of one beside it."""
    for top in sorted({name.partition(".")[0] for level, name in import_statements(real) if level == 0}):
        own = [real.parent / f"{top}.py", real.parent / top / "__init__.py"]
        other = real_file(sys.modules.get(top))
        if other is None or is_installed(other) or other in map(real_path, own):
            continue
        if any(file.is_file() for file in own):
            raise ConfigError(
                f"{real} imports {top}, but this process has imported {other} under that name",
                hint="rename one of them, or use each in a process of its own",
            )


def import_statements(file: Path) -> Iterator[tuple[int, str]]:
    """Return the level and dotted name of all that a file's import statements name, wherever they stand."""
    import ast

    try:
        tree = ast.parse(files.read_bytes(file))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [node.module] if node.module else []
            yield from (
                (node.level, ".".join([*base, *more])) for more in ([], *([a.name] for a in node.names))
            )


def _folder_and_name(real: Path) -> tuple[Path, str]:
    """Return the folder from which `import` would find a file, and the dotted name by which it would."""
    folder, names = real.parent, [real.stem]
    while (folder / "__init__.py").is_file() and _NAME.fullmatch(folder.name):
        folder, names = folder.parent, [folder.name, *names]
    return folder, ".".join(names if real.stem != "__init__" or len(names) == 1 else names[:-1])


def _leads_to(name: str, real: Path) -> bool:
    """Return whether `import name` would import this very file."""
    if not _MODULE.fullmatch(name) or name in sys.modules:
        return False
    top = name.partition(".")[0]
    try:
        # The top is looked up first, since looking up `a.b` imports `a`, which may be another package.
        found = importlib.util.find_spec(top)
        if found is not None and "." in name:
            package = real.parents[name.count(".") - (real.name != "__init__.py")]
            if found.origin is None or real_path(found.origin).parent != package:
                return False
            found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None and real_path(found.origin) == real


def _own_name(real: Path) -> str:
    """Return a name for a file whose usual name belongs to another module."""
    return f"{real.stem}_{zlib.crc32(str(real).encode()):08x}"


def _import_as(name: str, real: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, real)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _warn_if_edited(real: Path) -> None:
    """Warn that an imported file has been edited: a process uses what it has imported first."""
    if real in _imported and _imported[real] != _checksum(real):
        log.warning("%s has changed since this process imported it; start a new process to use it", real)


def _checksum(real: Path) -> int:
    return zlib.crc32(files.read_bytes(real))


def _where(error: BaseException, real: Path) -> str:
    """Return an import error with the last line of the file that it passed through."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if real_path(trace.tb_frame.f_code.co_filename) == real:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and line is None:
        line = error.lineno
    return f"{error!r}" if line is None else f"{error!r} in line {line}"
