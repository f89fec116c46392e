"""`edgewise verify`: check every checkpoint and file of a run."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from edgewise.config.errors import CheckpointError
from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console, table
from edgewise.terminal.parser import Parser

if TYPE_CHECKING:
    from edgewise.runs.verify import CheckedFile


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "run",
        metavar="RUN",
        type=run_path,
        help="run folder, zoo:NAME, or results of `edgewise benchmark graphs`",
    )
    parser.examples("edgewise verify runs/graphwalk-ppo-1", "edgewise verify runs/graphwalk-ppo-1 --json")


def checked_files(run: Path) -> list[CheckedFile]:
    """Check every file of a run, or of results of the benchmark, with the package that writes it."""
    from edgewise.benchmark.verify import is_benchmark, verify_benchmark

    if is_benchmark(run):
        return verify_benchmark(run)
    from edgewise.evaluation.replays import files as replays
    from edgewise.evaluation.result import Evaluation
    from edgewise.graphs.graph_store import load_graph_set
    from edgewise.runs.verify import verify_run

    readers = {
        "graphs.safetensors": load_graph_set,
        "evaluations/*.json": Evaluation.load,
        "replays/*.json": replays.load,
    }
    return verify_run(run, readers=readers)


def run(options: Namespace, console: Console) -> int:
    """Check the run; the exit code is 0 if everything is whole, else 3."""
    files = checked_files(options.run)
    damaged = [file for file in files if file.fault is not None]
    data = {
        "run": str(options.run),
        "whole": not damaged,
        "files": [{"name": file.name, "whole": file.fault is None, "fault": file.fault} for file in files],
    }
    rows = [[file.name, "whole" if file.fault is None else f"damaged: {file.fault}"] for file in files]
    console.show(data, table(["file", "state"], rows))
    if damaged:
        console.note(f"{len(damaged)} of {len(files)} are damaged")
    return CheckpointError.exit_code if damaged else 0
