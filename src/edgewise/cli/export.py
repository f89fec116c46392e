"""`edgewise export`: the policy of a run for other programs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Says what the verb takes."""
    parser.add_argument("run", metavar="RUN", type=Path, help="a run folder of robots")
    parser.add_argument(
        "--to", metavar="FOLDER", type=Path, required=True, help="where the files go; made if absent"
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="which weights (best)"
    )
    parser.examples("edgewise export runs/marine-ac-iqn-1 --to policy")


def run(options: Namespace, console: Console) -> int:
    """Writes the policy as a program and as weights, and compares both with the policy."""
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
