"""Check a results folder that was handed over: its files, its table, its instances and its rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from edgewise.benchmark.columns import Field
from edgewise.benchmark.results import (
    DIGESTS,
    INSTANCES,
    KIND,
    RESULTS,
    RULE,
    ResultsFolder,
    Stored,
    as_json,
    hashed_files,
    read_stored,
    sha256,
)
from edgewise.benchmark.run import tasks_of
from edgewise.benchmark.scores import results
from edgewise.benchmark.task import VERSION
from edgewise.config import files
from edgewise.config.errors import DataError, EdgewiseError
from edgewise.runs.verify import CheckedFile, verify_run
from edgewise.studies.folder import PLAN, StudyFolder, first_difference

CLOSE = 1e-6
"""Relative difference of a rule's value that counts as rounding on another machine."""


def is_benchmark(folder: Path) -> bool:
    """Return whether a folder holds results of the benchmark."""
    try:
        plan = files.read_json(folder / PLAN)
    except (OSError, ValueError):
        return False
    return isinstance(plan, dict) and plan.get("kind") == KIND


def verify_benchmark(folder: Path) -> list[CheckedFile]:
    """Check a results folder; nothing is changed.

    Every file, those of run folders included, has its recorded SHA-256; the table is computed again from the
    values; instances are made again from their seeds, and rules play them again. What a trained network
    scored is believed: its run folder in `runs/` can be evaluated.
    """
    store = ResultsFolder(StudyFolder(folder))
    if store.study.plan.get("version") != VERSION:
        raise DataError(
            f"{folder}: its version is not {VERSION}", hint="check it with the edgewise of its time"
        )
    try:
        recorded = {str(name): str(value) for name, value in store.read(DIGESTS).items()}
    except (OSError, ValueError, AttributeError):
        return [CheckedFile(DIGESTS, "it is missing or damaged: the benchmark has not ended")]
    names = {**recorded, **dict.fromkeys(hashed_files(folder))}
    found = [_file(folder, name, recorded.get(name)) for name in names]
    return [*found, *_runs(store), *_computed(store)]


def _runs(store: ResultsFolder) -> Iterator[CheckedFile]:
    """Check the run folders of networks, each as a whole."""
    for run in sorted(store.study.runs.glob("*")):
        try:
            faults = [each for each in verify_run(run, readers={}) if each.fault is not None]
        except EdgewiseError as error:
            faults = [CheckedFile("it", error.message)]
        what = "; ".join(f"{each.name}: {each.fault}" for each in faults)
        yield CheckedFile(f"runs/{run.name}", what or None)


def _file(folder: Path, name: str, recorded: str | None) -> CheckedFile:
    path = folder / name
    if recorded is None:
        return CheckedFile(name, f"it has no SHA-256 in {DIGESTS}")
    if not path.is_file():
        return CheckedFile(name, "it is missing")
    try:
        same = sha256(path) == recorded
    except OSError as error:
        return CheckedFile(name, f"it cannot be read: {error.strerror or error}")
    return CheckedFile(
        name, None if same else f"it is not as it was written: its SHA-256 is not that in {DIGESTS}"
    )


def _computed(store: ResultsFolder) -> Iterator[CheckedFile]:
    """Compute the table, the instances and the values of rules again."""
    stored: list[Stored] = []
    for file in sorted((store.path / "values").glob("*/*.json")):
        try:
            stored.append(read_stored(file))
        except (EdgewiseError, OSError) as error:
            yield CheckedFile(file.relative_to(store.path).as_posix(), str(error))
            return
    try:
        instances, given, chosen = store.read(INSTANCES), store.read(RESULTS), tasks_of(store.study.plan)
        found = results(chosen, stored, instances, smoke=bool(store.study.plan["smoke"]))
        table = json.loads(as_json(found))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield CheckedFile(RESULTS, f"the table cannot be computed: {error!r}")
        return
    different = first_difference(table, given)
    yield CheckedFile("table from values", None if different is None else f"results.json: {different}")
    for name, task in chosen.items():
        if name not in instances:
            continue
        field = Field(task)
        different = first_difference(field.record(), instances[name])
        yield CheckedFile(f"instances of {name}", different)
        if different is None:
            yield from _rules(field, [one for one in stored if one.column.task == name])


def _rules(field: Field, stored: list[Stored]) -> Iterator[CheckedFile]:
    """Let the rules of a task play again."""
    from edgewise.benchmark.columns import by_rule

    for one in stored:
        if one.column.kind != RULE:
            continue
        again = by_rule(field, one.column.name).values
        same = again.keys() == one.values.keys() and all(
            len(again[split]) == len(row)
            and all(abs(a - b) <= CLOSE * max(1.0, abs(b)) for a, b in zip(again[split], row, strict=True))
            for split, row in one.values.items()
        )
        fault = None if same else "the rule scores something else on these instances"
        yield CheckedFile(f"{one.column.name} in {field.task.name}", fault)
