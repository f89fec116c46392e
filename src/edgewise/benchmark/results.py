"""The results folder: the values of every column in files of their own, from which all tables are computed.

study.json       the plan: version, budget, methods, tasks, seeds
instances.json   number and SHA-256 of the instances of every task and split
values/TASK/     a file for each column and seed: the measure of every instance
runs/            the run folders of trained networks
times.json       CPU seconds of training and of solvers; the only figures that differ from run to run
results.json     the table, computed from values/ alone
digests.json     SHA-256 of every file above and of every table beside it
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise.benchmark.columns import Measured
from edgewise.config import files
from edgewise.config.errors import DataError
from edgewise.runs import durable
from edgewise.studies.folder import StudyFolder

KIND = "benchmark of graphs"
INSTANCES, RESULTS, TIMES, DIGESTS = "instances.json", "results.json", "times.json", "digests.json"
UNHASHED = re.compile(r"lock|logs/.*|runs/.*|digests\.json")
"""Files that digests.json leaves out; run folders have records of their own."""
SOLVER, RULE, METHOD = "solver", "rule", "method"
WHOLE, UNTRAINED, NO_EDGES, MLP = "", "untrained", "without edges", "mlp"
PARTS = (UNTRAINED, NO_EDGES, MLP, WHOLE)


@dataclass(frozen=True)
class Column:
    """What a file of values belongs to.

    Args:
        task: its name.
        kind: `solver`, `rule` or `method`.
        name: of the rule or method.
        part: of a trained method: `untrained`, `without edges`, `mlp`, or empty for the method itself.
        seed: None for what has no seed.
    """

    task: str
    kind: str
    name: str = ""
    part: str = WHOLE
    seed: int | None = None

    @property
    def label(self) -> str:
        """The name of a file or run folder."""
        words = [self.kind, self.name, self.part, "" if self.seed is None else f"seed-{self.seed}"]
        return "--".join(re.sub(r"[^a-z0-9._]+", "-", word) for word in words if word)


@dataclass(frozen=True)
class Stored:
    """The content of a file of values."""

    column: Column
    values: Mapping[str, list[float]]
    notes: Mapping[str, Any]
    curve: list[tuple[int, float]]


class ResultsFolder:
    """Reads and writes the values of columns.

    Args:
        study: the folder.
    """

    def __init__(self, study: StudyFolder) -> None:
        self.study, self.path = study, study.path

    def file(self, column: Column) -> Path:
        """Return the file of a column."""
        return self.path / "values" / column.task / f"{column.label}.json"

    def run(self, column: Column) -> Path:
        """Return the folder of the run of a trained column."""
        return self.study.run(f"{column.task}--{column.label}")

    def measured(self, column: Column, measure: Callable[[], Measured]) -> None:
        """Measure a column, unless its file exists."""
        file = self.file(column)
        if file.is_file():
            return
        found = measure()
        file.parent.mkdir(parents=True, exist_ok=True)
        if found.seconds:
            times = self.times()
            times[f"{column.task}/{column.label}"] = found.seconds
            self.write(TIMES, times)
        content = {**vars(column), "values": found.values, "notes": found.notes, "curve": found.curve}
        durable.replace_whole(file, as_json(content))

    def times(self) -> dict[str, float]:
        """Return CPU seconds by task and column."""
        file = self.path / TIMES
        found: dict[str, float] = files.read_json(file) if file.is_file() else {}
        return found

    def write(self, name: str, content: Any) -> None:
        """Write a JSON file, atomically."""
        durable.replace_whole(self.path / name, as_json(content))

    def read(self, name: str) -> Any:
        """Read a JSON file."""
        return files.read_json(self.path / name)

    def stored(self) -> list[Stored]:
        """Return all columns, in the order of their files.

        Raises:
            DataError: a file is not as this program writes it.
        """
        return [read_stored(file) for file in sorted((self.path / "values").glob("*/*.json"))]

    def seal(self) -> None:
        """Record the SHA-256 of every file."""
        self.write(DIGESTS, {name: sha256(self.path / name) for name in hashed_files(self.path)})


def read_stored(file: Path) -> Stored:
    """Read a file of values; raises DataError if it is not one."""
    try:
        given = files.read_json(file)
        column = Column(**{name: given[name] for name in ("task", "kind", "name", "part", "seed")})
        values = {split: [float(value) for value in row] for split, row in given["values"].items()}
        curve = [(int(frames), float(value)) for frames, value in given["curve"]]
        return Stored(column, values, given["notes"], curve)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{file}: it is no file of values: {error}") from error


def hashed_files(folder: Path) -> list[str]:
    """Return the names of all files that digests.json records."""
    names = (file.relative_to(folder).as_posix() for file in sorted(folder.rglob("*")) if file.is_file())
    return [name for name in names if not UNHASHED.fullmatch(name)]


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(files.read_bytes(file, largest=files.LARGEST_TABLE)).hexdigest()


def as_json(content: Any) -> bytes:
    """Return JSON that is the same for the same content."""
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
