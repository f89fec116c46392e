"""Plant faults, in memory where that is possible and otherwise in files, and run tests that reach them."""

from __future__ import annotations

import importlib
import shutil

from tests.mutation import collected, fork_server, reach
from tests.mutation.collected import Collected
from tests.mutation.faults import PACKAGE, Fault
from tests.mutation.fork_server import TIMED_OUT, Session, run_sessions
from tests.mutation.hot_patch import Functions, make_patch
from tests.mutation.plan import KEPT, NOTICED, UNPLANTED, Plan
from tests.mutation.progress import progress

BUDGETS = (3.0, 60.0)
"""Seconds of tests, as recorded, that are run at most for one fault: at first, and if no test noticed it."""
COLD_BUDGET = 15.0
"""The same for processes that import everything anew."""
BATCH = 20
"""Faults that are planted before the tests that noticed them are run without a fault."""


def plant_in_memory(plan: Plan) -> None:
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
        for file in sorted({fault.file for fault in plan.undecided}):
            importlib.import_module("edgewise." + file.removesuffix(".py").replace("/", "."))
        functions = Functions(plan.copy / PACKAGE)
        _plant_all(tests, plan, reached, functions)

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

    with progress("recording", len(needed)) as advance:
        for done, code in run_sessions(
            [session(each) for each in needed], workers=plan.workers, logs=plan.logs
        ):
            advance(_failed(plan, done, code) if code else done.name)
    return reach.read(folder, files)


def _plant_all(tests: Collected, plan: Plan, reached: reach.Reach, functions: Functions) -> None:
    """Run the tests that reach each fault in a fork with the code of a function replaced.

    Most faults are found within seconds, so all get a few seconds before any gets more. A test that fails
    counts if it passes without the fault after the same tests. Otherwise it is not used.
    """
    unreliable: set[str] = set()
    tried: dict[str, set[str]] = {fault.safe_name: set() for fault in plan.undecided}
    unplanted: set[str] = set()

    def to_run(fault: Fault, budget: float) -> list[str]:
        done = unreliable | tried[fault.safe_name]
        chosen = reached.tests_of(fault, plan.copy, budget=budget)
        return [test for test in chosen if test in tests.items and test not in done]

    for budget in BUDGETS:
        waiting = [fault for fault in reversed(plan.undecided) if to_run(fault, budget)]
        with progress(f"planting, {budget:g} s of tests,", len(waiting)) as advance:
            while waiting:
                chosen = [waiting.pop() for _ in range(min(BATCH, len(waiting)))]
                batch = {fault.safe_name: (fault, to_run(fault, budget)) for fault in chosen}
                ended, wrong = _plant_batch(tests, plan, batch, reached, functions)
                unreliable.update(wrong)
                for name, code in ended.items():
                    fault, ran = batch[name]
                    found = plan.noted(fault) if code == NOTICED else None
                    if found in wrong:
                        waiting.append(fault)
                        continue
                    tried[name].update(ran)
                    if code == UNPLANTED:
                        unplanted.add(name)
                    if code not in (0, UNPLANTED):
                        plan.keep(fault, found or _ending(code))
                    state = {0: "not noticed", UNPLANTED: "to be imported"}.get(code, "found")
                    advance(f"{state}: {fault.file}: {fault.what}")
    for fault in plan.undecided:
        if fault.safe_name not in unplanted and tried[fault.safe_name]:
            plan.keep_survivor(fault)
    if unreliable:
        print(f"{len(unreliable)} tests fail without a fault after others:", *sorted(unreliable), sep="\n  ")


def _plant_batch(
    tests: Collected,
    plan: Plan,
    batch: dict[str, tuple[Fault, list[str]]],
    reached: reach.Reach,
    functions: Functions,
) -> tuple[dict[str, int], set[str]]:
    """Return how the session of each fault ended, and the tests that fail without a fault too."""
    sessions = [
        _hot_session(tests, plan, fault, names, reached, functions) for fault, names in batch.values()
    ]
    ended = {done.name: code for done, code in run_sessions(sessions, workers=plan.workers, logs=plan.logs)}
    prefixes = set()
    for name in (name for name, code in ended.items() if code == NOTICED):
        fault, names = batch[name]
        prefixes.add(tuple(names[: names.index(plan.noted(fault)) + 1]))
    return ended, _fail_without_fault(tests, plan, prefixes)


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
    return Session(fault.safe_name, call, timeout=60.0 + 20.0 * seconds)


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


def plant_in_files(plan: Plan) -> None:
    """Plant the faults that are left in the files of copies, and import everything anew for each."""
    reached = reach.read(KEPT / "reach", plan.test_files())
    by_name = {fault.safe_name: fault for fault in plan.undecided}

    def session(fault: Fault) -> Session:
        names = reached.tests_of(fault, plan.copy, budget=COLD_BUDGET)

        def call() -> int:
            if not names:
                return 0
            own = plan.work / f"cold-{fault.safe_name}"
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

        return Session(fault.safe_name, call, timeout=240.0 + 20.0 * COLD_BUDGET)

    with progress("planting in files", len(by_name)) as advance:
        for done, code in run_sessions(
            [session(fault) for fault in by_name.values()], workers=plan.workers, logs=plan.logs
        ):
            fault = by_name[done.name]
            if code:
                plan.keep(fault, plan.noted(fault) if code == NOTICED else _ending(code))
            else:
                plan.keep_survivor(fault)
            advance(f"{'found' if code else 'LIVES'}: {fault.file}: {fault.what}")


def _ending(code: int) -> str:
    """Return in words how a session ended without a test that failed."""
    return "(out of time)" if code == TIMED_OUT else f"(ended with code {code})"


def _failed(plan: Plan, session: Session, code: int) -> str:
    tail = (plan.logs / f"{session.name}.log").read_text()[-2000:]
    return f"{session.name} is not used, it failed with code {code}:\n{tail}"
