"""`edgewise train`: from a recipe or a file to a run folder with a report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgewise.cli.console import Console
from edgewise.cli.fields import fields_help
from edgewise.cli.machine import prepare
from edgewise.cli.parser import Parser
from edgewise.recipes.load import load_config
from edgewise.recipes.recipe import AnyRun
from edgewise.recipes.registry import RECIPES, recipe


def configure(parser: Parser) -> None:
    """Says what the verb takes."""
    parser.takes_settings = True
    parser.details = _details
    parser.usage = (
        "edgewise train RECIPE_OR_FILE [--config FILE] [--out FOLDER] [--dry-run] [--SETTING VALUE ...]"
    )
    parser.add_argument(
        "source", metavar="RECIPE_OR_FILE", help="name of a recipe, or a YAML or JSON file that names one"
    )
    parser.add_argument("--config", metavar="FILE", help="a file whose settings change the recipe's")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="the run folder; a new one in runs/ if not given"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the resolved config and sizes, train nothing"
    )
    parser.examples(
        "edgewise train graphwalk-ppo",
        "edgewise train graphwalk-ppo --seed 3 --training.total-frames 1e6 --env.num-nodes 6,20",
        "edgewise train mine.yaml --dry-run --json",
    )


def run(options: Namespace, console: Console) -> int:
    """Trains, or shows what would be trained."""
    config = load_config(options.source, file=options.config, flags=options.settings)
    prepare(threads=config.threads)
    if options.dry_run:
        return _dry_run(config, console)
    from edgewise.cli.outcome import show_run
    from edgewise.recipes.launch import start
    from edgewise.training.progress import watcher

    show_run(start(config, folder=options.out, watcher=watcher()), console)
    return 0


def _dry_run(config: AnyRun, console: Console) -> int:
    import yaml

    from edgewise.recipes.sizes import sizes

    found = sizes(config)
    plain: dict[str, Any] = {"config": config.to_plain(), "sizes": found}
    console.show(plain, yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip())
    return 0


def _details(arguments: Sequence[str]) -> str:
    """Every setting of the recipe that the command line names."""
    named = [argument for argument in arguments if argument in RECIPES]
    if not named:
        names = ", ".join(RECIPES)
        return (
            "\n\nEvery setting of a recipe is a flag; `edgewise train RECIPE --help` lists them."
            "\nA last name will do where only one field has it: --total-frames for --training.total-frames."
            f"\n\nrecipes: {names}"
        )
    fields = fields_help(recipe(named[0]).config)
    return f"\n\nsettings of {named[0]}, with their values in the recipe:\n{fields}"
