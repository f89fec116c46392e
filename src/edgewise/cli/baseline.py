"""`edgewise baseline`: evaluate the baselines of an environment in the same way as trained policies."""

from __future__ import annotations

from argparse import Namespace

from edgewise.config.errors import ConfigError
from edgewise.plugins import environment
from edgewise.terminal.console import Console
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
        "--measures",
        metavar="NAMES",
        default="",
        help="measures to show, separated by commas, or `all` (those that fit into the window)",
    )
    parser.add_machine()
    parser.examples(
        "edgewise baseline graphwalk",
        "edgewise baseline graphwalk --policy shortest_path --num-nodes 8,16,32 --episodes 500",
    )


def run(options: Namespace, console: Console) -> int:
    """Evaluate the baselines at every combination of settings."""
    entry = environment(options.env)
    names = [name for name in options.policy.split(",") if name]
    if not names:
        raise ConfigError("--policy: got no names", hint="omit it for all baselines")
    config = entry.load("config")()
    chosen = combinations(config, given_settings(options.set, options.settings))
    prepare(threads=options.threads)
    from edgewise.evaluation.instances import Instances
    from edgewise.experiments.evaluate import evaluate_baselines
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
        found += evaluate_baselines(instances, names)
    console.show(
        [summary(evaluation) for evaluation in found],
        summary_table(found, measures=[name for name in options.measures.split(",") if name]),
    )
    return 0
