"""Addresses of code, `module:name` or `file.py:Name`, and how they are imported.

A file is imported once per real path and under one name, whatever ways lead to it, so that its classes are
the same classes everywhere in a process.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import zlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.config.plugins.installed import EntryPoint

_NAME = re.compile(r"[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


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
        place, colon, name = text.rpartition(":") if not text.endswith(".py") else (text, "", "")
        if not colon:
            return cls(text) if text.endswith(".py") else None
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
        return Path(self.place).expanduser().resolve()

    def __str__(self) -> str:
        return f"{self.place}:{self.name}" if self.name else self.place


def load(address: str) -> Any:
    """Import what an address `module:name` refers to, without asking whether it may be.

    For addresses in declarations, which are code already; what a user or a file names goes through `find`.
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
    try:
        return import_module(address.place)
    except ModuleNotFoundError as error:
        if error.name is not None and not address.place.startswith(error.name):
            raise ConfigError(
                f"{address.place} needs the module {error.name}, which is not installed"
            ) from error
        raise ConfigError(
            f"there is no module {address.place}",
            hint="install its package, or give the path of its file, such as folder/file.py",
        ) from error
    except Exception as error:
        raise ConfigError(f"{address.place} fails while it is imported: {error!r}") from error


def import_file(path: Path) -> ModuleType:
    """Import a Python file, or return its module if any name has imported it before.

    The folder of the file joins the end of `sys.path`, so that it can import files beside it.
    """
    real = path.resolve()
    known = module_of_file(real)
    if known is not None:
        return known
    if not real.is_file():
        raise ConfigError(f"there is no file {path}", hint="give the path of a Python file")
    folder = str(real.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    name = _module_name(real)
    spec = importlib.util.spec_from_file_location(name, real)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{path} fails while it is imported: {_where(error, real)}") from error
    return module


def module_of_file(real: Path) -> ModuleType | None:
    """Return the module that was imported from a file, whatever its name."""
    for module in list(sys.modules.values()):
        place = getattr(module, "__file__", None)
        if isinstance(place, str) and place.endswith(real.name) and Path(place).resolve() == real:
            return module
    return None


def _module_name(real: Path) -> str:
    """The name under which `import` would find the file, or one of its own where that is another module."""
    stem = real.stem
    if _NAME.fullmatch(stem) and stem not in sys.modules:
        try:
            found = importlib.util.find_spec(stem)
        except (ImportError, ValueError):
            found = None
        if found is not None and found.origin is not None and Path(found.origin).resolve() == real:
            return stem
    return f"{stem}_{zlib.crc32(str(real).encode()):08x}"


def _where(error: Exception, real: Path) -> str:
    """An import error with the last line of the file that it passed through."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == real:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and line is None:
        line = error.lineno
    return f"{error!r}" if line is None else f"{error!r} in line {line}"
