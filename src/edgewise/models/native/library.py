"""Compile a C file of this folder once, keep the library in the user's cache, and load it."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from edgewise.config import files

SWITCH = "EDGEWISE_NATIVE"
"""Environment variable; 0 turns compiled loops off."""
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math")
SECONDS = 120
"""Longest time that a compiler may take."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Library:
    """What there is of a library: its functions, or why there is none, in words."""

    functions: ctypes.CDLL | None
    text: str


@cache
def library(name: str) -> Library:
    """Return the library of `NAME.c`, without functions if it is turned off or cannot be compiled here."""
    compiler = _compiler()
    if os.environ.get(SWITCH) == "0":
        return Library(None, f"turned off by {SWITCH}=0")
    if compiler is None:
        return Library(None, "there is no C compiler")
    try:
        functions, where = _load(Path(__file__).with_name(f"{name}.c"), compiler)
    except (OSError, subprocess.SubprocessError) as error:
        _logger.info("%s.c cannot be used: %s", name, error)
        return Library(None, f"{compiler} cannot compile it, or it cannot be loaded")
    return Library(functions, where)


def _compiler() -> str | None:
    """Return the path of a C compiler with the options of GCC; None if there is none."""
    if os.name != "posix":
        return None
    return next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))), None)


def _load(source: Path, compiler: str) -> tuple[ctypes.CDLL, str]:
    """Return the library and where it is kept; it is compiled first if it is not there yet."""
    folder = _cache()
    if folder is None:
        with tempfile.TemporaryDirectory() as place:  # only this user may enter it
            found = ctypes.CDLL(str(_compiled(source, compiler, Path(place) / "library.so")))
        return found, "compiled in every process: the cache of this user cannot be used"
    target = folder / f"{source.stem}-{_key(source, compiler)}.so"
    if _is_private(target, stat.S_ISREG):
        try:
            return ctypes.CDLL(str(target)), str(target)
        except OSError:
            _logger.info("%s is damaged and will be compiled again", target)
    return ctypes.CDLL(str(_compiled(source, compiler, target))), str(target)


def _compiled(source: Path, compiler: str, target: Path) -> Path:
    """Compile into a new file that takes its name when it is whole, since others may compile as well."""
    descriptor, stage = tempfile.mkstemp(dir=target.parent, suffix=".part")
    os.close(descriptor)
    try:
        command = [compiler, *FLAGS, "-o", stage, str(source), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
        Path(stage).chmod(0o700)
        os.replace(stage, target)
    finally:
        Path(stage).unlink(missing_ok=True)
    return target


def _key(source: Path, compiler: str) -> str:
    """Return a name for what the library depends on: source, flags, compiler and processor.

    The macros that the compiler defines name its version and the instructions of this processor.
    """
    command = [compiler, *FLAGS, "-dM", "-E", "-x", "c", os.devnull]
    macros = subprocess.run(command, check=True, capture_output=True, timeout=SECONDS).stdout
    parts = (files.read_bytes(source), " ".join(FLAGS).encode(), macros)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _cache() -> Path | None:
    """Return the folder for libraries; None if others could put files there, or this user cannot."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "edgewise" / "native"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = folder.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    safe = _is_private(folder, stat.S_ISDIR) and not any(map(_may_be_swapped, folder.parents))
    return folder if safe and os.access(folder, os.W_OK | os.X_OK) else None


def _is_private(path: Path, is_kind: Callable[[int], bool]) -> bool:
    """Return whether a path is of this kind and this user's, and nobody else may write it."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _may_be_swapped(folder: Path) -> bool:
    """Return whether another user could replace what is in a folder above the cache."""
    found = folder.stat()
    trusted = found.st_uid in (0, os.geteuid())
    return not trusted or bool(found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX)
