"""Where code lies: real paths, files beside a file, and whether a folder belongs to a run."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from edgewise.config import files

CONFIG = "config.json"
RUN_FIELDS = frozenset({"recipe", "env_name", "algorithm_name"})
"""Fields of which a run's config has at least one."""


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path without symbolic links; never raises for a path that cannot be."""
    return Path(os.path.realpath(os.path.expanduser(path)))


def real_file(module: ModuleType | None) -> Path | None:
    """Return the real path of a module's source; None for what has none, such as a notebook."""
    file = getattr(module, "__file__", None)
    return real_path(file) if isinstance(file, str) and file.endswith(".py") else None


def root_of(file: Path) -> Path:
    """Return the folder of a file, or the topmost package that it belongs to."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def is_beside(other: Path, file: Path) -> bool:
    """Return whether a file lies in the folder or package of another, and not in an installed package."""
    folder = root_of(file)
    if folder not in other.parents or folder in _installed():
        return False
    return not any(
        place in other.parents and place not in (folder, *folder.parents) for place in _installed()
    )


def is_installed(file: Path) -> bool:
    """Return whether a file belongs to Python or to an installed package."""
    return any(place in file.parents for place in _installed())


def in_run_folder(folder: Path) -> bool:
    """Return whether a folder is a run folder, or lies in one."""
    return any(_is_run_folder(each) for each in (folder, *folder.parents))


def _is_run_folder(folder: Path) -> bool:
    """Decide by config.json; one that cannot be read counts, since what is in doubt is not trusted."""
    file = folder / CONFIG
    if not file.is_file():
        return False
    if (folder / "versions.json").exists() or (folder / "checkpoints").exists():
        return True
    try:
        values = files.read_json(file)
    except (OSError, ValueError):
        return True
    return isinstance(values, dict) and not RUN_FIELDS.isdisjoint(values)


@cache
def _installed() -> frozenset[Path]:
    """The folders of the standard library, of installed packages, and of edgewise itself."""
    import sysconfig

    paths = sysconfig.get_paths()
    own = real_path(Path(__file__).parents[1])
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found = {real_path(folder) for folder in folders}
    found |= {real_path(place) for place in sys.path if place.endswith(("site-packages", "dist-packages"))}
    return frozenset({*found, own})
