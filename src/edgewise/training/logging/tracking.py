"""What loggers of experiment trackers share: the import of an extra, numbers without text, and a kept id."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import ConfigError
from edgewise.training.callbacks import Metrics

PROJECT = "edgewise"
"""Name of the project or experiment, unless an environment variable names another."""


def import_extra(module: str, extra: str) -> Any:
    """Import an optional package.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"the logger {extra} needs the package {module}, which is not installed",
            hint=f"pip install 'edgewise[{extra}]'",
        ) from error


def finite_numbers(metrics: Metrics) -> dict[str, float]:
    """Return the finite numbers among metrics."""
    return {
        name: float(value)
        for name, value in metrics.items()
        if not isinstance(value, str) and math.isfinite(value)
    }


def flat(config: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of a config with dotted names."""
    for name, value in config.items():
        path = f"{within}.{name}" if within else str(name)
        if isinstance(value, Mapping) and value:
            yield from flat(value, path)
        else:
            yield path, value


def kept_id(folder: Path, name: str) -> str | None:
    """Return the id under which a tracker knows a run, which `keep_id` wrote; None if there is none."""
    try:
        return files.read_text(folder / f"{name}-id.txt", largest=1000).strip() or None
    except (OSError, ValueError):
        return None


def keep_id(folder: Path, name: str, value: str) -> None:
    """Write the id under which a tracker knows a run into its folder, for when it is resumed."""
    files.replace(folder / f"{name}-id.txt", f"{value}\n".encode())
