"""`edgewise benchmark`: train every algorithm in every environment of a file, and compare them."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from edgewise.cli.studies import add_jobs, child_program, shown
from edgewise.config.run import AnyRun
from edgewise.experiments.load import load_config
from edgewise.terminal.console import Console, table
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="YAML or JSON file with algorithms, environments, seeds and settings",
    )
    add_jobs(parser)
    for flag, what in (("--minutes", "minutes"), ("--cpu-minutes", "minutes of CPU time")):
        parser.add_argument(
            flag, metavar="M", help=f"train every run for M {what} instead of a number of frames"
        )
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        help="folder of the study; if not given, the one in runs/ that this command continues, or a new one",
    )
    parser.examples(
        "edgewise benchmark small.yaml --jobs 2", "edgewise benchmark small.yaml --plugin tsp.py --json"
    )


def run(options: Namespace, console: Console) -> int:
    """Run or continue the grid, and show the aggregates."""
    from edgewise.studies.grid import run_grid
    from edgewise.studies.grid_file import load_cells, read_grid
    from edgewise.studies.grid_results import plain

    def load(environment: str, algorithm: str, flags: list[tuple[str, str]]) -> AnyRun:
        return load_config(environment, algorithm=algorithm, flags=flags)

    grid = read_grid(options.file)
    given = {"--minutes": options.minutes, "--training.cpu-minutes": options.cpu_minutes}
    budget = tuple((flag, value) for flag, value in given.items() if value is not None)
    grid = replace(grid, settings=(*grid.settings, *budget))
    cells = load_cells(grid, load)
    result = run_grid(grid, cells, jobs=options.jobs, out=options.out, program=child_program(options))
    text = []
    if result.aggregates is not None:
        measures = result.aggregates.measures
        rows = [[name, *(shown(found[name]) for found in measures.values())] for name in measures["IQM"]]
        text.append(table(["algorithm", *measures], rows))
        pairs = [[left, right, shown(one)] for (left, right), one in result.aggregates.improvement.items()]
        if pairs:
            text.append(table(["algorithm", "over", "probability of improvement"], pairs))
    text.append(
        f"study:   {result.folder}\nreport:  {result.folder / 'report.html'}\n"
        f"results: {result.folder / 'results.json'}"
    )
    console.show(plain(result), "\n\n".join(text))
    return 0
