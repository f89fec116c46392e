"""The page of a results folder: one file without network access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgewise.benchmark.results import METHOD, MLP, NO_EDGES, UNTRAINED, WHOLE, ResultsFolder, Stored
from edgewise.benchmark.scores import BETTER, WORSE, Plain, label
from edgewise.benchmark.task import VERSION, Task
from edgewise.config import files
from edgewise.report.curves import mean_curve
from edgewise.report.metrics_table import Curve
from edgewise.report.overview import Block, Overview, Section, cell, charts, intervals, line, pictures, table
from edgewise.runs import durable
from edgewise.studies.scores import Aggregates

COLOURS = 6
STATES = {BETTER: "good", WORSE: "bad"}


def write_page(
    store: ResultsFolder,
    tasks: Mapping[str, Task],
    stored: Sequence[Stored],
    found: Plain,
    made: Mapping[str, Aggregates],
) -> None:
    """Write report.html."""
    plan = store.study.plan
    budget = "frames of a smoke run" if plan["smoke"] else f"{plan['minutes']:g} CPU-minutes"
    page = Overview(
        title="Benchmark of graphs",
        eyebrow=f"benchmark, version {plan['version']}",
        facts=[
            ("tasks", len(tasks)),
            ("methods", ", ".join(plan["methods"])),
            ("seeds", plan["seeds"]),
            ("budget of a network", budget),
        ],
        sections=[
            *_tables(found, list(plan["methods"])),
            Section(
                "aggregates",
                "Over all tasks",
                "Scores: 0 is random actions, 1 the strongest rule. IQM is the mean of the middle half of "
                "all runs, with 95 % intervals over seeds; n is their number. Both queueing tasks count as "
                "one.",
                [intervals({f"IQM, {name}": each.measures["IQM"] for name, each in made.items()})]
                if made
                else [],
            ),
            Section(
                "profiles",
                "Performance profiles",
                "The share of runs with a score above each value; at 1 a run is as good as the rule.",
                _profiles(made, _colours(stored)),
            ),
            Section(
                "curves",
                "Learning",
                "The measure at size n over CPU-minutes, mean over seeds with 95 % bands. Frames are turned "
                "into minutes by the mean rate of each run.",
                _curves(tasks, stored, store.times()),
            ),
            Section(
                "cost",
                "Cost to reach the rule",
                "CPU-minutes after which the mean at size n is at least that of the strongest rule; "
                "empty where no point of the curve is.",
                [_costs(found["frames to the rule"], stored, store.times())],
            ),
            Section("drawings", "What it looks like", "", _drawings(store, tasks)),
            Section("cards", "Tasks", "", [_cards(tasks)]),
            Section(
                "instances", "Instances", "Equal digests are equal instances.", [_instances(found["table"])]
            ),
        ],
        notes=[f"{each}: the instances are not those of {VERSION}" for each in found["other instances"]],
        footer="edgewise benchmark graphs",
    )
    durable.replace_whole(store.path / "report.html", page.html().encode())


def _tables(found: Plain, methods: Sequence[str]) -> list[Section]:
    """Return a table for each method, coloured by whether it is better than the strongest rule."""
    lead = (
        "Green: better than the strongest rule by the 95 % interval of the difference on the same instances, "
        "over seeds and instances; red: worse; no colour: no difference. The small figures are that gain. "
        "Means are IQMs over seeds. The strongest rule is chosen on the test instances, in favour of rules."
    )
    return [
        Section(f"table-{number}", name, lead if number == 0 else "", [_table(found["table"], name)])
        for number, name in enumerate(methods)
    ]


def _table(rows: Sequence[Plain], method: str) -> Block:
    parts = [part for part in (WHOLE, UNTRAINED, NO_EDGES, MLP) if _has(rows, method, part)]
    names = [part or "learned" for part in parts]
    header = ["task", "split", "reference", "strongest rule", *names]
    shown = []
    for row in rows:
        own = {one["part"]: one for one in row["columns"] if one["method"] == method}
        reference, rule = row["reference"], row["rule"]
        proven = f"{reference['by']}, {reference['proven']} of {row['instances']} proven"
        better = "more is better" if row["maximise"] else "less is better"
        shown.append(
            [
                cell(row["task"], range_=f"{row['measure']}, {better}"),
                cell(row["split"], range_=f"{row['instances']} instances"),
                _number(reference["value"], proven if reference["proven"] else reference["by"]),
                _number(rule["value"], rule["name"]),
                *(_cell(own.get(part)) for part in parts),
            ]
        )
    return table(header, shown)


def _has(rows: Sequence[Plain], method: str, part: str) -> bool:
    return any(one["method"] == method and one["part"] == part for row in rows for one in row["columns"])


def _number(value: float, below: str) -> dict[str, Any]:
    return cell(f"{value:.4g}", order=value, range_=below)


def _cell(one: Plain | None) -> dict[str, Any] | None:
    if one is None:
        return None
    value, gain = one["value"]["value"], one["gain"]
    ends = "" if gain["low"] is None else f" [{gain['low']:.3g}, {gain['high']:.3g}]"
    below = f"{gain['value']:+.3g}{ends}"
    return cell(f"{value:.4g}", order=value, range_=below, shade=STATES.get(one["verdict"]))


def _colours(stored: Sequence[Stored]) -> dict[str, int]:
    """Return the colour of every column, the same in all charts."""
    names = (label((one.column.name, one.column.part)) for one in stored if one.column.kind == METHOD)
    return {name: number % COLOURS for number, name in enumerate(sorted(set(names)))}


def _profiles(made: Mapping[str, Aggregates], colours: Mapping[str, int]) -> list[Block]:
    drawn = {
        name: [
            line(column, list(one.thresholds), list(one.share), colour=colours[column.partition(" (")[0]])
            for column, one in each.profiles.items()
        ]
        for name, each in made.items()
    }
    return [charts("score", drawn)] if drawn else []


def _minutes(one: Stored, times: Mapping[str, float]) -> float:
    """Return the CPU-minutes per frame of a trained column."""
    seconds = times.get(f"{one.column.task}/{one.column.label}", 0.0)
    return seconds / 60 / one.curve[-1][0] if one.curve and one.curve[-1][0] else 0.0


def _curves(tasks: Mapping[str, Task], stored: Sequence[Stored], times: Mapping[str, float]) -> list[Block]:
    drawn: dict[str, list[Block]] = {}
    colours = _colours(stored)
    for name, task in tasks.items():
        runs: dict[str, list[Curve]] = {}
        for one in stored:
            if one.column.task == name and len(one.curve) > 1:
                x, y = (np.array(each, dtype=float) for each in zip(*one.curve, strict=True))
                key = label((one.column.name, one.column.part))
                runs.setdefault(key, []).append(Curve(x * _minutes(one, times), y, y, y))
        lines = []
        for key, curves in runs.items():
            mean = mean_curve(curves)
            band = (list(mean.low), list(mean.high))
            colour = colours[key]
            lines.append(line(key, list(mean.x), list(mean.y), colour=colour, band=band, cut=mean.cut))
        if lines:
            drawn[f"{name}: {task.measure}"] = lines
    return [charts("CPU-minutes", drawn)] if drawn else []


def _costs(rows: Sequence[Plain], stored: Sequence[Stored], times: Mapping[str, float]) -> Block:
    rate = {
        (one.column.task, label((one.column.name, one.column.part)), one.column.seed): _minutes(one, times)
        for one in stored
    }
    shown = []
    for row in rows:
        frames = row["frames"]
        minutes = None if frames is None else frames * rate[row["task"], row["column"], row["seed"]]
        shown.append([row["task"], row["column"], row["seed"], frames, minutes])
    return table(["task", "column", "seed", "frames", "CPU-minutes"], shown)


def _drawings(store: ResultsFolder, tasks: Mapping[str, Task]) -> list[Block]:
    found = {
        name: files.read_text(file)
        for name in tasks
        if (file := store.path / f"drawings/{name}.svg").is_file()
    }
    return [pictures(found)] if found else []


def _cards(tasks: Mapping[str, Task]) -> Block:
    return table(["task", "card"], [[name, " ".join(task.card.split())] for name, task in tasks.items()])


def _instances(rows: Sequence[Plain]) -> Block:
    shown = [[row["task"], row["split"], row["instances"], row["sha256"][:16]] for row in rows]
    return table(["task", "split", "instances", "SHA-256 begins with"], shown)
