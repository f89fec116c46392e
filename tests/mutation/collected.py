"""A pytest session that collects all tests once, and then runs chosen ones in forks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

ARGUMENTS = (
    "-s",
    "-qq",
    "--no-header",
    "--no-summary",
    "-m",
    "not learning and not thorough and not gpu",
    "-p",
    "no:xdist",
    "-p",
    "no:cacheprovider",
)


class Collected:
    """A plug-in that hands the collected tests to a function in place of running them.

    Args:
        then: called once with this object, when all tests are collected.

    Attributes:
        items: by node id.
        seconds: processor time of each test that was run in this process.
        outcome: `passed`, `failed` or `skipped`, of each test that was run in this process.
    """

    def __init__(self, then: Callable[[Collected], None]) -> None:
        self._then = then
        self.items: dict[str, pytest.Item] = {}
        self.seconds: dict[str, float] = {}
        self.outcome: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Replace pytest's loop over the tests."""
        self.items = {item.nodeid: item for item in session.items}
        self._then(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a test ended."""
        if report.outcome != "passed" or report.when == "call":
            self.outcome[report.nodeid] = report.outcome
        if report.failed:
            print(f"{report.nodeid}\n{report.longreprtext}")

    def run(self, names: Sequence[str], *, around: Callable[[str], Any] | None = None) -> None:
        """Run tests in this process, with `around` called with the name of each before and "" after it."""
        for name in names:
            if around is not None:
                around(name)
            self._run_one(name, names)
            if around is not None:
                around("")

    def first_failure(self, names: Sequence[str]) -> str | None:
        """Run tests in this process until one fails, and return that one."""
        for name in names:
            self._run_one(name, names)
            if self.outcome.get(name) == "failed":
                return name
        return None

    def set_up_by(self, names: Sequence[str]) -> dict[str, set[str]]:
        """Return for each test the earlier ones that set up a fixture of the module which it uses too."""
        first: dict[str, str] = {}
        found = {}
        for name in names:
            fixtures = getattr(self.items[name], "_fixtureinfo").name2fixturedefs  # noqa: B009 - pytest's own
            shared = [each for each, definitions in fixtures.items() if definitions[-1].scope == "module"]
            found[name] = {first.setdefault(each, name) for each in shared} - {name}
        return found

    def _run_one(self, name: str, names: Sequence[str]) -> None:
        """Run one of several tests; fixtures that the next one shares stay."""
        item, after = self.items[name], names[names.index(name) + 1 :]
        following = self.items[after[0]] if after else None
        began = time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self.seconds[name] = time.process_time() - began


def collect(test_files: Iterable[str], then: Callable[[Collected], None]) -> int:
    """Collect the tests of some files in this process, call `then`, and return pytest's exit code."""
    return int(pytest.main([*ARGUMENTS, *test_files], plugins=[Collected(then)]))
