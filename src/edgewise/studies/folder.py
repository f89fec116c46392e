"""The folder of a study: its plan, its runs and their output. One process works on it at a time.

study.json     the plan: what is run, and what must not change when the study is continued
runs/NAME/     the run folders
logs/NAME.log  what each run wrote to the terminal
lock           held by the process that works on the study
report.html    the page
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import CheckpointError, ConfigError
from edgewise.runs import durable, lock

FORMAT = "edgewise-study/1"
PLAN = "study.json"
RUNS = Path("runs")
"""Where studies go unless a place is given."""

Plan = dict[str, Any]


class StudyFolder:
    """The folder of one study.

    Args:
        path: an existing folder with a plan; use `open_study` for a new one.

    Raises:
        CheckpointError: its plan cannot be read, or a symbolic link in it leads elsewhere.

    Attributes:
        plan: what is run, as plain values.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.plan = path, read_plan(path)
        for link in files.links_in(path):
            raise CheckpointError(
                f"{link} is a symbolic link, and not followed in a study",
                hint="put the file or folder itself in its place",
            )

    @property
    def runs(self) -> Path:
        """Folder of the run folders."""
        return self.path / "runs"

    @property
    def report(self) -> Path:
        """File of the page."""
        return self.path / "report.html"

    def run(self, name: str) -> Path:
        """Return the folder of a run."""
        return self.runs / name

    def log(self, name: str) -> Path:
        """Return the file with the output of a run."""
        return self.path / "logs" / f"{name}.log"

    def change_plan(self, plan: Plan) -> None:
        """Replace the plan, atomically."""
        durable.replace_whole(self.path / PLAN, _json(plan))
        self.plan = plan

    def locked(self) -> AbstractContextManager[None]:
        """Return the context in which this process alone works on the study; see `runs.lock`."""
        return lock.locked(self.path)

    def write(self, name: str, content: str) -> Path:
        """Write a file of the study atomically, and return its path."""
        durable.replace_whole(self.path / name, content.encode())
        return self.path / name


def open_study(
    path: Path | None, plan: Plan, *, name: str, differs: Callable[[Plan], str | None]
) -> StudyFolder:
    """Return the study with this plan: the one that exists, or a new one.

    Args:
        path: its folder; if not given, the one under `runs/` that can be continued, or the next free number.
        plan: of a new study.
        name: prefix of the folder's name, if no path is given.
        differs: returns why a study with another plan is not this one; None if it is.

    Raises:
        ConfigError: the given path holds something else, or another plan.
        CheckpointError: its plan cannot be read.
    """
    while True:
        given = path if path is not None and os.path.lexists(path) else None
        existing = given if path is not None else _existing(name, differs)
        if existing is not None:
            return _continued(existing, differs)
        new = path or _next_free(name)
        with suppress(FileExistsError):  # another process took this name meanwhile
            _create(new, {"format": FORMAT, **plan})
            return StudyFolder(new)


def _continued(path: Path, differs: Callable[[Plan], str | None]) -> StudyFolder:
    if not (path / PLAN).is_file():
        raise ConfigError(f"{path} exists already, and is not a study", hint="choose another folder")
    found = StudyFolder(path)
    reason = differs(found.plan)
    if reason is not None:
        raise ConfigError(
            f"{path} holds another study: {reason}",
            hint="type the command it was started with to continue it, or choose another folder",
        )
    return found


def _create(path: Path, plan: Plan) -> None:
    """Create the folder of a study, completely or not at all; raises FileExistsError if there is one."""
    try:
        durable.create_folder(path, folders=("runs", "logs"), files={PLAN: _json(plan)})
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            raise FileExistsError(error.errno, os.strerror(errno.EEXIST), str(path)) from error
        raise ConfigError(f"cannot create the study {path}: {error.strerror or error}") from error


def read_plan(path: Path) -> Plan:
    """Read the plan of a study.

    Raises:
        CheckpointError: it cannot be read, or another version of edgewise wrote it in another format.
    """
    file = path / PLAN
    try:
        plan = files.read_json(file)
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CheckpointError(f"{file} is not JSON: {error}", hint="the plan was damaged") from error
    if not isinstance(plan, dict) or plan.get("format") != FORMAT:
        raise CheckpointError(f"{file} is not a plan in the format {FORMAT}")
    return plan


def first_difference(ours: Any, theirs: Any, path: str = "") -> str | None:
    """Return the first value in which two plans differ, in words; None if they are equal.

    Example:
        >>> first_difference({"env": {"size": 3}}, {"env": {"size": 4}})
        'env.size is 4 there and 3 here'
    """
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in dict.fromkeys([*ours, *theirs]):
            found = first_difference(ours.get(key), theirs.get(key), f"{path}.{key}" if path else str(key))
            if found is not None:
                return found
        return None
    if json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True):
        return None
    return f"{path} is {_short(theirs)} there and {_short(ours)} here"


def _existing(name: str, differs: Callable[[Plan], str | None]) -> Path | None:
    """Return the newest study under `runs/` that this one continues."""
    found = [path for path in _numbered(name) if (path / PLAN).is_file()]
    for path in reversed(found):
        try:
            if differs(read_plan(path)) is None:
                return path
        except CheckpointError:
            continue
    return None


def _numbered(name: str) -> Iterator[Path]:
    for number in count(1):
        path = RUNS / f"{name}-{number}"
        if not path.exists():
            return
        yield path


def _next_free(name: str) -> Path:
    return RUNS / f"{name}-{len(list(_numbered(name))) + 1}"


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
