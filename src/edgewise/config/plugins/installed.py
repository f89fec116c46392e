"""The entry points of installed packages, listed without importing anything of them.

Reads `entry_points.txt` of every package on `sys.path`, as `importlib.metadata` does. That module alone costs
more time to import than all the rest of `edgewise --help`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from edgewise.config.errors import ConfigError

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
        except Exception as error:
            raise ConfigError(
                f"the plug-in {self.name} of the package {self.package} ({self.value}) fails while it is imported: "
                f"{error!r}",
                hint=f"mend or uninstall it, or leave all of them out with {NO_AUTOLOAD}=1",
            ) from error
        return found


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, none of them imported."""
    if os.environ.get(NO_AUTOLOAD, "") not in ("", "0"):
        return ()
    return tuple(point for point in _all(tuple(sys.path)) if point.group == group)


@cache
def _all(places: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    found: dict[tuple[str, str], EntryPoint] = {}
    for place in places:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for name in sorted(names):
            if name.endswith((".dist-info", ".egg-info")):
                for point in _read(
                    os.path.join(place or ".", name, "entry_points.txt"), name.partition("-")[0]
                ):
                    found.setdefault((point.group, point.name), point)
    return tuple(found.values())


def _read(file: str, package: str) -> list[EntryPoint]:
    try:
        with open(file, encoding="utf-8") as opened:
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
            points.append(EntryPoint(name.strip(), value.partition("[")[0].strip(), group, package))
    return points
