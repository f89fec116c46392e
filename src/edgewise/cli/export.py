"""`edgewise export`: write the policy of a run for other programs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("run", metavar="RUN", type=Path, help="run folder")
    parser.add_argument(
        "--to", metavar="FOLDER", type=Path, required=True, help="output folder; created if missing"
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="checkpoint to load (best)"
    )
    parser.examples("edgewise export RUN --to policy")


def run(options: Namespace, console: Console) -> int:
    """Export the policy as a program and as weights, and compare both with the policy."""
    prepare(threads=1)
    from edgewise.experiments.export import export

    found = export(options.run, options.to, which=options.checkpoint)
    data = {
        "folder": str(found.folder),
        "files": list(found.files),
        "largest_difference": found.largest_difference,
    }
    lines = "\n".join(str(found.folder / name) for name in found.files)
    console.show(data, f"{lines}\nlargest difference to the policy: {found.largest_difference:g}")
    return 0
