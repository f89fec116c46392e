"""Plant the listed faults one at a time and print which of them no test noticed: `make mutate`.

    python -m tests.mutation.mutate [--only PATTERN] [--tests PATTERN] [--list] [--fresh] [--workers 2]

Nothing is changed in the working tree: all happens in a copy. One process imports the package, collects the
tests and records which lines each of them reaches. For every fault it forks, replaces the code of the changed
function, and runs the tests that reach it until one fails. A fault outside of functions, or one that no test
noticed, is then written to the file of a copy, and the tests run in a process that imports everything anew.

A run that is interrupted goes on where it stopped; a fault counts as found without a new run while its file
and the test that found it are unchanged.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation import collected, fork_server, reach
from tests.mutation import faults as fault_list
from tests.mutation.collected import Collected
from tests.mutation.faults import PACKAGE, Fault
from tests.mutation.fork_server import TIMED_OUT, Session, run_sessions
from tests.mutation.hot_patch import Functions, make_patch

PROJECT = Path(__file__).parents[2]
KEPT = PROJECT / ".mutate"
BUDGET = 60.0
"""Seconds of tests, as recorded, that are run at most for one fault."""
COLD_BUDGET = 15.0
"""The same for processes that import everything anew."""
BATCH = 40
"""Faults that are planted before the tests that noticed them are run without a fault."""
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
        kept = json.loads(_FOUND.read_text()) if _FOUND.exists() else {}
        for fault in self.faults:
            entry = kept.get(fault.name)
            if entry is not None and entry == self._finding(fault, entry["test"]):
                self.found[fault.name] = entry

    def keep(self, fault: Fault, test: str) -> None:
        """Keep a finding for later runs."""
        self.found[fault.name] = self._finding(fault, test)
        kept = json.loads(_FOUND.read_text()) if _FOUND.exists() else {}
        KEPT.mkdir(exist_ok=True)
        _FOUND.write_text(json.dumps(kept | {fault.name: self.found[fault.name]}, indent=1))

    def note(self, fault: Fault, test: str | None) -> int:
        """Write down the test that failed, for the process that waits, and return the exit code."""
        if test is None:
            return 0
        (self.work / f"{_safe(fault)}.test").write_text(test)
        return NOTICED

    def noted(self, fault: Fault) -> str:
        """Return the test that was written down."""
        return (self.work / f"{_safe(fault)}.test").read_text()

    def _finding(self, fault: Fault, test: str) -> dict[str, str]:
        """Return what must be unchanged for a finding to hold."""
        file = self.copy / test.split("::")[0]
        digest = reach.digest(file) if file.is_file() else ""
        return {"test": test, "source": reach.digest(fault.path(self.copy)), "test_file": digest}


_FOUND = KEPT / "found.json"


def main() -> int:
    """Run the program and return its exit code."""
    options = _options()
    chosen = fault_list.load()
    if options.only:
        chosen = [fault for fault in chosen if re.search(options.only, f"{fault.file} {fault.what}")]
    wrong = fault_list.problems(chosen, PROJECT)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 2
    if options.list:
        for fault in chosen:
            print(f"{fault.file}: {fault.what}")
        print(f"{len(chosen)} faults")
        return 0
    if not chosen:
        print(f"no fault matches {options.only!r}; --list shows all of them", file=sys.stderr)
        return 2
    if options.fresh:
        shutil.rmtree(KEPT, ignore_errors=True)
    fork_server.preload()
    _register_profiles()
    with tempfile.TemporaryDirectory(prefix="edgewise-mutate-") as work:
        copy = fork_server.make_copy(PROJECT, Path(work) / "copy")
        plan = Plan(chosen, copy, Path(work), options.workers, options.tests)
        plan.read()
        if plan.left:
            _in_child(lambda: _hot(plan))
            plan.read()
        if plan.left:
            _cold(plan)
        return _table(plan, floor=options.floor)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Plant the listed faults and print which no test noticed.")
    parser.add_argument(
        "--only", metavar="PATTERN", help="only faults whose file or text match this expression"
    )
    parser.add_argument("--tests", metavar="PATTERN", default="", help="only test files whose path matches")
    parser.add_argument("--list", action="store_true", help="print the list of faults and stop")
    parser.add_argument(
        "--fresh", action="store_true", help="forget earlier results and record all tests again"
    )
    parser.add_argument("--workers", type=int, default=2, help="sessions at a time (2)")
    parser.add_argument("--floor", type=float, default=95.0, help="percentage of faults to be found (95)")
    return parser.parse_args()


def _register_profiles() -> None:
    """Give all sessions the same examples in every run; a failing one is not made smaller."""
    from hypothesis import HealthCheck, Phase, settings

    for name, examples in (("mutate", 100), ("record", 10)):
        settings.register_profile(
            name,
            max_examples=examples,
            derandomize=True,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
    os.environ["HYPOTHESIS_PROFILE"] = "mutate"


def _in_child(call: Callable[[], object]) -> None:
    """Call a function in a fork that shares this terminal, and wait for it."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            call()
            code = 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise SystemExit("the tests could not be collected")


def _hot(plan: Plan) -> None:
    """Collect all tests, record what is not recorded yet, and plant faults by replacing code."""
    fork_server.enter_copy(plan.copy)

    def work(tests: Collected) -> None:
        reached = _record(tests, plan)
        if reached.failed:
            print(
                f"{len(reached.failed)} tests fail without a fault and are not used:",
                *reached.failed,
                sep="\n  ",
            )
        for file in sorted({fault.file for fault in plan.left}):
            importlib.import_module("edgewise." + file.removesuffix(".py").replace("/", "."))
        functions = Functions(plan.copy / PACKAGE)
        _plant_hot(tests, plan, reached, functions)

    collected.collect(plan.test_files(), work)


def _record(tests: Collected, plan: Plan) -> reach.Reach:
    """Record the test files that are new or changed, and return the whole map."""
    folder, files = KEPT / "reach", plan.test_files()
    folder.mkdir(parents=True, exist_ok=True)
    needed = reach.stale(folder, plan.copy, files)

    def session(test_file: str) -> Session:
        def call() -> int:
            from hypothesis import settings

            settings.load_profile("record")
            return reach.record(tests, test_file, plan.copy, folder)

        return Session(test_file.replace("/", "."), call, timeout=1800.0)

    with _progress("recording", len(needed)) as advance:
        for done, code in run_sessions(
            [session(each) for each in needed], workers=plan.workers, logs=plan.logs
        ):
            if code:
                raise SystemExit(_failed(plan, done, code))
            advance(done.name)
    return reach.read(folder, files)


def _plant_hot(tests: Collected, plan: Plan, reached: reach.Reach, functions: Functions) -> None:
    """Run the tests that reach each fault in a fork with the code of a function replaced.

    A test that fails counts if it passes without the fault after the same tests. Otherwise it is not used.
    """
    unreliable: set[str] = set()
    waiting = list(reversed(plan.left))
    with _progress("planting", len(waiting)) as advance:
        while waiting:
            batch = {
                _safe(fault): fault for fault in (waiting.pop() for _ in range(min(BATCH, len(waiting))))
            }
            ran: dict[str, list[str]] = {}
            for name, fault in batch.items():
                chosen = reached.tests_of(fault, plan.copy, budget=BUDGET)
                ran[name] = [test for test in chosen if test in tests.items and test not in unreliable]
            sessions = [
                _hot_session(tests, plan, fault, ran[name], reached, functions)
                for name, fault in batch.items()
            ]
            ended = {
                done.name: code for done, code in run_sessions(sessions, workers=plan.workers, logs=plan.logs)
            }
            found = {name: plan.noted(batch[name]) for name, code in ended.items() if code == NOTICED}
            prefixes = {tuple(ran[name][: ran[name].index(test) + 1]) for name, test in found.items()}
            wrong = _fail_without_fault(tests, plan, prefixes)
            unreliable |= wrong
            for name, code in ended.items():
                fault = batch[name]
                if found.get(name) in wrong:
                    waiting.append(fault)
                    continue
                if code not in (0, UNPLANTED):
                    plan.keep(fault, found.get(name) or _ending(code))
                state = {0: "not noticed", UNPLANTED: "to be imported"}.get(code, "found")
                advance(f"{state}: {fault.file}: {fault.what}")
    if unreliable:
        print(f"{len(unreliable)} tests fail without a fault after others:", *sorted(unreliable), sep="\n  ")


def _hot_session(
    tests: Collected, plan: Plan, fault: Fault, names: list[str], reached: reach.Reach, functions: Functions
) -> Session:
    """Return a session that replaces code and runs tests until one fails."""

    def call() -> int:
        path = fault.path(plan.copy)
        source = path.read_text()
        patch = make_patch(path, source, fault.planted(source))
        if patch is None or not functions.apply(patch):
            return UNPLANTED
        return plan.note(fault, tests.first_failure(names))

    seconds = sum(reached.seconds[name] for name in names)
    return Session(_safe(fault), call, timeout=60.0 + 20.0 * seconds)


def _fail_without_fault(tests: Collected, plan: Plan, prefixes: set[tuple[str, ...]]) -> set[str]:
    """Run lists of tests without a fault, and return the last ones of those lists in which they fail."""
    known = plan.sound
    lists = {f"control-{number}": prefix for number, prefix in enumerate(sorted(prefixes - known))}

    def session(name: str) -> Session:
        def call() -> int:
            *before, last = lists[name]
            tests.run([*before, last])
            return NOTICED if tests.outcome.get(last) == "failed" else 0

        return Session(name, call, timeout=1200.0)

    wrong = set()
    for done, code in run_sessions([session(name) for name in lists], workers=plan.workers, logs=plan.logs):
        if code:
            wrong.add(lists[done.name][-1])
        else:
            known.add(lists[done.name])
    return wrong


def _cold(plan: Plan) -> None:
    """Plant the faults that are left in the files of copies, and import everything anew for each."""
    reached = reach.read(KEPT / "reach", plan.test_files())
    by_name = {_safe(fault): fault for fault in plan.left}

    def session(fault: Fault) -> Session:
        names = reached.tests_of(fault, plan.copy, budget=COLD_BUDGET)

        def call() -> int:
            if not names:
                return 0
            own = plan.work / f"cold-{_safe(fault)}"
            shutil.copytree(plan.copy, own, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            path = fault.path(own)
            path.write_text(fault.planted(path.read_text()))
            fork_server.enter_copy(own)
            failed: list[str | None] = ["(the tests could not be collected)"]

            def work(tests: Collected) -> None:
                failed[0] = tests.first_failure([name for name in names if name in tests.items])

            collected.collect(dict.fromkeys(name.split("::")[0] for name in names), work)
            shutil.rmtree(own, ignore_errors=True)
            return plan.note(fault, failed[0])

        return Session(_safe(fault), call, timeout=240.0 + 20.0 * COLD_BUDGET)

    with _progress("planting in files", len(by_name)) as advance:
        for done, code in run_sessions(
            [session(fault) for fault in plan.left], workers=plan.workers, logs=plan.logs
        ):
            fault = by_name[done.name]
            if code:
                plan.keep(fault, plan.noted(fault) if code == NOTICED else _ending(code))
            advance(f"{'found' if code else 'LIVES'}: {fault.file}: {fault.what}")


def _safe(fault: Fault) -> str:
    return fault.name.replace("/", "|")


def _ending(code: int) -> str:
    """Return in words how a session ended without a test that failed."""
    return "(out of time)" if code == TIMED_OUT else f"(ended with code {code})"


def _failed(plan: Plan, session: Session, code: int) -> str:
    tail = (plan.logs / f"{session.name}.log").read_text()[-2000:]
    return f"{session.name} failed with code {code}:\n{tail}"


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on a terminal, and one line per step elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    began, count = time.monotonic(), 0
    with Progress(*columns, auto_refresh=False, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task(title, total=total)

        def advance(text: str) -> None:
            nonlocal count
            count += 1
            bar.advance(task)
            bar.refresh()
            if bar.disable:
                print(f"{title} {count}/{total} {time.monotonic() - began:.0f}s {text}", flush=True)

        yield advance


def _table(plan: Plan, *, floor: float) -> int:
    """Print who lived and the share of faults found per package; return 1 below the floor."""
    total, found = Counter[str](), Counter[str]()
    for fault in plan.faults:
        package = "/".join(fault.file.split("/")[: 2 if fault.file.startswith("systems") else 1])
        total[package] += 1
        found[package] += fault.name in plan.found
    print(f"\n{'package':24}{'faults':>8}{'found':>8}{'share':>8}")
    for package, count in sorted(total.items()):
        print(f"{package:24}{count:>8}{found[package]:>8}{found[package] / count:>8.0%}")
    share = 100 * found.total() / total.total()
    print(f"{'all':24}{total.total():>8}{found.total():>8}{share / 100:>8.1%}")
    if plan.left:
        reached = reach.read(KEPT / "reach", plan.test_files())
        print("\nNo test noticed:")
        for fault in plan.left:
            tests = len(reached.tests_of(fault, plan.copy))
            print(
                f"  {fault.file}: {fault.what} ({tests or 'no'} {'test' if tests == 1 else 'tests'} reach it)"
            )
    if share < floor:
        print(f"\n{share:.1f} % of the faults were found, fewer than {floor:g} %", file=sys.stderr)
    return int(share < floor)


if __name__ == "__main__":
    raise SystemExit(main())
