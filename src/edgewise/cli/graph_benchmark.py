"""`edgewise benchmark graphs`: methods on the tasks of the benchmark that comes with edgewise."""

from __future__ import annotations

import math
from argparse import Namespace
from typing import Any

from edgewise.config.bounds import REAL
from edgewise.config.errors import ConfigError
from edgewise.terminal.console import Console, table
from edgewise.terminal.parser import Parser, whole_number

NAME = "graphs"
SEEDS, MINUTES = 5, 3.5
"""Seeds and CPU-minutes of every network, unless others are given."""
DEFAULT = "edgewise"
"""The method that is measured if none is given."""


def configure(parser: Parser) -> None:
    """Add the arguments that only `graphs` has."""
    parser.add_argument(
        "--method",
        action="append",
        metavar="NAME",
        help="for graphs: my_method.py, a table.csv, or edgewise, ppo, reinforce, self-labelling, dqn, "
        f"evolution, also with an encoder, such as ppo/gatv2; may be given several times ({DEFAULT})",
    )
    parser.add_argument("--tasks", metavar="A,B", help="for graphs: names of tasks (all)")
    parser.add_argument(
        "--seeds",
        type=whole_number(1, 1000),
        metavar="N",
        help=f"for graphs: seeds of every network ({SEEDS})",
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="for graphs: fewer instances, and some thousand frames for each network; ten CPU-minutes in all",
    )


def given_flags(options: Namespace) -> list[str]:
    """Return the flags of `graphs` that were given."""
    flags = {"--method": options.method, "--tasks": options.tasks, "--seeds": options.seeds}
    return [name for name, value in {**flags, "--smoke": options.smoke or None}.items() if value is not None]


def run(options: Namespace, console: Console) -> int:
    """Measure, or continue, and show the table."""
    minutes = _minutes(options)
    from edgewise.benchmark.method import Budget, read_method
    from edgewise.benchmark.run import run_benchmark
    from edgewise.benchmark.tasks import chosen_tasks
    from edgewise.terminal.machine import prepare

    prepare(threads=1)
    methods = [read_method(reference) for reference in options.method or [DEFAULT]]
    outcome = run_benchmark(
        methods,
        chosen_tasks(options.tasks),
        seeds=options.seeds or SEEDS,
        budget=Budget(minutes=minutes, smoke=options.smoke),
        folder=options.out,
        note=console.note,
    )
    found, text = outcome.results, []
    for method in dict.fromkeys(one["method"] for row in found["table"] for one in row["columns"]):
        text.append(f"{method}\n" + _method_table(found["table"], method))
    rows = [
        [split, column, one["value"], _ends(one)]
        for split, each in found["aggregates"].items()
        for column, one in each.items()
    ]
    if rows:
        text.append(table(["splits", "column", "IQM score", "95 %"], rows))
    for where in found["other instances"]:
        console.note(f"{where}: the instances are not those that were published, so tables do not compare")
    text.append(f"results: {outcome.folder}\nreport:  {outcome.folder / 'report.html'}")
    console.show({"folder": str(outcome.folder), **found}, "\n\n".join(text))
    return 0


def _minutes(options: Namespace) -> float | None:
    """Return the CPU-minutes of every network; None for a smoke run, which counts frames."""
    given = [text for text in (options.minutes, options.cpu_minutes) if text is not None]
    if options.jobs != 1:
        raise ConfigError(
            "--jobs: got more than 1, but this benchmark runs in one process",
            hint="give each process some of the --tasks and a folder of its own",
        )
    if len(given) > 1 or (given and options.smoke):
        raise ConfigError("--minutes: give one of --minutes, --cpu-minutes and --smoke")
    if options.smoke:
        return None
    try:
        minutes = float(given[0]) if given else MINUTES
    except ValueError:
        minutes = math.nan
    if not 0 < minutes <= REAL:
        raise ConfigError(f"--minutes: got {given[0]}, expected a number above 0")
    return minutes


def _method_table(rows: list[dict[str, Any]], method: str) -> str:
    """Return one method's columns beside the strongest rule; * marks what is better, ! what is worse."""
    parts = ("untrained", "without edges", "mlp", "")
    shown = []
    for row in rows:
        own = {one["part"]: one for one in row["columns"] if one["method"] == method}
        if not own:
            continue
        better = "max" if row["maximise"] else "min"
        head = [row["task"], row["split"], f"{row['measure']} ({better})", row["reference"]["value"]]
        rule = f"{row['rule']['value']:.4g} {row['rule']['name']}"
        gain = own[""]["gain"] if "" in own else None
        cells = [_marked(own.get(part)) for part in parts]
        shown.append([*head, rule, *cells, "" if gain is None else f"{gain['value']:+.3g} {_ends(gain)}"])
    names = ["task", "split", "measure", "reference", "strongest rule", *parts[:-1], "learned", "gain"]
    return table(names, shown)


def _marked(one: dict[str, Any] | None) -> str:
    if one is None:
        return "-"
    mark = {"better": "*", "worse": "!"}.get(one["verdict"], "")
    return f"{one['value']['value']:.4g}{mark}"


def _ends(one: dict[str, Any]) -> str:
    return "" if one["low"] is None else f"[{one['low']:.3g}, {one['high']:.3g}]"
