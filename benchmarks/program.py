"""Shared parts of the benchmarks: CPU time of interleaved tasks, and a command line."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from edgewise.terminal.machine import LARGEST_IN_HEAP, NEVER_TRIM

Figures = dict[str, dict[str, float]]


def cpu_seconds(
    tasks: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    choose: Callable[[Sequence[float]], float] = statistics.median,
) -> dict[str, float]:
    """Measure CPU seconds of each task, interleaved so that a busy machine affects all of them equally.

    Args:
        tasks: tasks by name; each runs once as a warm-up.
        repeats: number of measurements of each task.
        choose: reduces the times of a task to one number.
    """
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            taken[name].append(time.process_time() - start)
    return {name: choose(times) for name, times in taken.items()}


def kept_memory() -> dict[str, str]:
    """Return environment variables that give another program the allocator settings of `keep_memory`."""
    return {"MALLOC_MMAP_THRESHOLD_": str(LARGEST_IN_HEAP), "MALLOC_TRIM_THRESHOLD_": str(NEVER_TRIM)}


def main(run: Callable[[bool], Figures], description: str | None) -> None:
    """Run a benchmark from the command line, print its figures and optionally write them to a file."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="small batches, few repeats")
    options = parser.parse_args()
    figures = run(options.quick)
    for name, numbers in figures.items():
        print(name)
        for key, value in numbers.items():
            print(f"  {key:40s} {value:12.6g}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
