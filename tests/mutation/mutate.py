"""Plant faults one at a time, listed or random ones, and print which no test noticed: `make mutate`.

    python -m tests.mutation.mutate [--only PATTERN] [--tests PATTERN] [--list] [--fresh] [--workers 2]
    python -m tests.mutation.mutate --random 400 --seed 7 [...]

The listed ones were chosen by those who wrote the tests, and stay as regressions. Random ones were chosen by
nobody (`generated.py`), so their share is an estimate of what the tests would notice, with its interval.

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
from tests.mutation import fork_server, generated, reach
from tests.mutation.plan import KEPT, PROJECT, Plan
from tests.mutation.planting import plant_in_files, plant_in_memory


def main() -> int:
    """Run the program and return its exit code."""
    options = _options()
    if options.random:
        chosen = generated.sample(PROJECT, options.random, options.seed, only=options.only)
    else:
        chosen = fault_list.load()
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
        plan = Plan(chosen, copy, Path(work), options.workers, options.tests, random=bool(options.random))
        plan.read()
        if plan.undecided:
            _in_child(lambda: plant_in_memory(plan))
            plan.read()
        if plan.undecided:
            plant_in_files(plan)
        return _table(plan, floor=options.floor)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Plant the listed faults and print which no test noticed.")
    parser.add_argument(
        "--only", metavar="PATTERN", default="", help="only faults whose file or text match this expression"
    )
    parser.add_argument("--tests", metavar="PATTERN", default="", help="only test files whose path matches")
    parser.add_argument("--random", type=int, metavar="N", help="plant N random faults, not the listed ones")
    parser.add_argument("--seed", type=int, default=0, help="of the random faults (0)")
    parser.add_argument("--list", action="store_true", help="print the list of faults and stop")
    parser.add_argument(
        "--fresh", action="store_true", help="forget earlier results and record all tests again"
    )
    parser.add_argument("--workers", type=int, default=2, help="sessions at a time (2)")
    parser.add_argument("--floor", type=float, help="percentage to be found (95, or 92 of random faults)")
    options = parser.parse_args()
    options.floor = options.floor or (92.0 if options.random else 95.0)
    return options


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
    """Print who lived and the share of faults found per package; return 1 below the floor.

    The share of random faults has a 95 % interval, and its lower end counts. Those that no test reaches count
    as not noticed.
    """
    total, found = Counter[str](), Counter[str]()
    for fault in plan.faults:
        package = "/".join(fault.file.split("/")[: 2 if fault.file.startswith("systems") else 1])
        total[package] += 1
        found[package] += fault.name in plan.found
    print(f"\n{'package':24}{'faults':>8}{'found':>8}{'share':>8}{'95 %' if plan.random else '':>14}")
    total["all"], found["all"] = total.total(), found.total()
    for package, count in sorted(total.items(), key=lambda item: (item[0] == "all", item[0])):
        low, high = wilson(found[package], count)
        interval = f"{low:>8.0%} to {high:.0%}" if plan.random else ""
        print(f"{package:24}{count:>8}{found[package]:>8}{found[package] / count:>8.1%}{interval}")
    if plan.left:
        reached = reach.read(KEPT / "reach", plan.test_files())
        print("\nNo test noticed:")
        for fault in plan.left:
            tests = len(reached.tests_of(fault, plan.copy))
            print(
                f"  {fault.file}: {fault.what} ({tests or 'no'} {'test' if tests == 1 else 'tests'} reach it)"
            )
    share = 100 * (wilson(found["all"], total["all"])[0] if plan.random else found["all"] / total["all"])
    if share < floor:
        means = "at least, by the lower end of the interval," if plan.random else ""
        print(f"\n{share:.1f} % of the faults {means} were found, fewer than {floor:g} %", file=sys.stderr)
    return int(share < floor)


def wilson(found: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share.

    Example:
        >>> tuple(round(end, 2) for end in wilson(70, 85))
        (0.73, 0.89)
    """
    z, share = 1.959964, found / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


if __name__ == "__main__":
    raise SystemExit(main())
