"""`edgewise import`: published weights as a run folder."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.config.errors import ConfigError
from edgewise.plugins import environment, environments
from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "edgewise import ENV FILE [options]"
    parser.add_argument("env", metavar="ENV", help="name of an environment")
    parser.add_argument("file", metavar="FILE", type=Path, help="safetensors file with published weights")
    parser.add_argument(
        "--algorithm", metavar="NAME", help="algorithm that trained them, such as ac-iqn (the file's name)"
    )
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="run folder, which must not exist (under runs/)"
    )
    parser.add_threads()
    parser.examples(
        "edgewise import marine ac_iqn.safetensors",
        "edgewise import marine actor.safetensors --algorithm ddpg --out runs/published-ddpg",
    )


def run(options: Namespace, console: Console) -> int:
    """Write the run folder, with an evaluation, and show both."""
    entry = environment(options.env)
    if entry.importer is None:
        known = ", ".join(name for name, each in environments().items() if each.importer is not None)
        raise ConfigError(f"there are no published weights for {options.env}", hint=f"there are for {known}")
    prepare(threads=options.threads)
    from edgewise.experiments.launch import start_from
    from edgewise.terminal.outcome import show_run

    read = entry.load("importer")
    imported = read(options.file, algorithm=options.algorithm)
    config = imported.config.model_copy(update={"threads": options.threads})
    show_run(start_from(config, imported.weights, folder=options.out), console)
    return 0
