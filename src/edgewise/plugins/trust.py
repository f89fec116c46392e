"""What may be imported, and which cluster joined. A run folder or a config file grants nothing; the user
does, on this command line, in this process or in the project's own file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.cluster import CLUSTER
from edgewise.config.errors import ConfigError
from edgewise.plugins.addresses import Address
from edgewise.plugins.places import in_run_folder

log = logging.getLogger(__name__)

_files: dict[Path, None] = {}
_modules: dict[str, None] = {}
_clusters: dict[str, None] = {}

CLUSTER_FLAGS = ("--ray.address=", "--address=")
"""How a command line names one."""

PROJECT_FILES = ("edgewise.toml", "pyproject.toml")


def allow(reference: str) -> Address:
    """Allow a file or a module, given as a path, a module's name or an address in either.

    Example:
        >>> allow("my_package.tsp")
        Address(place='my_package.tsp', name='')
    """
    address = Address.parse(reference) or Address(reference)
    if address.is_file:
        _files.setdefault(address.file)
    else:
        _modules.setdefault(address.place)
    return address


def allow_typed(texts: Sequence[str]) -> None:
    """Allow every address of code or of a cluster among the words of a command line, also in lists."""
    for text in texts:
        for address in _addresses(text):
            allow(str(address))
        for word in _values(text):
            if CLUSTER.fullmatch(word):
                _clusters.setdefault(word)


def require_allowed(texts: Sequence[str]) -> None:
    """Refuse words of a command line that were read from a file, if they name code that is not allowed.

    The same holds for the address of a cluster.

    Raises:
        ConfigError: with the flag that would allow it.
    """
    for address in (address for text in texts for address in _addresses(text)):
        if not is_allowed(address):
            for listed in project_plugins():
                allow(listed)
        if not is_allowed(address):
            raise refusal(address)
    for text in texts:
        if text.startswith(CLUSTER_FLAGS):
            require_cluster(text.partition("=")[2])


def require_cluster(address: str) -> None:
    """Raise ConfigError if the user has not typed the address of a cluster: what it sends is executed."""
    if address not in _clusters:
        raise ConfigError(
            f"ray.address: {address} is in a file only, and a file cannot choose what edgewise connects to",
            hint=f"give it by yourself: --ray.address {address}",
        )


def refusal(address: Address) -> ConfigError:
    """Return the error for code that is not allowed, with the flag that would allow it."""
    return ConfigError(
        f"{address} is code that nothing on this command line allows: "
        "neither a run folder nor a config file may import it",
        hint=f"if you trust it, add --plugin {address.place}",
    )


def _addresses(text: str) -> list[Address]:
    found = (Address.parse(word) for word in _values(text))
    return [address for address in found if address is not None]


def _values(text: str) -> tuple[str, ...]:
    value = text.partition("=")[2] if text.startswith("--") else text
    return (value, *value.split(","))


def is_allowed(address: Address) -> bool:
    """Return whether the user has allowed the file or module of an address."""
    if address.is_file:
        return address.file in _files
    parts = address.place.split(".")
    return any(".".join(parts[:count]) in _modules for count in range(1, len(parts) + 1))


def allowed_files() -> list[Path]:
    """Return the real paths of the files that are allowed."""
    return list(_files)


def allowed_modules() -> list[str]:
    """Return the names of the modules that are allowed."""
    return list(_modules)


def forget() -> None:
    """Withdraw everything that was allowed; for tests."""
    _files.clear()
    _modules.clear()
    _clusters.clear()


def project_plugins(folder: Path | None = None) -> list[str]:
    """Return the plug-ins that the project's own file lists, as references that `allow` takes.

    Reads `plugins` of ./edgewise.toml, or of `[tool.edgewise]` in ./pyproject.toml. A file inside a run
    folder is ignored: a run folder grants nothing.

    Raises:
        ConfigError: the file cannot be read, or `plugins` is not a list of text.
    """
    place = (folder or Path.cwd()).resolve()
    for name in PROJECT_FILES:
        file = place / name
        listed = _listed_in(file) if file.is_file() else []
        if listed and (in_run_folder(place) or in_run_folder(file.resolve().parent)):
            log.warning("%s is in a run folder, so its plug-ins are ignored; --plugin allows one", file)
        elif listed:
            return [str(place / each) if each.partition(":")[0].endswith(".py") else each for each in listed]
    return []


def _listed_in(file: Path) -> list[str]:
    import tomllib

    values: Any
    try:
        values = tomllib.loads(files.read_text(file.resolve()))
    except (OSError, ValueError, RecursionError) as error:
        if file.name == "pyproject.toml":
            log.warning("%s cannot be read, so its plug-ins are not known: %s", file, error)
            return []
        raise ConfigError(f"{file} cannot be read: {error}") from error
    for section in ("tool", "edgewise") if file.name == "pyproject.toml" else ():
        values = values.get(section, {})
        if not isinstance(values, dict):
            return []
    listed = values.get("plugins", [])
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise ConfigError(f"{file}: plugins: got {listed!r}, expected a list of files and modules")
    return listed
