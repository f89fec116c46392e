"""`edgewise benchmark`: every algorithm in every environment of a file, or the benchmark of graphs."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from edgewise.cli import graph_benchmark
from edgewise.cli.studies import add_jobs, child_program, shown
from edgewise.config.errors import ConfigError
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
        help="YAML or JSON file with algorithms, environments, seeds and settings; or `graphs`, "
        "the benchmark that comes with edgewise",
    )
    add_jobs(parser)
    for flag, what in (("--minutes", "minutes"), ("--cpu-minutes", "minutes of CPU time")):
        parser.add_argument(
            flag,
            metavar="M",
            help=f"train every run for M {what} instead of a number of frames; for graphs CPU-minutes (3.5)",
        )
    parser.add_argument(
        "--out",
        "--to",
        metavar="FOLDER",
        type=Path,
        help="folder of the study; if not given, the one in runs/ that this command continues, or a new one",
    )
    graph_benchmark.configure(parser)
    parser.examples(
        "edgewise benchmark small.yaml --jobs 2",
        "edgewise benchmark small.yaml --plugin tsp.py --json",
        "edgewise benchmark graphs --smoke",
        "edgewise benchmark graphs --method my_method.py --minutes 10 --to results",
    )


def run(options: Namespace, console: Console) -> int:
    """Run or continue the grid, and show the aggregates."""
    if str(options.file) == graph_benchmark.NAME:
        return graph_benchmark.run(options, console)
    if flags := graph_benchmark.given_flags(options):
        raise ConfigError(
            f"{', '.join(flags)}: only for `edgewise benchmark graphs`", hint="a file has its own settings"
        )
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
