"""`edgewise problems solve`: solve instances of files with a trained policy."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.config.decoding import FORMS, Decoding
from edgewise.config.errors import ConfigError
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "edgewise problems solve RUN FILE [FILE ...] [--decode HOW] [--rules]"
    parser.add_argument("run", metavar="RUN", help="run folder of a problem")
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="instances: TSPLIB, CVRPLIB, Taillard or DIMACS"
    )
    parser.add_argument("--decode", default="greedy", metavar="HOW", help=f"{FORMS} (greedy)")
    parser.add_argument("--rules", action="store_true", help="also solve them by every rule of the problem")
    parser.add_threads()
    parser.examples(
        "edgewise problems solve runs/tsp50-pomo-1 berlin52.tsp --decode multistart+symmetries",
        "edgewise problems solve runs/job-shop-1 ta01.txt ta02.txt --decode sample:128 --rules",
    )


def run(options: Namespace, console: Console) -> int:
    """Solve every file and show the costs in its own units."""
    how = Decoding.parse(options.decode, field="--decode")
    prepare(threads=options.threads)
    from edgewise.api import open_run
    from edgewise.evaluation.evaluate import evaluate
    from edgewise.plugins import environment
    from edgewise.problems.given import read_instance

    opened = open_run(options.run)
    problem = opened.config.env_name
    policy, found = opened.policy(), []
    rules = environment(problem).load_baselines() if options.rules else {}
    for file in options.files:
        env, state, unit = read_instance(problem, file)
        with policy.on(env):
            result = evaluate(env, policy, episodes=1, seed=0, start=state, decode=how)
        row = {"file": str(file), "policy": _cost(result, unit)}
        for name, make in rules.items():
            row[name] = _cost(evaluate(env, make(env), episodes=1, seed=0, start=state), unit)
        found.append(row)
    header = list(found[0])
    console.show(found, table(header, [[_shown(row[name]) for name in header] for row in found]))
    return 0


def _cost(result: object, unit: float) -> float:
    """Return the first metric of the only episode, in the units of the file."""
    metrics = getattr(result, "metrics", {})
    if not metrics:
        raise ConfigError("the environment of this run has no metric to report")
    return float(next(iter(metrics.values()))[0]) * unit


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
