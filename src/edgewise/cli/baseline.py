"""`edgewise baseline`: evaluate the baselines of an environment in the same way as trained policies."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.plugins import Environment, environment
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number
from edgewise.terminal.sweep import combinations, given_settings


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.takes_settings = True
    parser.usage = "edgewise baseline ENV [--policy NAME,NAME] [options] [--SETTING VALUE,VALUE ...]"
    parser.add_argument("env", metavar="ENV", help="name of an environment")
    parser.add_argument(
        "--policy", metavar="NAMES", default="all", help="baselines, separated by commas (all)"
    )
    parser.add_argument(
        "--episodes", type=whole_number(1), default=100, metavar="N", help="number of instances (100)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=A,B",
        help="set a field of the environment; every combination is evaluated",
    )
    parser.add_argument(
        "--network",
        type=Path,
        metavar="FILE",
        help="simulate the baselines on this network file, if the environment can",
    )
    parser.add_argument(
        "--slots", type=whole_number(1), default=1000, metavar="N", help="steps of that simulation (1000)"
    )
    parser.add_argument(
        "--seeds",
        type=whole_number(1),
        default=8,
        metavar="N",
        help="number of random seeds of that simulation (8)",
    )
    parser.add_machine()
    parser.examples(
        "edgewise baseline graphwalk",
        "edgewise baseline graphwalk --policy shortest_path --num-nodes 8,16,32 --episodes 500",
        "edgewise baseline ENV --policy NAME --network FILE --slots 1000 --seeds 8",
    )


def run(options: Namespace, console: Console) -> int:
    """Evaluate the baselines at every combination of settings, or simulate them on a network file."""
    entry = environment(options.env)
    names = [name for name in options.policy.split(",") if name]
    if not names:
        raise ConfigError("--policy: got no names", hint="omit it for all baselines")
    if options.network is not None:
        return _simulate(entry, names, options, console)
    config = entry.load("config")()
    chosen = combinations(config, given_settings(options.set, options.settings))
    prepare(threads=options.threads)
    from edgewise.evaluation.instances import Instances
    from edgewise.experiments.evaluate import measure_baselines
    from edgewise.scale.devices import check_device
    from edgewise.terminal.outcome import summary, summary_table

    check_device(options.device or "cpu")
    found = []
    for settings in chosen:
        instances = Instances.make(
            entry,
            config,
            episodes=options.episodes,
            seed=options.seed or 0,
            settings=settings,
            device=options.device or "cpu",
        )
        found += measure_baselines(instances, names)
    console.show([summary(evaluation) for evaluation in found], summary_table(found))
    return 0


def _simulate(entry: Environment, names: list[str], options: Namespace, console: Console) -> int:
    """Simulate baselines on a network file: mean backlog, its standard error over seeds, and throughput."""
    if entry.simulation is None:
        raise ConfigError(f"{options.env} has no simulation of network files", hint="omit --network")
    unused = [*("--set" for _ in options.set[:1]), *(flag for flag, _ in options.settings)]
    if unused:
        raise ConfigError(
            f"--network: the file contains all settings, so {', '.join(unused)} would change nothing",
            hint="omit either",
        )
    prepare(threads=options.threads)
    simulate = entry.load("simulation")
    settings = {"slots": options.slots, "seeds": options.seeds, "seed": options.seed or 0}
    found: list[dict[str, Any]] = [
        asdict(simulate(name, options.network, **settings))
        for name in (entry.load_baselines() if names == ["all"] else names)
    ]
    header = ["policy", "network", "slots", "seeds", "backlog", "standard_error", "throughput"]
    rows = [[row[name] for name in header] for row in found]
    console.show(found, table([name.replace("_", " ") for name in header], rows))
    return 0
