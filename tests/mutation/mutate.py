"""Plant the listed faults one at a time and print which of them no test noticed: `make mutate`.

    python -m tests.mutation.mutate [--only PATTERN] [--tests PATTERN] [--list] [--fresh] [--workers 2] [--floor 95]

Nothing is changed in the working tree: faults are planted in copies. A run that is interrupted goes on where it
stopped; a fault counts as found without a new run while its file and the test that found it are unchanged.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from tests.mutation import faults as fault_list
from tests.mutation import fork_server, reach
from tests.mutation.faults import PACKAGE, Fault
from tests.mutation.fork_server import TIMED_OUT, Session

PROJECT = Path(__file__).parents[2]
KEPT = PROJECT / ".mutate"
CHUNKS = (12, 80)
"""Number of tests in the first sessions of a fault; the last session has the others."""
BATCH = 8
"""Test files that are recorded in one session."""
BUDGET = 60.0
"""Seconds of tests, as recorded, that are run at most for one fault."""


@dataclass
class Outcome:
    """What became of a fault: found by `test`, or not, with the number of tests that were run."""

    fault: Fault
    test: str | None
    tests: int


def main() -> int:
    """Run the program and return its exit code."""
    options = _options()
    chosen = fault_list.load()
    wrong = fault_list.problems(chosen, PROJECT)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 2
    if options.only:
        chosen = [fault for fault in chosen if re.search(options.only, f"{fault.file} {fault.what}")]
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
    with tempfile.TemporaryDirectory(prefix="edgewise-mutate-") as work:
        root, *copies = (
            fork_server.make_copy(PROJECT, Path(work) / str(number)) for number in range(options.workers + 1)
        )
        _prepare_sessions()
        reached = _record(root, copies, Path(work) / "logs", pattern=options.tests)
        outcomes = _plant_all(chosen, reached, root, copies, Path(work) / "logs")
    return _table(outcomes, floor=options.floor)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Plant the listed faults and print which no test noticed.")
    parser.add_argument("--only", metavar="PATTERN", help="only faults whose file or text match this expression")
    parser.add_argument("--tests", metavar="PATTERN", default="", help="use only test files whose path matches")
    parser.add_argument("--list", action="store_true", help="print the list of faults and stop")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results and record all tests again")
    parser.add_argument("--workers", type=int, default=2, help="sessions at a time (2)")
    parser.add_argument("--floor", type=float, default=95.0, help="percentage of faults to be found (95)")
    return parser.parse_args()


def _prepare_sessions() -> None:
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


def _record(root: Path, copies: list[Path], logs: Path, *, pattern: str) -> reach.Reach:
    """Record the test files that are new or changed, and return the whole map."""
    folder = KEPT / "reach"
    files = [each for each in reach.test_files(root) if re.search(pattern, each)]
    needed = reach.stale(folder, root, files)
    batches = {
        f"{together}.{number}": list(some)
        for together, group in groupby(needed, key=lambda each: each.rsplit("/", 1)[0].replace("/", "."))
        for number, some in enumerate(batched(group, BATCH))
    }

    def session(name: str) -> Session:
        def call(copy: Path) -> int:
            os.environ["HYPOTHESIS_PROFILE"] = "record"
            return reach.record(batches[name], copy, folder)

        return Session(name, call, timeout=1800.0)

    with _progress("recording tests", len(needed)) as advance:
        for done, code in fork_server.run_sessions([session(name) for name in batches], copies, logs=logs):
            if code:
                tail = (logs / f"{done.name}.log").read_text()[-2000:]
                raise SystemExit(f"recording {', '.join(batches[done.name])} failed with code {code}:\n{tail}")
            for each in batches[done.name]:
                advance(each)
    reached = reach.read(folder, files)
    if reached.failed:
        print(f"{len(reached.failed)} tests fail without a fault and are not used:", *reached.failed, sep="\n  ")
    return reached


def batched(items: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """Yield tuples of up to `size` items."""
    rest = iter(items)
    while some := tuple(islice(rest, size)):
        yield some


def _plant_all(
    chosen: list[Fault], reached: reach.Reach, root: Path, copies: list[Path], logs: Path
) -> list[Outcome]:
    """Run the tests that reach each fault, in rounds: the likeliest ones first, all others for what is left."""
    store = KEPT / "found.json"
    found = json.loads(store.read_text()) if store.exists() else {}
    tests = {fault.name: _within_budget(reached.tests_of(fault, root), reached) for fault in chosen}
    outcomes = {
        fault.name: Outcome(fault, found[fault.name]["test"], 0)
        for fault in chosen
        if _still_found(found.get(fault.name), fault, root)
    }
    by_name = {fault.name: fault for fault in chosen}
    with _progress("planting faults", len(chosen)) as advance:
        for _ in outcomes:
            advance("")
        start = 0
        for size in (*CHUNKS, None):
            stop = None if size is None else start + size
            left = [fault for fault in chosen if fault.name not in outcomes and tests[fault.name][start:stop]]
            sessions = [_plant(fault, tests[fault.name][start:stop], reached, root, logs) for fault in left]
            for session, code in fork_server.run_sessions(sessions, copies, logs=logs):
                fault = by_name[session.name.replace("|", "/")]
                if code != 0:
                    test = _killer(logs / f"{session.name}.test", code)
                    outcomes[fault.name] = Outcome(fault, test, len(tests[fault.name]))
                    found[fault.name] = _finding(fault, test, root)
                    store.write_text(json.dumps(found, indent=1))
                    advance(f"{fault.file}: {fault.what}")
            start = stop or 0
        for fault in chosen:
            if fault.name not in outcomes:
                outcomes[fault.name] = Outcome(fault, None, len(tests[fault.name]))
                advance(f"LIVES {fault.file}: {fault.what}")
    return [outcomes[fault.name] for fault in chosen]


def _within_budget(tests: list[str], reached: reach.Reach) -> list[str]:
    """Return the first tests that take `BUDGET` seconds together."""
    kept, spent = [], 0.0
    for test in tests:
        spent += reached.seconds[test]
        if spent > BUDGET:
            break
        kept.append(test)
    return kept


def _plant(fault: Fault, tests: list[str], reached: reach.Reach, root: Path, logs: Path) -> Session:
    """Return a session that runs tests with a fault until one fails."""
    name = fault.name.replace("/", "|")

    def call(_: Path) -> int:
        import pytest

        class FirstFailure:
            def pytest_runtest_logreport(self, report: Any) -> None:
                if report.failed:
                    (logs / f"{name}.test").write_text(report.nodeid)

            def pytest_collectreport(self, report: Any) -> None:
                if report.failed:
                    (logs / f"{name}.test").write_text(report.nodeid)

        arguments = ["-x", "-q", "--tb=line", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not learning"]
        return int(pytest.main([*arguments, *tests], plugins=[FirstFailure()]))

    seconds = sum(reached.seconds[test] for test in tests)
    text = fault.planted(fault.path(root).read_text())
    return Session(name, call, timeout=45.0 + 6.0 * seconds, file=PACKAGE / fault.file, text=text)


def _killer(note: Path, code: int) -> str:
    """Return the test that failed, or in words how the session ended without one."""
    if code == TIMED_OUT:
        return "(out of time)"
    if note.exists():
        return note.read_text()
    if code < 0:
        return f"(signal {-code})"
    return f"(pytest ended with code {code})"


def _finding(fault: Fault, test: str, root: Path) -> dict[str, str]:
    """Return what must be unchanged for a finding to hold."""
    file = root / test.split("::")[0]
    return {
        "test": test,
        "source": reach.digest(fault.path(root)),
        "test_file": reach.digest(file) if file.is_file() else "",
    }


def _still_found(kept: dict[str, str] | None, fault: Fault, root: Path) -> bool:
    return kept is not None and kept == _finding(fault, kept["test"], root)


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
            if bar.disable and text:
                print(f"{title} {count}/{total} {time.monotonic() - began:.0f}s {text}", flush=True)

        yield advance


def _table(outcomes: list[Outcome], *, floor: float) -> int:
    """Print who lived and the share of faults found per package; return 1 below the floor."""
    total, found = Counter[str](), Counter[str]()
    for outcome in outcomes:
        package = "/".join(outcome.fault.file.split("/")[: 2 if outcome.fault.file.startswith("systems") else 1])
        total[package] += 1
        found[package] += outcome.test is not None
    print(f"\n{'package':24}{'faults':>8}{'found':>8}{'share':>8}")
    for package, count in sorted(total.items()):
        print(f"{package:24}{count:>8}{found[package]:>8}{found[package] / count:>8.0%}")
    share = 100 * found.total() / total.total()
    print(f"{'all':24}{total.total():>8}{found.total():>8}{share / 100:>8.1%}")
    lived = [outcome for outcome in outcomes if outcome.test is None]
    if lived:
        print("\nNo test noticed:")
    for outcome in lived:
        reached = f"{outcome.tests} tests reach it" if outcome.tests else "no test reaches it"
        print(f"  {outcome.fault.file}: {outcome.fault.what} ({reached})")
    if share < floor:
        print(f"\n{share:.1f} % of the faults were found, fewer than {floor:g} %", file=sys.stderr)
    return int(share < floor)


if __name__ == "__main__":
    raise SystemExit(main())
