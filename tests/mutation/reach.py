"""Which tests reach which lines: recorded once per test file, by coverage.py with one context per test."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from tests.mutation.collected import Collected
from tests.mutation.faults import PACKAGE, Fault

SKIPPED = (
    "tests/learning",
    "tests/examples",
    "tests/architecture",
    "tests/mutation",
    "tests/scale/processes/test_ranks.py",
)
"""Tests that reach the package from other processes, or not at all."""
SLOWEST = 20.0
"""Tests that take longer, in seconds, are not used."""


def digest(path: Path) -> str:
    """Return a short hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def test_files(root: Path) -> list[str]:
    """Return all test files that are recorded."""
    found = sorted(str(path.relative_to(root)) for path in (root / "tests").rglob("test_*.py"))
    return [path for path in found if not path.startswith(SKIPPED)]


def record(tests: Collected, test_file: str, copy: Path, folder: Path) -> int:
    """Run the tests of one file and write which lines of the package each of them reaches.

    A test that uses what an earlier one has set up for the module reaches the lines of that one too.
    """
    import coverage

    package = copy / PACKAGE
    names = [name for name in tests.items if name.split("::")[0] == test_file]
    tracer = coverage.Coverage(data_file=None, source=[str(package)], config_file=False, messages=False)
    tracer.start()
    tests.run(names, around=tracer.switch_context)
    tracer.stop()
    reached = _reached(tracer.get_data(), package) if names else {}
    for bits in reached.values():
        for name, others in tests.set_up_by(names).items():
            bits[name] = reduce(or_, (bits.get(other, 0) for other in others), bits.get(name, 0))
    passed = [name for name in names if tests.outcome.get(name) == "passed"]
    document = {
        "digest": digest(copy / test_file),
        "sources": {file: digest(package / file) for file in reached},
        "tests": {name: round(tests.seconds[name], 3) for name in passed},
        "failed": [name for name in names if tests.outcome.get(name) == "failed"],
        "lines": {
            file: {name: f"{bits[name]:x}" for name in passed if bits.get(name)}
            for file, bits in reached.items()
        },
    }
    recording(folder, test_file).write_text(json.dumps(document))
    return 0


def _reached(data: Any, package: Path) -> dict[str, dict[str, int]]:
    """Return for every file of the package the lines of each test, as the bits of a number."""
    reached = {}
    for file in data.measured_files():
        bits: dict[str, int] = {}
        for line, tests in data.contexts_by_lineno(file).items():
            for test in tests:
                bits[test] = bits.get(test, 0) | 1 << line
        reached[str(Path(file).relative_to(package))] = bits
    return reached


@dataclass
class Reach:
    """The recorded map.

    Attributes:
        seconds: duration of every test that passed.
        failed: tests that failed without any fault.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _lines: dict[str, list[tuple[str, int, str]]] = field(default_factory=dict)

    def add(self, document: dict[str, Any]) -> None:
        """Add the recording of one test file."""
        self.seconds.update(document["tests"])
        self.failed += document["failed"]
        for file, tests in document["lines"].items():
            recorded = document["sources"][file]
            self._lines.setdefault(file, []).extend(
                (name, int(bits, 16), recorded) for name, bits in tests.items()
            )

    def tests_of(self, fault: Fault, root: Path, *, budget: float = math.inf) -> list[str]:
        """Return the tests that reach a fault, those that should find it soonest first.

        A test counts if it ran a line of the changed statement. If that statement runs at import, or the file
        is not the one that was recorded, it counts if it ran any line of the file.

        Args:
            fault: the fault.
            root: of the project.
            budget: seconds that all of them may take together.
        """
        path = fault.path(root)
        statement, now = fault.lines(path.read_text()), digest(path)
        wanted = sum(1 << line for line in statement.numbers)
        found = [
            test
            for test, bits, recorded in self._lines.get(fault.file, ())
            if statement.runs_at_import or recorded != now or bits & wanted
        ]
        usable = (test for test in dict.fromkeys(found) if self.seconds[test] <= SLOWEST)
        chosen, spent = [], 0.0
        for test in sorted(usable, key=lambda test: self._cost(test, fault)):
            spent += self.seconds[test]
            if spent > budget:
                break
            chosen.append(test)
        return chosen

    def _cost(self, test: str, fault: Fault) -> float:
        """Prefer short tests, and those in the folder that mirrors the file of the fault."""
        folder = "tests/" + fault.file.rsplit("/", 1)[0]
        stem = fault.file.rsplit("/", 1)[1].removesuffix(".py")
        near = 0.05 if f"/test_{stem}.py" in test else 0.2 if test.startswith(folder) else 1.0
        return (self.seconds[test] + 0.02) * near


def read(folder: Path, test_files: Iterable[str]) -> Reach:
    """Read the recordings of `test_files`, as far as there are any."""
    reach = Reach()
    for path in (recording(folder, each) for each in test_files):
        if path.exists():
            reach.add(json.loads(path.read_text()))
    return reach


def recording(folder: Path, test_file: str) -> Path:
    """Return where the recording of a test file is kept."""
    return folder / (test_file.replace("/", ".") + ".json")


def stale(folder: Path, root: Path, test_files: Iterable[str]) -> list[str]:
    """Return the test files that were never recorded, changed since, or have tests that failed."""
    return [each for each in test_files if not _current(recording(folder, each), root / each)]


def _current(kept: Path, test_file: Path) -> bool:
    if not kept.exists():
        return False
    document = json.loads(kept.read_text())
    return document["digest"] == digest(test_file) and not document["failed"]
