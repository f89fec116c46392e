"""`edgewise report`: write the report of a run, one that compares several runs, or a list of runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "runs",
        metavar="RUN",
        type=run_path,
        nargs="+",
        help="run folders or zoo:NAME, where those of one recipe are joined over seeds; or a folder of runs",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="output file (report.html in the first folder; index.html for a list)",
    )
    parser.examples(
        "edgewise report runs/graphwalk-ppo-1",
        "edgewise report runs/graphwalk-ppo-* --out seeds.html",
        "edgewise report runs/",
    )


def run(options: Namespace, console: Console) -> int:
    """Write the report and show its path."""
    from edgewise.report.page import write_report
    from edgewise.report.run_list import has_runs, write_run_list

    first, *others = options.runs
    if not others and has_runs(first):
        written = write_run_list(first, target=options.out)
    else:
        written = write_report(first, *others, target=options.out)
    console.show({"report": str(written)}, f"report: {written}")
    return 0
