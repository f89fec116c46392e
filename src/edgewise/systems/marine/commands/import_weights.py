"""`edgewise marine import`: published weights as a run folder."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "edgewise marine import FILE [options]"
    parser.add_argument("file", metavar="FILE", type=Path, help="safetensors file with published weights")
    parser.add_argument(
        "--algorithm", metavar="NAME", help="algorithm that trained them, such as ac-iqn (the file's name)"
    )
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="run folder, which must not exist (under runs/)"
    )
    parser.add_threads()
    parser.examples(
        "edgewise marine import ac_iqn.safetensors",
        "edgewise marine import actor.safetensors --algorithm ddpg --out runs/published-ddpg",
    )


def run(options: Namespace, console: Console) -> int:
    """Write the run folder, with an evaluation, and show both."""
    prepare(threads=options.threads)
    from edgewise.experiments.launch import start_from
    from edgewise.systems.marine.published import read_published
    from edgewise.terminal.outcome import show_run

    imported = read_published(options.file, algorithm=options.algorithm)
    config = imported.config.model_copy(update={"threads": options.threads})
    show_run(start_from(config, imported.weights, folder=options.out), console)
    return 0
