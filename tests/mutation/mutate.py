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
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.mutation import faults as fault_list
from tests.mutation import fork_server, reach
from tests.mutation.plan import KEPT, PROJECT, Plan
from tests.mutation.planting import plant_in_files, plant_in_memory


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
            _in_child(lambda: plant_in_memory(plan))
            plan.read()
        if plan.left:
            plant_in_files(plan)
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
