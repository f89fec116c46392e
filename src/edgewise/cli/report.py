"""`edgewise report`: the page of a run written anew, or one page of several runs beside each other."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.terminal.console import Console
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Says what the verb takes."""
    parser.add_argument(
        "runs", metavar="RUN", type=Path, nargs="+", help="run folders; seeds of one recipe become one band"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="instead of report.html in the first folder")
    parser.examples(
        "edgewise report runs/graphwalk-ppo-1", "edgewise report runs/graphwalk-ppo-* --out seeds.html"
    )


def run(options: Namespace, console: Console) -> int:
    """Writes the page and says where it is."""
    from edgewise.report.page import write_report

    first, *others = options.runs
    written = write_report(first, *others, target=options.out)
    console.show({"report": str(written)}, f"report: {written}")
    return 0
