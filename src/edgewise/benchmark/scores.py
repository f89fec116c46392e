"""From the values of all columns to the table: means, gains over the strongest rule, and aggregates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.benchmark.published import other_instances
from edgewise.benchmark.results import METHOD, PARTS, RULE, SOLVER, WHOLE, Stored
from edgewise.benchmark.task import Task
from edgewise.evaluation.bounds import FEWEST, Values, strata_bounds
from edgewise.evaluation.statistics import (
    LEVEL,
    Interval,
    interquartile_interval,
    mean_interval,
    paired_difference,
)
from edgewise.plugins.declarations import RANDOM
from edgewise.studies.scores import Aggregates, aggregate, normalised

BETTER, EQUAL, WORSE = "better", "no difference", "worse"
SIZES = ("n", "2n", "10n")
OTHERS = "other graphs"
"""Name of the aggregate over splits of another family or from elsewhere."""

Plain = dict[str, Any]
Key = tuple[str, str]
"""Name of a method and part of it."""


@dataclass(frozen=True)
class Cell:
    """All values of one task and split.

    Args:
        task: the task.
        split: its name.
        rules: values `[I]` by name.
        random: values of random actions, `[I]`.
        methods: values `[S, I]` by method and part, and the seeds that they are from.
        solved: values `[I]` of a solver, with its name and the number of proven ones; None without.
    """

    task: Task
    split: str
    rules: Mapping[str, Values]
    random: Values
    methods: Mapping[Key, Values]
    solved: tuple[Values, str, int] | None

    @property
    def rule(self) -> str:
        """The rule with the best mean on these instances."""
        return max(self.rules, key=lambda name: self.task.sign * float(self.rules[name].mean()))

    def gain(self, values: Values) -> Interval:
        """Compute the mean of `values [S, I]` minus the strongest rule, so that above zero is better."""
        return crossed_interval(self.task.sign * (values - self.rules[self.rule]))

    def scores(self, values: Values) -> Values:
        """Return the score of each seed: 0 for random actions, 1 for the strongest rule."""
        worst, best = float(self.random.mean()), float(self.rules[self.rule].mean())
        return normalised(values.mean(-1), worst, best)

    def reference(self) -> Plain:
        """Return the optimum or the best value known of every instance, in the mean."""
        if self.solved is not None:
            values, name, proven = self.solved
            return {"value": float(values.mean()), "by": name, "proven": proven}
        rows = [*self.rules.values(), *(row for table in self.methods.values() for row in table)]
        best = np.max([self.task.sign * row for row in rows], axis=0)
        return {"value": float(self.task.sign * best.mean()), "by": "best column", "proven": 0}


def crossed_interval(table: Values) -> Interval:
    """Compute the mean of `[seeds, instances]` with an interval over both.

    Every seed plays every instance. The variance of the mean over seeds and that of the mean over instances
    add up, with Welch's degrees of freedom. One seed gives an interval over instances, two give none.

    Example:
        >>> crossed_interval(np.array([[1.0, 2.0], [2.0, 3.0]])).estimate
        2.0
    """
    seeds, centre = len(table), float(table.mean())
    if seeds == 1:
        return paired_difference(table[0], np.zeros_like(table[0]))
    if min(table.shape) < FEWEST:
        return Interval(centre, np.nan, np.nan, seeds)
    strata = (table.mean(1), table.mean(0) - centre)
    low, high = strata_bounds(np.asarray(centre), strata, LEVEL)
    return Interval(centre, float(low), float(high), seeds)


def cells(tasks: Mapping[str, Task], stored: Sequence[Stored]) -> list[Cell]:
    """Return the cells of all tasks that have rules, in the order of tasks and splits."""
    found = []
    for task in tasks.values():
        own = [one for one in stored if one.column.task == task.name]
        rules = {one.column.name: one.values for one in own if one.column.kind == RULE}
        if len(rules) < 2:
            continue
        splits = [split.name for split in task.splits if split.name in rules[RANDOM]]
        found += [_cell(task, split, own, rules) for split in splits]
    return found


def _cell(
    task: Task, split: str, own: Sequence[Stored], rules: Mapping[str, Mapping[str, list[float]]]
) -> Cell:
    rows: dict[Key, dict[int, list[float]]] = {}
    solved = None
    for one in own:
        column, values = one.column, one.values.get(split)
        if values is None:
            continue
        if column.kind == METHOD:
            rows.setdefault((column.name, column.part), {})[column.seed or 0] = values
        elif column.kind == SOLVER:
            note = one.notes[split]
            solved = (np.array(values), str(note["solver"]), int(note["proven"]))
    by_name = {name: np.array(values[split]) for name, values in rules.items() if split in values}
    random = by_name.pop(RANDOM)
    methods = {key: np.array([found[seed] for seed in sorted(found)]) for key, found in rows.items()}
    return Cell(task, split, by_name, random, methods, solved)


def table(found: Sequence[Cell], instances: Mapping[str, Any]) -> list[Plain]:
    """Return a row for every task and split."""
    return [_row(cell, instances[cell.task.name][cell.split]) for cell in found]


def _row(cell: Cell, record: Mapping[str, Any]) -> Plain:
    columns = []
    for (method, part), values in sorted(cell.methods.items(), key=lambda item: _order(item[0])):
        means = values.mean(-1)
        value = interquartile_interval(means) if len(means) > 1 else mean_interval(values[0])
        gain = cell.gain(values)
        columns.append(
            {
                "method": method,
                "part": part,
                "value": _plain(value),
                "gain": _plain(gain),
                "verdict": verdict(gain),
            }
        )
    rule = cell.rules[cell.rule]
    return {
        "task": cell.task.name,
        "split": cell.split,
        "measure": cell.task.measure,
        "maximise": cell.task.maximise,
        "instances": record["count"],
        "sha256": record["sha256"],
        "reference": cell.reference(),
        "rule": {"name": cell.rule, **_plain(mean_interval(rule))},
        "rules": {name: float(values.mean()) for name, values in cell.rules.items()},
        "random": float(cell.random.mean()),
        "columns": columns,
    }


def verdict(gain: Interval) -> str:
    """Return whether a gain is above or below zero by its interval, or all pairs are equal."""
    if gain.has_bounds and gain.low > 0:
        return BETTER
    return WORSE if gain.has_bounds and gain.high < 0 else EQUAL


def _order(key: Key) -> tuple[str, int]:
    return key[0], PARTS.index(key[1])


def label(key: Key) -> str:
    """Return the name of a column in aggregates and charts."""
    return key[0] if key[1] == WHOLE else f"{key[0]}, {key[1]}"


def aggregates(found: Sequence[Cell]) -> dict[str, Aggregates]:
    """Aggregate scores over tasks, for every size and for the other splits together.

    A column is compared over the tasks that it has values of; tasks of one group count as one.
    """
    by_split: dict[str, list[Cell]] = {}
    for cell in found:
        by_split.setdefault(cell.split if cell.split in SIZES else OTHERS, []).append(cell)
    made = {}
    for name, own in by_split.items():
        rows = {key: scores for key in _keys(own) if (scores := _scores(own, key)) is not None}
        most = max((scores.shape[1] for scores in rows.values()), default=0)
        columns = {_with_tasks(label(key), scores.shape[1], most): scores for key, scores in rows.items()}
        if columns:
            made[name] = _together({column: aggregate({column: each}) for column, each in columns.items()})
    return made


def _with_tasks(name: str, count: int, most: int) -> str:
    return name if count == most else f"{name} ({count} of {most} tasks)"


def _together(parts: Mapping[str, Aggregates]) -> Aggregates:
    """Return aggregates of columns that have values of different tasks, and are not compared in pairs."""
    names = next(iter(parts.values())).measures
    measures = {name: {column: one.measures[name][column] for column, one in parts.items()} for name in names}
    return Aggregates(measures, {column: one.profiles[column] for column, one in parts.items()}, {})


def _keys(own: Sequence[Cell]) -> list[Key]:
    return sorted({key for cell in own for key in cell.methods}, key=_order)


def _scores(own: Sequence[Cell], key: Key) -> Values | None:
    """Return scores `[seeds, groups]` of a column; None if seeds are missing in a task."""
    groups: dict[str, list[Values]] = {}
    for cell in own:
        if key in cell.methods:
            groups.setdefault(cell.task.group, []).append(cell.scores(cell.methods[key]))
    if len({len(row) for rows in groups.values() for row in rows}) != 1:
        return None
    return np.stack([np.mean(rows, axis=0) for rows in groups.values()], axis=1)


def costs(found: Sequence[Cell], stored: Sequence[Stored]) -> list[Plain]:
    """Return how many frames each trained column needs until its mean at size n reaches the rule."""
    rows = []
    for cell in found:
        if cell.split != cell.task.splits[0].name:
            continue
        goal = cell.task.sign * float(cell.rules[cell.rule].mean())
        for one in stored:
            column = one.column
            if column.task != cell.task.name or not one.curve:
                continue
            reached = (frames for frames, value in one.curve if cell.task.sign * value >= goal)
            key = label((column.name, column.part))
            rows.append(
                {
                    "task": column.task,
                    "column": key,
                    "seed": column.seed,
                    "frames": next(reached, None),
                    "trained": one.curve[-1][0],
                }
            )
    return rows


def results(
    tasks: Mapping[str, Task], stored: Sequence[Stored], instances: Mapping[str, Any], *, smoke: bool
) -> Plain:
    """Return the whole table as plain values; equal values give equal results."""
    found = cells(tasks, stored)
    return {
        "table": table(found, instances),
        "aggregates": {
            name: {column: _plain(one) for column, one in made.measures["IQM"].items()}
            for name, made in aggregates(found).items()
        },
        "frames to the rule": costs(found, stored),
        "other instances": other_instances(instances, smoke=smoke),
    }


def _plain(interval: Interval) -> Plain:
    return {"value": None if math.isnan(interval.estimate) else interval.estimate, **interval.ends()}
