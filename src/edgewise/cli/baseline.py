"""`edgewise baseline`: how far hand-written policies get, through the interface that learned ones use."""

from __future__ import annotations

from argparse import Namespace

from edgewise.cli.console import Console
from edgewise.cli.machine import prepare
from edgewise.cli.parser import Parser
from edgewise.cli.sweep import combinations, given_settings
from edgewise.envs.registry import entry


def configure(parser: Parser) -> None:
    """Says what the verb takes."""
    parser.takes_settings = True
    parser.usage = "edgewise baseline ENV [--policy NAME,NAME] [options] [--SETTING VALUE,VALUE ...]"
    parser.add_argument("env", metavar="ENV", help="name of an environment")
    parser.add_argument("--policy", metavar="NAMES", default="all", help="which ones, with commas (all)")
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="instances (100)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=A,B", help="values of a field of the environment"
    )
    parser.add_machine()
    parser.examples(
        "edgewise baseline graphwalk",
        "edgewise baseline graphwalk --policy shortest_path --num-nodes 8,16,32 --episodes 500",
    )


def run(options: Namespace, console: Console) -> int:
    """Measures the policies at every combination of settings."""
    line = entry(options.env)
    config = line.config_class()()
    chosen = combinations(config, given_settings(options.set, options.settings))
    prepare(threads=options.threads)
    from edgewise.cli.outcome import summary, summary_table
    from edgewise.recipes.compose import Instances, check_device
    from edgewise.recipes.measure import measure_baselines

    check_device(options.device or "cpu")
    found = []
    for settings in chosen:
        instances = Instances.make(
            options.env,
            config,
            episodes=options.episodes,
            seed=options.seed or 0,
            settings=settings,
            device=options.device or "cpu",
        )
        found += measure_baselines(instances, [name for name in options.policy.split(",") if name])
    console.show([summary(evaluation) for evaluation in found], summary_table(found))
    return 0
