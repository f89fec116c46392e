"""What one run of `make mutate` does, and what it and earlier runs have found."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation import reach
from tests.mutation.faults import Fault

PROJECT = Path(__file__).parents[2]
KEPT = PROJECT / ".mutate"
FOUND = KEPT / "found.json"
NOTICED, UNPLANTED = 98, 99
"""Exit codes of sessions: a test failed; the fault could not be planted by replacing code."""


@dataclass
class Plan:
    """What is done, and what was found so far.

    Attributes:
        faults: to be planted.
        copy: of the project.
        work: folder for logs.
        workers: sessions at a time.
        pattern: of the test files that are used.
        found: by the name of a fault: the test that found it, and hashes of its file and of the test's file.
        sound: lists of tests of which the last one passes without a fault.
    """

    faults: list[Fault]
    copy: Path
    work: Path
    workers: int
    pattern: str
    found: dict[str, dict[str, str]] = field(default_factory=dict)
    sound: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def logs(self) -> Path:
        """Folder of the output of sessions."""
        return self.work / "logs"

    @property
    def left(self) -> list[Fault]:
        """The faults that no test has found yet."""
        return [fault for fault in self.faults if fault.name not in self.found]

    def test_files(self) -> list[str]:
        """Return the test files that are used."""
        return [each for each in reach.test_files(self.copy) if re.search(self.pattern, each)]

    def read(self) -> None:
        """Read the findings of earlier runs that still hold."""
        kept = json.loads(FOUND.read_text()) if FOUND.exists() else {}
        for fault in self.faults:
            entry = kept.get(fault.name)
            if entry is not None and entry == self._finding(fault, entry["test"]):
                self.found[fault.name] = entry

    def keep(self, fault: Fault, test: str) -> None:
        """Keep a finding for later runs."""
        self.found[fault.name] = self._finding(fault, test)
        kept = json.loads(FOUND.read_text()) if FOUND.exists() else {}
        KEPT.mkdir(exist_ok=True)
        FOUND.write_text(json.dumps(kept | {fault.name: self.found[fault.name]}, indent=1))

    def note(self, fault: Fault, test: str | None) -> int:
        """Write down the test that failed, for the process that waits, and return the exit code."""
        if test is None:
            return 0
        (self.work / f"{fault.safe_name}.test").write_text(test)
        return NOTICED

    def noted(self, fault: Fault) -> str:
        """Return the test that was written down."""
        return (self.work / f"{fault.safe_name}.test").read_text()

    def _finding(self, fault: Fault, test: str) -> dict[str, str]:
        """Return what must be unchanged for a finding to hold."""
        file = self.copy / test.split("::")[0]
        digest = reach.digest(file) if file.is_file() else ""
        return {"test": test, "source": reach.digest(fault.path(self.copy)), "test_file": digest}
