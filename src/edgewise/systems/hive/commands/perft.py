"""`edgewise hive perft`: the number of sequences of legal plies, to compare with published counts."""

from __future__ import annotations

from argparse import Namespace

from edgewise.config.errors import ConfigError
from edgewise.systems.hive.pieces import BASE_HAND, EXPANSIONS, Hand
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "edgewise hive perft [--depth N] [--pieces LETTERS] [options]"
    parser.add_argument("--depth", type=whole_number(1), default=4, metavar="N", help="number of plies (4)")
    parser.add_argument(
        "--pieces", default="", metavar="LETTERS", help="expansions: any of M, L and P, such as MLP"
    )
    parser.add_argument(
        "--hand", default=BASE_HAND, metavar="LETTERS", help=f"tiles of each player ({BASE_HAND})"
    )
    parser.add_threads()
    parser.examples("edgewise hive perft --depth 5", "edgewise hive perft --depth 5 --pieces MLP --json")


def run(options: Namespace, console: Console) -> int:
    """Count the sequences of every length up to the depth."""
    foreign = sorted(set(options.pieces) - set(EXPANSIONS))
    if foreign:
        raise ConfigError(f"--pieces: got {foreign[0]!r}, expected any of {', '.join(EXPANSIONS)}")
    try:
        hand = Hand.of(options.hand + options.pieces)
    except ValueError as error:
        raise ConfigError(f"--hand: {error}") from None
    prepare(threads=options.threads)
    from edgewise.systems.hive.perft import perft

    counts = perft(hand, options.depth)
    rows = [[depth, f"{count:,}"] for depth, count in enumerate(counts, 1)]
    console.show({"hand": hand.letters, "counts": counts}, table(["plies", "sequences"], rows))
    return 0
