"""`edgewise report`: write the report of a run, or one report that compares several runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.terminal.console import Console
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "runs",
        metavar="RUN",
        type=Path,
        nargs="+",
        help="run folders; runs of one recipe are aggregated over seeds",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="output file (report.html in the first folder)"
    )
    parser.examples(
        "edgewise report runs/graphwalk-ppo-1", "edgewise report runs/graphwalk-ppo-* --out seeds.html"
    )


def run(options: Namespace, console: Console) -> int:
    """Write the report and show its path."""
    from edgewise.report.page import write_report

    first, *others = options.runs
    written = write_report(first, *others, target=options.out)
    console.show({"report": str(written)}, f"report: {written}")
    return 0
