"""The entry points of installed packages, listed without importing anything of them.

Reads `entry_points.txt` of every package on `sys.path`, as `importlib.metadata` does. That module alone costs
more time to import than all the rest of `edgewise --help`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError, EdgewiseError
from edgewise.plugins.places import in_run_folder

NO_AUTOLOAD = "EDGEWISE_NO_AUTOLOAD"
"""Environment variable; 1 leaves installed entry points alone."""


@dataclass(frozen=True)
class EntryPoint:
    """One entry point of an installed package.

    Args:
        name: under which it can be chosen.
        value: address `module:name`.
        group: such as `edgewise.envs`.
        package: that declares it.
    """

    name: str
    value: str
    group: str
    package: str

    def load(self) -> Any:
        """Import what it refers to.

        Raises:
            ConfigError: it fails while it is imported.
        """
        from importlib import import_module

        module, _, names = self.value.partition(":")
        try:
            found: Any = import_module(module.strip())
            for name in names.strip().split(".") if names else ():
                found = getattr(found, name)
        except EdgewiseError:
            raise
        except (Exception, SystemExit) as error:
            raise ConfigError(
                f"the plug-in {self.name} of the package {self.package} ({self.value}) fails while it is "
                f"imported: {error!r}",
                hint=f"mend or uninstall it, or leave all of them out with {NO_AUTOLOAD}=1",
            ) from error
        return found


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, none of them imported."""
    if os.environ.get(NO_AUTOLOAD, "") not in ("", "0"):
        return ()
    try:
        folders = tuple(map(os.path.abspath, sys.path))
    except FileNotFoundError:  # the working directory was deleted
        folders = tuple(filter(os.path.isabs, sys.path))
    return tuple(point for point in _all(folders) if point.group == group)


@cache
def _all(folders: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return all entry points of packages in these folders, the first of each name."""
    found: dict[tuple[str, str], EntryPoint] = {}
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        infos = sorted(name for name in names if name.endswith((".dist-info", ".egg-info")))
        points = [point for name in infos for point in _read(folder, name)]
        # Nothing is installed in a run folder, though it may be on the path of `python -m`.
        if points and in_run_folder(Path(folder).resolve()):
            continue
        for point in points:
            found.setdefault((point.group, point.name), point)
    return tuple(found.values())


def _read(folder: str, info: str) -> list[EntryPoint]:
    try:
        with open(os.path.join(folder, info, "entry_points.txt"), encoding="utf-8") as opened:
            text = opened.read()
    except (OSError, UnicodeDecodeError):
        return []
    if "[edgewise." not in text:
        return []
    points, group = [], ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif "=" in line and group.startswith("edgewise.") and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            point = EntryPoint(
                name.strip(), value.partition("[")[0].strip(), group, package=info.partition("-")[0]
            )
            points.append(point)
    return points
