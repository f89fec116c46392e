"""What is measured: an algorithm with settings, a hand-written policy, a learner of one's own, or a table."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edgewise.benchmark.shipped import ENCODERS, SHIPPED
from edgewise.benchmark.task import Task
from edgewise.config import files
from edgewise.config.errors import ConfigError, DataError
from edgewise.config.wording import did_you_mean
from edgewise.envs.policy import Policy
from edgewise.plugins.addresses import Address, import_place

NAME = re.compile(r"[a-z0-9][a-z0-9._/-]{0,39}")
COLUMNS = ("task", "split", "seed", "instance", "value")
"""Columns of a recorded table."""
SIZE = ("hidden", "layers")
"""Settings of an encoder that one of another kind keeps."""
Recorded = dict[tuple[str, int], dict[str, list[float]]]
"""Values by task and seed, then by split, in the order of instances."""


@dataclass(frozen=True)
class Budget:
    """How long every network of a benchmark trains: minutes of CPU time, or frames in a smoke run."""

    minutes: float | None = None
    smoke: bool = False


Policies = Callable[[Any], Policy | None]
"""Returns the policy for an environment, as a baseline does; None where it cannot act."""
Learner = Callable[[Task, int, Budget], Policies]
"""Learns a task with a seed and a budget."""


@dataclass(frozen=True)
class Method:
    """A column of the benchmark. Give one of `algorithm`, `policy` and `learn`.

    Args:
        name: in tables: small letters, digits, dots, dashes and slashes.
        algorithm: name, address or class of an algorithm for all tasks, or a mapping from tasks to names.
        settings: of every run, by section, as for `ew.train`: `{"model": {"encoder": {"hidden": 32}}}`.
        by_task: settings that differ between tasks, by the name of the task.
        policy: returns a hand-written policy for an environment.
        learn: learns a task in any way, and returns what returns a policy for an environment.
        tasks: names of the tasks that it is for; all if empty.
    """

    name: str
    algorithm: str | type | Mapping[str, str] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_task: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    policy: Policies | None = None
    learn: Learner | None = None
    tasks: tuple[str, ...] = ()
    recorded: Recorded | None = None
    sha256: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ConfigError(
                f"Method: name is {self.name!r}", hint="use small letters, digits, dots, dashes and slashes"
            )
        ways = {name: getattr(self, name) for name in ("algorithm", "policy", "learn", "recorded")}
        given = [name for name, value in ways.items() if value is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise ConfigError(f"Method {self.name}: expected algorithm, policy or learn, got {found}")
        for name in ("policy", "learn"):
            if ways[name] is not None and not callable(ways[name]):
                raise ConfigError(f"Method {self.name}: {name} is {ways[name]!r}, expected a function")
        for name in ("settings", "by_task"):
            if not isinstance(getattr(self, name), Mapping):
                raise ConfigError(
                    f"Method {self.name}: {name} is {getattr(self, name)!r}, expected a mapping"
                )

    @property
    def is_trained(self) -> bool:
        """Whether edgewise trains it, so that it is also measured untrained, without edges and as an MLP."""
        return self.algorithm is not None

    @property
    def has_seeds(self) -> bool:
        """Whether its policy depends on a seed."""
        return self.policy is None

    def applies(self, task: Task) -> bool:
        """Return whether it is for a task."""
        if isinstance(self.algorithm, Mapping) and task.name not in self.algorithm:
            return False
        return not self.tasks or task.name in self.tasks

    def algorithm_for(self, task: Task) -> str | type:
        """Return the algorithm that learns a task."""
        found = self.algorithm[task.name] if isinstance(self.algorithm, Mapping) else self.algorithm
        assert found is not None
        return found

    def settings_for(self, task: Task) -> dict[str, Any]:
        """Return the settings of a run by section."""
        return merged(task.training, self.settings, self.by_task.get(task.name, {}))

    def with_settings(self, name: str, **settings: Any) -> Method:
        """Return this method under another name with further settings, which win."""
        by_task = {task: merged(given, settings) for task, given in self.by_task.items()}
        return replace(self, name=name, settings=merged(self.settings, settings), by_task=by_task)

    def to_plain(self) -> dict[str, Any]:
        """Return what identifies the method, for the plan of a results folder."""
        algorithm = self.algorithm
        return {
            "algorithm": algorithm.__name__ if isinstance(algorithm, type) else algorithm,
            "settings": self.settings,
            "by_task": self.by_task,
            "tasks": list(self.tasks),
            "sha256": self.sha256,
        }


def merged(*given: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings laid over each other; later ones win.

    Example:
        >>> merged({"env": {"a": 1, "b": 2}}, {"env": {"b": 3}})
        {'env': {'a': 1, 'b': 3}}
    """
    found: dict[str, Any] = {}
    for settings in given:
        for name, value in settings.items():
            before = found.get(name, {})
            if not isinstance(value, Mapping):
                found[name] = value
            elif "kind" in value:  # of another kind, most other settings have no meaning
                found[name] = {**{each: before[each] for each in SIZE if each in before}, **value}
            else:
                found[name] = merged(before, value)
    return found


def read_method(reference: str) -> Method:
    """Return the method that a word of the command line means.

    Args:
        reference: a name such as `ppo` or `ppo/gatv2`; `file.py` with `METHOD`, or `file.py:NAME`; or a table
            `file.csv`.

    Raises:
        ConfigError: there is no such method, or it is not one.
        DataError: the table cannot be used.
    """
    if reference.endswith(".csv"):
        return _read_table(Path(reference))
    address = Address.parse(reference)
    if address is None:
        return _by_name(reference)
    module, name = import_place(address), address.name or "METHOD"
    found = getattr(module, name, None)
    if not isinstance(found, Method):
        what = "has no such name" if found is None else f"is {type(found).__name__} there"
        raise ConfigError(
            f"{address.place}: {name} {what}",
            hint=f'the file needs {name} = Method("my-method", ...), from edgewise.benchmark.method',
        )
    content = files.read_bytes(address.file) if address.is_file else b""
    return replace(found, sha256=hashlib.sha256(content).hexdigest())


def _by_name(reference: str) -> Method:
    name, _, encoder = reference.partition("/")
    if name not in SHIPPED:
        raise ConfigError(
            f"--method: no method is called {reference}",
            hint=f"{did_you_mean(name, list(SHIPPED))}; or give a file my_method.py, or a table.csv",
        )
    if encoder and encoder not in ENCODERS:
        raise ConfigError(
            f"--method: {reference} has no encoder {encoder}", hint=did_you_mean(encoder, list(ENCODERS))
        )
    method = Method(name, **SHIPPED[name])
    return method.with_settings(reference, model={"encoder": ENCODERS[encoder]}) if encoder else method


def _read_table(path: Path) -> Method:
    """Read values that were measured elsewhere, a row for each instance."""
    try:
        content = files.read_bytes(path, largest=files.LARGEST_TABLE)
        rows = list(csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: the table cannot be read: {error}") from error
    if not rows or tuple(rows[0]) != COLUMNS:
        found = ",".join(rows[0]) if rows else "no rows"
        raise DataError(f"{path}: got {found}, expected the columns {','.join(COLUMNS)} and rows below")
    recorded: Recorded = {}
    for number, row in enumerate(rows, start=2):
        try:
            key, instance, value = (row["task"], int(row["seed"])), int(row["instance"]), float(row["value"])
        except (TypeError, ValueError) as error:
            raise DataError(f"{path}: line {number}: {error}") from error
        values = recorded.setdefault(key, {}).setdefault(row["split"], [])
        if instance != len(values) or not math.isfinite(value):
            raise DataError(
                f"{path}: line {number}: got instance {instance} with value {value}, expected instance "
                f"{len(values)} with a finite number: instances count from 0 in order"
            )
        values.append(value)
    name = re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower()).strip("-.") or "table"
    named = tuple(dict.fromkeys(task for task, _ in recorded))
    return Method(name, recorded=recorded, tasks=named, sha256=hashlib.sha256(content).hexdigest())
