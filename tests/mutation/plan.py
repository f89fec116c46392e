"""What one run of `make mutate` does, and what it and earlier runs have found."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.mutation import reach
from tests.mutation.faults import Fault

PROJECT = Path(__file__).parents[2]
KEPT = PROJECT / ".mutate"
FOUND = KEPT / "found.json"
LIVED = KEPT / "lived.json"
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
        random: whether the faults are random ones; then those that lived are kept too.
        lived: by the name of a random fault that no test noticed: what must be unchanged for that to hold.
    """

    faults: list[Fault]
    copy: Path
    work: Path
    workers: int
    pattern: str
    found: dict[str, dict[str, str]] = field(default_factory=dict)
    sound: set[tuple[str, ...]] = field(default_factory=set)
    random: bool = False
    lived: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def logs(self) -> Path:
        """Folder of the output of sessions."""
        return self.work / "logs"

    @property
    def left(self) -> list[Fault]:
        """The faults that no test has found yet."""
        return [fault for fault in self.faults if fault.name not in self.found]

    @property
    def undecided(self) -> list[Fault]:
        """The faults that are still to be planted."""
        return [fault for fault in self.left if fault.name not in self.lived]

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
        lived = json.loads(LIVED.read_text()) if LIVED.exists() else {}
        self.lived = {
            fault.name: lived[fault.name]
            for fault in self.left
            if fault.name in lived and lived[fault.name] == self._survival(fault)
        }

    def keep_survivor(self, fault: Fault) -> None:
        """Keep for later runs that no test noticed a random fault."""
        if self.random:
            self.lived[fault.name] = self._survival(fault)
            kept = json.loads(LIVED.read_text()) if LIVED.exists() else {}
            LIVED.write_text(json.dumps(kept | {fault.name: self.lived[fault.name]}, indent=1))

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

    def _survival(self, fault: Fault) -> dict[str, str]:
        """Return what must be unchanged for a survivor to stay one: its file and all tests."""
        return {"source": reach.digest(fault.path(self.copy)), "tests": self._tests}

    @cached_property
    def _tests(self) -> str:
        digests = "".join(reach.digest(self.copy / each) for each in self.test_files())
        return hashlib.sha256(digests.encode()).hexdigest()[:16]
