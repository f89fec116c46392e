"""Which tests reach which lines: recorded once per test file, by coverage.py with one context per test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.faults import PACKAGE, Fault

SKIPPED = ("tests/learning", "tests/examples", "tests/architecture", "tests/mutation")
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


class _Recorder:
    """A pytest plug-in that switches the context of coverage with every test."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.outcome: dict[str, str] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        self.coverage.switch_context(item.nodeid)
        yield
        self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.outcome != "passed" or report.when == "call":
            self.outcome[report.nodeid] = report.outcome


def record(test_files: Sequence[str], copy: Path, folder: Path) -> int:
    """Run some test files and write which lines of the package each of their tests reaches."""
    import coverage

    package = copy / PACKAGE
    tracer = coverage.Coverage(data_file=None, source=[str(package)], config_file=False, messages=False)
    recorder = _Recorder(tracer)
    tracer.start()
    arguments = ["-m", "not learning", "-p", "no:xdist", "-p", "no:cacheprovider", "-q"]
    code = int(pytest.main([*arguments, *test_files], plugins=[recorder]))
    tracer.stop()
    if code not in (0, 1, 5):
        return code
    reached = _reached(tracer.get_data(), package)
    folder.mkdir(parents=True, exist_ok=True)
    for test_file in test_files:
        outcome = {name: each for name, each in recorder.outcome.items() if name.split("::")[0] == test_file}
        passed = [name for name, each in outcome.items() if each == "passed"]
        document = {
            "digest": digest(copy / test_file),
            "sources": {file: digest(package / file) for file in reached},
            "tests": {name: round(recorder.seconds[name], 3) for name in passed},
            "failed": sorted(name for name, each in outcome.items() if each == "failed"),
            "lines": {
                file: {name: f"{bits[name]:x}" for name in passed if name in bits} for file, bits in reached.items()
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

    def tests_of(self, fault: Fault, root: Path) -> list[str]:
        """Return the tests that reach a fault, those that should find it soonest first.

        A test counts if it ran a line of the changed statement. If that statement runs at import, or the file
        is not the one that was recorded, it counts if it ran any line of the file.
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
        return sorted(usable, key=lambda test: self._cost(test, fault))

    def _cost(self, test: str, fault: Fault) -> float:
        """Prefer short tests, and those in the folder that mirrors the file of the fault."""
        folder = "tests/" + fault.file.rsplit("/", 1)[0]
        stem = fault.file.rsplit("/", 1)[1].removesuffix(".py")
        near = 0.05 if f"/test_{stem}.py" in test else 0.2 if test.startswith(folder) else 1.0
        return (self.seconds[test] + 0.02) * near


def read(folder: Path, test_files: Iterable[str]) -> Reach:
    """Read the recordings of `test_files`."""
    reach = Reach()
    for test_file in test_files:
        reach.add(json.loads(recording(folder, test_file).read_text()))
    return reach


def recording(folder: Path, test_file: str) -> Path:
    """Return where the recording of a test file is kept."""
    return folder / (test_file.replace("/", ".") + ".json")


def stale(folder: Path, root: Path, test_files: Iterable[str]) -> list[str]:
    """Return the test files that were never recorded, or changed since."""
    return [each for each in test_files if not _current(recording(folder, each), root / each)]


def _current(kept: Path, test_file: Path) -> bool:
    return kept.exists() and json.loads(kept.read_text())["digest"] == digest(test_file)
