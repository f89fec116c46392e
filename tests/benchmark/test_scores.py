"""From values to the table: gains, verdicts, references, scores and costs."""

from dataclasses import replace

import numpy as np
import pytest

from edgewise.benchmark.results import METHOD, RULE, SOLVER, Column, Stored
from edgewise.benchmark.scores import (
    BETTER,
    EQUAL,
    OTHERS,
    WORSE,
    aggregates,
    cells,
    crossed_interval,
    results,
)
from edgewise.benchmark.task import Split, Task

TASK = Task("tour", "A card.", "tsp", "tour", splits=(Split("n"), Split("family")))
INSTANCES = {"tour": {name: {"count": 4, "sha256": "0"} for name in ("n", "family")}}


def stored(kind, values, name="", part="", seed=None, curve=()):
    both = {"n": list(values), "family": list(values)}
    notes = {split: {"solver": "S", "proven": 4} for split in both} if kind == SOLVER else {}
    return Stored(Column("tour", kind, name, part, seed), both, notes, list(curve))


def table(*columns):
    rules = [stored(RULE, [8.0, 9, 10, 9], "random"), stored(RULE, [4.0, 5, 4, 5], "nearest")]
    rules.append(stored(RULE, [4.0, 6, 5, 6], "far"))
    return [*rules, *columns]


def learned(offset, seeds=5, **more):
    noise = np.random.default_rng(0).normal(0, 0.02, (seeds, 4))
    rows = np.array([4.0, 5, 4, 5]) + offset + noise
    return [stored(METHOD, row, "mine", seed=seed, **more) for seed, row in enumerate(rows)]


def row_of(found, split="n"):
    return next(row for row in found["table"] if row["split"] == split)


@pytest.mark.parametrize(("offset", "expected"), [(-0.5, BETTER), (0.0, EQUAL), (0.5, WORSE)])
def test_less_is_better_where_the_task_says_so(offset, expected):
    found = row_of(results({"tour": TASK}, table(*learned(offset)), INSTANCES, smoke=True))
    (column,) = found["columns"]
    assert found["rule"]["name"] == "nearest"
    assert column["verdict"] == expected
    assert column["gain"]["value"] == pytest.approx(-offset, abs=0.03)
    assert column["value"]["n"] == 5


def test_more_is_better_where_the_task_says_so():
    task = Task("tour", "A card.", "tsp", "tour", splits=TASK.splits, maximise=True)
    found = row_of(results({"tour": task}, table(*learned(6.0)), INSTANCES, smoke=True))
    assert found["rule"]["name"] == "far"
    assert found["columns"][0]["verdict"] == BETTER


def test_the_reference_is_that_of_the_solver_or_the_best_of_every_instance():
    columns = table(stored(METHOD, [3.0, 9, 9, 9], "mine", seed=0))
    assert row_of(results({"tour": TASK}, columns, INSTANCES, smoke=True))["reference"] == {
        "value": pytest.approx((3 + 5 + 4 + 5) / 4),
        "by": "best column",
        "proven": 0,
    }
    solved = [*columns, stored(SOLVER, [3.0, 3, 3, 3])]
    assert row_of(results({"tour": TASK}, solved, INSTANCES, smoke=True))["reference"] == {
        "value": 3.0,
        "by": "S",
        "proven": 4,
    }


def test_scores_are_0_for_random_actions_and_1_for_the_rule():
    rows = [stored(METHOD, [4.0, 5, 4, 5], "as-good", seed=s) for s in range(3)]
    rows += [stored(METHOD, [8.0, 9, 10, 9], "as-bad", seed=s) for s in range(3)]
    made = aggregates(cells({"tour": TASK}, table(*rows)))
    assert set(made) == {"n", OTHERS}
    assert made["n"].measures["IQM"]["as-good"].estimate == pytest.approx(1.0)
    assert made["n"].measures["IQM"]["as-bad"].estimate == pytest.approx(0.0)


def test_a_column_without_all_tasks_says_so():
    other = Task("other", "A card.", "tsp", "tour", splits=TASK.splits)
    rows = [replace(each, column=replace(each.column, task="other")) for each in table(*learned(0.0))]
    rows += table(
        *learned(0.0), *(replace(one, column=replace(one.column, name="few")) for one in learned(0.1))
    )
    made = aggregates(cells({"tour": TASK, "other": other}, rows))
    assert set(made["n"].measures["IQM"]) == {"few (1 of 2 tasks)", "mine"}
    assert set(made["n"].profiles) == {"few (1 of 2 tasks)", "mine"}


def test_the_cost_is_the_first_point_that_reaches_the_rule():
    curve = [(0, 9.0), (100, 4.5), (200, 4.0)]
    reached, missed = learned(0, 1, curve=curve), learned(0, 1, curve=curve[:1])
    found = results({"tour": TASK}, table(*reached), INSTANCES, smoke=True)["frames to the rule"]
    assert found == [{"task": "tour", "column": "mine", "seed": 0, "frames": 100, "trained": 200}]
    assert (
        results({"tour": TASK}, table(*missed), INSTANCES, smoke=True)["frames to the rule"][0]["frames"]
        is None
    )


def test_an_interval_over_seeds_and_instances_covers_both():
    generator, covered, narrow, repeats = np.random.default_rng(0), 0, 0, 2_000
    for _ in range(repeats):
        rows = (
            generator.normal(0, 1, (5, 1)) + generator.normal(0, 1, (1, 20)) + generator.normal(0, 1, (5, 20))
        )
        found = crossed_interval(rows)
        covered += found.low <= 0 <= found.high
        means = rows.mean(0)
        narrow += abs(means.mean()) <= 2.09 * means.std(ddof=1) / 20**0.5
    assert covered / repeats > 0.93
    assert narrow / repeats < 0.8  # instances alone would promise too much


def test_few_seeds():
    assert crossed_interval(np.array([[1.0, 2.0, 3.0, 5.0]])).has_bounds
    assert not crossed_interval(np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])).has_bounds
