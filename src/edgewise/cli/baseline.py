"""`edgewise baseline`: how far hand-written policies get, through the interface that learned ones use."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.config.plugins import Environment, environment
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole
from edgewise.terminal.sweep import combinations, given_settings


def configure(parser: Parser) -> None:
    """Says what the verb takes."""
    parser.takes_settings = True
    parser.usage = "edgewise baseline ENV [--policy NAME,NAME] [options] [--SETTING VALUE,VALUE ...]"
    parser.add_argument("env", metavar="ENV", help="name of an environment")
    parser.add_argument("--policy", metavar="NAMES", default="all", help="which ones, with commas (all)")
    parser.add_argument("--episodes", type=whole(1), default=100, metavar="N", help="instances (100)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=A,B", help="values of a field of the environment"
    )
    parser.add_argument(
        "--network", type=Path, metavar="FILE", help="simulate the rules on this network, where there are any"
    )
    parser.add_argument("--slots", type=whole(1), default=1000, metavar="N", help="of that simulation (1000)")
    parser.add_argument("--seeds", type=whole(1), default=8, metavar="N", help="worlds in it (8)")
    parser.add_machine()
    parser.examples(
        "edgewise baseline graphwalk",
        "edgewise baseline multihop --policy spbp --network FILE --slots 1000 --seeds 8",
        "edgewise baseline graphwalk --policy shortest_path --num-nodes 8,16,32 --episodes 500",
    )


def run(options: Namespace, console: Console) -> int:
    """Measures the policies at every combination of settings, or simulates them on a network."""
    entry = environment(options.env)
    names = [name for name in options.policy.split(",") if name]
    if not names:
        raise ConfigError("--policy: names no policy", hint="leave it out for all of them")
    if options.network is not None:
        return _simulate(entry, names, options, console)
    config = entry.load("config")()
    chosen = combinations(config, given_settings(options.set, options.settings))
    prepare(threads=options.threads)
    from edgewise.experiments.build import check_device
    from edgewise.experiments.instances import Instances
    from edgewise.experiments.measure import measure_baselines
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
    """Runs rules on a network file: mean backlog, its standard error over worlds, and throughput."""
    if entry.simulation is None:
        raise ConfigError(f"{options.env} has no networks to simulate", hint="leave --network out")
    idle = [*("--set" for _ in options.set[:1]), *(flag for flag, _ in options.settings)]
    if idle:
        raise ConfigError(
            f"--network: the file says it all, so {', '.join(idle)} would change nothing",
            hint="leave it out, or leave --network out",
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
