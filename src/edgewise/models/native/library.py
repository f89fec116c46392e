"""Compile a C file of this folder once, keep the library in the user's cache, and load it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from edgewise.config import files

SWITCH = "EDGEWISE_NATIVE"
"""Environment variable; 0 turns compiled loops off."""
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math")
SECONDS = 120
"""Longest time that a compiler may take."""


@cache
def library(name: str) -> ctypes.CDLL | None:
    """Return the library of `NAME.c`; None if it is turned off, or cannot be compiled or loaded here."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if os.environ.get(SWITCH) == "0" or compiler is None:
        return None
    try:
        return _load(Path(__file__).with_name(f"{name}.c"), compiler)
    except (OSError, subprocess.SubprocessError):
        return None


def _load(source: Path, compiler: str) -> ctypes.CDLL:
    """Load the library from the cache, where it is compiled first if it is not there yet."""
    folder = _cache()
    if folder is None:
        with tempfile.TemporaryDirectory() as place:
            return ctypes.CDLL(str(_compiled(source, compiler, Path(place) / "library.so")))
    target = folder / f"{source.stem}-{_key(source, compiler)}.so"
    return ctypes.CDLL(str(target if target.is_file() else _compiled(source, compiler, target)))


def _compiled(source: Path, compiler: str, target: Path) -> Path:
    """Compile into a new file that takes its name when it is whole, since others may compile as well."""
    descriptor, stage = tempfile.mkstemp(dir=target.parent, suffix=".so")
    os.close(descriptor)
    try:
        command = [compiler, *FLAGS, "-o", stage, str(source), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
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
    """Return the folder for libraries; None if it is not the user's alone, since what is in it is run."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "edgewise" / "native"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.lstat()
    except (OSError, RuntimeError):
        return None
    mine = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    return folder if stat.S_ISDIR(found.st_mode) and mine and not found.st_mode & 0o022 else None
