"""Measure methods on tasks in a results folder; what was measured before is not measured again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from edgewise.benchmark import columns
from edgewise.benchmark.columns import Field
from edgewise.benchmark.draw import draw
from edgewise.benchmark.method import Budget, Method
from edgewise.benchmark.results import (
    INSTANCES,
    KIND,
    METHOD,
    MLP,
    NO_EDGES,
    RESULTS,
    RULE,
    SOLVER,
    UNTRAINED,
    Column,
    ResultsFolder,
)
from edgewise.benchmark.scores import Plain, results
from edgewise.benchmark.task import VERSION, Task
from edgewise.benchmark.tasks import tasks as all_tasks
from edgewise.benchmark.write import write_tables
from edgewise.config.errors import ConfigError, DataError, Interrupted
from edgewise.experiments.guest import as_guest
from edgewise.studies.folder import Plan, first_difference, open_study

Note = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """A results folder and its table."""

    folder: Path
    results: Plain


@as_guest()
def run_benchmark(
    methods: Sequence[Method],
    tasks: Sequence[Task],
    *,
    seeds: int,
    budget: Budget,
    folder: Path | None = None,
    note: Note = lambda _: None,
) -> Outcome:
    """Measure methods on tasks, or continue where that was interrupted, and write tables and page.

    Args:
        methods: each gets its columns.
        tasks: in order.
        seeds: of every network: 0, 1, and so on.
        budget: of every network.
        folder: of the results; if not given, the one under `runs/` that this continues, or a new one.
        note: is told what is measured.

    Raises:
        ConfigError: a method fits none of the tasks, a setting does not exist, or the folder holds other
            results.
        DataError: the instances are not those that the folder began with.
    """
    torch.set_num_threads(1)
    tasks = [task.smaller() for task in tasks] if budget.smoke else list(tasks)
    plan: Plan = {
        "kind": KIND,
        "version": VERSION,
        "smoke": budget.smoke,
        "minutes": budget.minutes,
        "seeds": seeds,
        "tasks": [task.name for task in tasks],
        "methods": {method.name: method.to_plain() for method in methods},
    }
    _check_all(methods, tasks, budget)
    study = open_study(folder, plan, name="graphs-benchmark", differs=lambda other: _differs(plan, other))
    with study.locked():
        if (joined := _joined(study.plan, plan)) != study.plan:
            study.change_plan(joined)
        store = ResultsFolder(study)
        for number, task in enumerate(tasks, start=1):
            note(f"{number} of {len(tasks)}: {task.name}")
            try:
                _measure(store, Field(task), methods, seeds, budget, note)
            except Interrupted as error:
                hint = f"the same command with --to {study.path} continues"
                raise Interrupted(error.message, hint=hint) from error
        return Outcome(study.path, write_all(store))


def _differs(ours: Plan, theirs: Plan) -> str | None:
    """Return why results of one plan cannot join those of another; tasks, seeds and methods may be added."""
    fixed = ("kind", "version", "smoke", "minutes")
    found = first_difference({n: ours[n] for n in fixed}, {n: theirs.get(n) for n in fixed})
    if found is not None:
        return found
    common = [name for name in ours["methods"] if name in theirs["methods"]]
    both = [{name: plan["methods"][name] for name in common} for plan in (ours, theirs)]
    return first_difference(both[0], both[1], "methods")


def _joined(before: Plan, plan: Plan) -> Plan:
    tasks = list(dict.fromkeys([*before["tasks"], *plan["tasks"]]))
    methods = {**before["methods"], **plan["methods"]}
    return {**before, "tasks": tasks, "methods": methods, "seeds": max(before["seeds"], plan["seeds"])}


def _check_all(methods: Sequence[Method], tasks: Sequence[Task], budget: Budget) -> None:
    """Refuse methods of the same name, methods without a task, and settings that do not exist."""
    names = [method.name for method in methods]
    if len(set(names)) < len(names):
        raise ConfigError(f"--method: two methods are called {max(names, key=names.count)}")
    for method in methods:
        known = set(all_tasks())
        if unknown := sorted({*method.tasks, *method.by_task} - known):
            raise ConfigError(
                f"method {method.name}: no task is called {', '.join(unknown)}",
                hint=f"there are {', '.join(sorted(known))}",
            )
        own = [task for task in tasks if method.applies(task)]
        if not own:
            raise ConfigError(
                f"method {method.name} is for none of the tasks {', '.join(t.name for t in tasks)}"
            )
        for task in own if method.is_trained else ():
            columns.run_config(task, method, 0, budget)


def _measure(
    store: ResultsFolder, field: Field, methods: Sequence[Method], seeds: int, budget: Budget, note: Note
) -> None:
    """Measure all columns of a task."""
    task = field.task
    _record_instances(store, field)
    store.measured(Column(task.name, SOLVER), lambda: columns.by_solver(field))
    for name in columns.rule_names(field):
        store.measured(Column(task.name, RULE, name), lambda name=name: columns.by_rule(field, name))  # type: ignore[misc]
    for method in methods:
        if not method.applies(task):
            continue
        if method.recorded is not None:
            _store_recorded(store, field, method)
            continue
        for seed in range(seeds if method.has_seeds else 1):
            column = Column(task.name, METHOD, method.name, seed=seed if method.has_seeds else None)
            note(f"  {method.name}{f', seed {seed}' if method.has_seeds else ''}")
            _measure_method(store, field, method, column, budget)
    runs = [
        store.run(Column(task.name, METHOD, method.name, seed=0)) for method in methods if method.is_trained
    ]
    run = next((each for each in runs if each.is_dir()), None)
    draw(field, run, store.path / "drawings" / f"{task.name}.svg")


def _measure_method(
    store: ResultsFolder, field: Field, method: Method, column: Column, budget: Budget
) -> None:
    if method.policy is not None:
        store.measured(column, lambda: columns.by_policy(field, method))
        return
    seed = column.seed or 0
    if method.learn is not None:
        store.measured(column, lambda: columns.by_learner(field, method, seed, budget))
        return
    config = columns.run_config(field.task, method, seed, budget)
    run = store.run(column)
    store.measured(replace(column, part=UNTRAINED), lambda: columns.untrained(field, config))
    store.measured(column, lambda: columns.trained(field, run, columns.train(config, run)))
    store.measured(replace(column, part=NO_EDGES), lambda: columns.without_edges(field, run))
    flat = replace(column, part=MLP)
    plain = columns.run_config(field.task, method.with_settings(method.name, **columns.MLP), seed, budget)
    folder = store.run(flat)
    store.measured(flat, lambda: columns.trained(field, folder, columns.train(plain, folder)))


def _record_instances(store: ResultsFolder, field: Field) -> None:
    """Record the digests of a task's instances; refuse to go on with others."""
    file = store.path / INSTANCES
    known: dict[str, Any] = store.read(INSTANCES) if file.is_file() else {}
    found, before = field.record(), known.get(field.task.name)
    if before is not None and before != found:
        raise DataError(
            f"{file}: the instances of {field.task.name} are not those that these results began with: "
            f"{first_difference(found, before)}",
            hint="use the same versions of torch and networkx, or another folder",
        )
    if before is None:
        store.write(INSTANCES, {**known, field.task.name: found})


def _store_recorded(store: ResultsFolder, field: Field, method: Method) -> None:
    """Store the rows of a recorded table that belong to a task."""
    assert method.recorded is not None
    counts = {name: entry["count"] for name, entry in field.record().items()}
    for (task, seed), values in method.recorded.items():
        if task != field.task.name:
            continue
        for split, row in values.items():
            if counts.get(split) != len(row):
                expected = counts.get(split, f"one of the splits {', '.join(counts)}")
                raise DataError(
                    f"method {method.name}: {task}, {split} has {len(row)} values, expected {expected}"
                )
        column = Column(task, METHOD, method.name, seed=seed)
        store.measured(column, lambda values=values: columns.Measured(values))  # type: ignore[misc]


def write_all(store: ResultsFolder) -> Plain:
    """Compute the table from the values in a folder, write everything that shows it, and record digests."""
    stored = store.stored()
    chosen = tasks_of(store.study.plan)
    found = results(chosen, stored, store.read(INSTANCES), smoke=store.study.plan["smoke"])
    store.write(RESULTS, found)
    write_tables(store, chosen, stored, found)
    store.seal()
    return found


def tasks_of(plan: Plan) -> dict[str, Task]:
    """Return the tasks of a plan, in the order of the benchmark."""
    wanted = {name: task for name, task in all_tasks().items() if name in plan["tasks"]}
    return {name: task.smaller() if plan["smoke"] else task for name, task in wanted.items()}
