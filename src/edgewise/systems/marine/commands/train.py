"""`edgewise marine train`: train every run of a schedule file, one after another."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.config.errors import ConfigError
from edgewise.systems.marine.schedules.file import load_schedules
from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.takes_settings = True
    parser.usage = "edgewise marine train FILE [--out FOLDER] [--dry-run] [--SETTING VALUE ...]"
    parser.add_argument("file", metavar="FILE", type=Path, help="JSON file with published training schedules")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="folder of the run folders (`save_dir` of the file)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the resolved configs, without training")
    parser.examples(
        "edgewise marine train config_AC_IQN.json",
        "edgewise marine train config_DQN.json --device cuda --out runs/dqn",
        "edgewise marine train config_DQN.json --dry-run --json",
    )


def run(options: Namespace, console: Console) -> int:
    """Train every run of the file and show their results."""
    runs = load_schedules(options.file, flags=options.settings)
    if any(config.processes > 1 or config.workers for config, _ in runs):
        raise ConfigError(
            "a schedule file trains in one process, without workers",
            hint="train the recipe instead, such as `edgewise train marine-ac-iqn --processes 2`",
        )
    prepare(threads=runs[0][0].threads)
    if options.dry_run:
        import yaml

        plain = {"runs": [{"folder": str(within), "config": config.to_plain()} for config, within in runs]}
        console.show(plain, yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip())
        return 0
    from edgewise.experiments.launch import next_folder, start
    from edgewise.terminal.outcome import show_runs
    from edgewise.training.logging.progress import ShowProgress

    finished = []
    for config, within in runs:
        folder = next_folder(config.name, within=options.out or within)
        finished.append(start(config, folder=folder, callbacks=[ShowProgress()]))
    show_runs(finished, console)
    return 0
