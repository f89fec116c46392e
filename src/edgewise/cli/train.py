"""`edgewise train`: from a recipe or a file to a run folder with a report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgewise.config import plugins
from edgewise.experiments.load import load_runs
from edgewise.experiments.recipe import AnyRun
from edgewise.experiments.recipes import recipe
from edgewise.terminal.console import Console
from edgewise.terminal.fields import fields_help
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Says what the verb takes."""
    parser.takes_settings = True
    parser.details = _details
    parser.usage = (
        "edgewise train RECIPE_OR_FILE [--config FILE] [--out FOLDER] [--dry-run] [--SETTING VALUE ...]"
    )
    parser.add_argument(
        "source",
        metavar="RECIPE_OR_FILE",
        help="name of a recipe, a YAML or JSON file that names one, or a JSON of schedules",
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
        "edgewise train schedules.json --device cuda",
    )


def run(options: Namespace, console: Console) -> int:
    """Trains, or shows what would be trained."""
    runs = load_runs(options.source, file=options.config, flags=options.settings)
    prepare(threads=runs[0][0].threads)
    if options.dry_run:
        return _dry_run([config for config, _ in runs], console)
    from edgewise.experiments.launch import start
    from edgewise.terminal.outcome import show_runs
    from edgewise.training.logging.progress import watcher

    finished = []
    for config, within in runs:
        folder = _folder(config, within, out=options.out, only=len(runs) == 1)
        finished.append(start(config, folder=folder, watcher=watcher()))
    show_runs(finished, console)
    return 0


def _folder(config: AnyRun, within: Path | None, *, out: Path | None, only: bool) -> Path | None:
    """Where a run goes: `--out`, or within it where there are several; where its file says; else anywhere."""
    from edgewise.experiments.launch import next_folder

    if out is not None:
        return out if only else next_folder(config.name, within=out)
    return None if within is None else next_folder(config.name, within=within)


def _dry_run(configs: Sequence[AnyRun], console: Console) -> int:
    import yaml

    from edgewise.experiments.sizes import sizes

    every: list[dict[str, Any]] = [
        {"config": config.to_plain(), "sizes": sizes(config)} for config in configs
    ]
    plain = every[0] if len(every) == 1 else {"runs": every}
    console.show(plain, yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip())
    return 0


def _details(arguments: Sequence[str]) -> str:
    """Every setting of the recipe that the command line names."""
    named = [argument for argument in arguments if argument in plugins.recipes()]
    if not named:
        names = ", ".join(plugins.recipes())
        return (
            "\n\nEvery setting of a recipe is a flag; `edgewise train RECIPE --help` lists them."
            "\nA last name will do where only one field has it: --total-frames for --training.total-frames."
            f"\n\nrecipes: {names}"
        )
    fields = fields_help(recipe(named[0]).config)
    return f"\n\nsettings of {named[0]}, with their values in the recipe:\n{fields}"
