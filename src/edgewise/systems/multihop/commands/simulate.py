"""`edgewise multihop simulate`: routing rules on one network file."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number

COLUMNS = ("policy", "network", "slots", "seeds", "backlog", "standard_error", "throughput")


def configure(parser: Parser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", type=Path, help="network file")
    parser.add_argument(
        "--policy", default="spbp", metavar="NAMES", help="routing rules, separated by commas (spbp)"
    )
    parser.add_argument(
        "--slots", type=whole_number(1), default=1000, metavar="N", help="steps of each simulation (1000)"
    )
    parser.add_argument(
        "--seeds", type=whole_number(1), default=8, metavar="N", help="number of simulations (8)"
    )
    parser.add_argument("--seed", type=whole_number(0), default=0, metavar="N", help="random seed (0)")
    parser.add_threads()
    parser.examples("edgewise multihop simulate network.json --policy spbp,spts --slots 1000 --seeds 8")


def run(options: Namespace, console: Console) -> int:
    """Show mean backlog, its standard error over seeds, and throughput of every rule."""
    prepare(threads=options.threads)
    from edgewise.systems.multihop.simulate import baseline_run

    settings = {"slots": options.slots, "seeds": options.seeds, "seed": options.seed}
    found: list[dict[str, Any]] = [
        asdict(baseline_run(name, options.file, **settings)) for name in options.policy.split(",")
    ]
    rows = [[row[name] for name in COLUMNS] for row in found]
    console.show(found, table([name.replace("_", " ") for name in COLUMNS], rows))
    return 0
