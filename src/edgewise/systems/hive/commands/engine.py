"""`edgewise hive engine`: a player for programs that speak the Universal Hive Protocol."""

from __future__ import annotations

import sys
from argparse import Namespace

from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "edgewise hive engine PLAYER [options]"
    parser.add_argument(
        "player",
        metavar="PLAYER",
        help="a run folder or zoo:NAME, or an opponent of the arena: greedy, random, mcts:N",
    )
    parser.add_threads()
    parser.examples("edgewise hive engine greedy", "edgewise hive engine runs/hive-quick-1")


def run(options: Namespace, console: Console) -> int:  # noqa: ARG001 - what it says is the protocol
    """Answer the commands of the input until it ends."""
    prepare(threads=options.threads)
    import torch

    from edgewise.systems.hive.uhp_engine import UhpEngine, converse
    from edgewise.systems.hive.uhp_players import chooser

    engine = UhpEngine(options.player, chooser(options.player))
    with torch.no_grad():
        for line in converse(engine, sys.stdin):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    return 0
