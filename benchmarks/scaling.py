"""Frames per second of two processes against one, with the batch kept and with the worlds of each kept.

    python -m benchmarks.scaling [--recipes NAME ...] [--processes 2] [--repeats 3] [--resumed]

Each figure comes from the command `edgewise train`, timed from batch to batch, after the first batches; with
--resumed, from `edgewise resume`, after `edgewise train` has ended with those first batches. Runs
of one and of several processes alternate, and the median over repeats is shown. *strong* keeps every setting,
so each of n processes has 1/n of the work. *weak* multiplies `num_envs` and `minibatch_size` by n, so each
has as much as the one alone; off-policy runs then make as many updates for n times the frames. *reduce* is
the time of one averaging of all gradients, alone. *CPU* is the same ratio by the CPU time of one process,
without the time that it waits: a machine with a free core for each process cannot exceed it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from edgewise.experiments.load import load_config
from edgewise.scale.processes.barrier import shared_by
from edgewise.scale.processes.ranks import RENDEZVOUS
from edgewise.training.callbacks import Callback

FILE = "EDGEWISE_STOPWATCH"
RECIPES: dict[str, dict[str, Any]] = {
    "swarm-mappo": {"batches": 8, "skipped": 2},
    "marine-ac-iqn": {"batches": 24, "skipped": 8, "algorithm.learning_starts": 4096},
}
"""Batches that are timed, those before them that are not, and settings of the runs."""
REDUCTIONS = 300


class Stopwatch(Callback):
    """Writes frames, wall time and CPU time at every batch to a file; a logger on the command line."""

    def on_batch(self, frames: int, metrics: Any) -> None:  # noqa: ARG002 - the signature of callbacks
        with Path(os.environ[FILE]).open("a") as file:
            file.write(f"{frames} {time.monotonic()} {time.process_time()}\n")


def frames_per_second(
    recipe: str, *, processes: int, factor: int, resumed: bool = False
) -> tuple[float, float]:
    """Train a few batches and return the frames per second, and per CPU second of one process.

    Args:
        recipe: name of a recipe.
        processes: that train together.
        factor: multiplies the size of a batch.
        resumed: whether the batches that are timed are those of a resumed run.
    """
    chosen = dict(RECIPES[recipe])
    batches, skipped = chosen.pop("batches"), chosen.pop("skipped")
    config = load_config(recipe)
    worlds = config.training.num_envs * factor
    # Two more: the last batch of a run is evaluated, which takes another time in each run, and the first
    # one of a resumed run ends after its start.
    begun, total = (
        number * worlds * config.training.rollout_length for number in (skipped, skipped + batches + 2)
    )
    settings = {
        **chosen,
        "processes": processes,
        "training.num_envs": worlds,
        "training.total_frames": begun if resumed else total,
        "algorithm.minibatch_size": config.algorithm.minibatch_size * factor,
        "evaluation.every": "none",
        "evaluation.episodes": 2,
        "evaluation.stages": "[]",
        "checkpoint.every": "none",
        "checkpoint.minutes": "none",
        "logging.tensorboard": "false",
    }
    if hasattr(config.algorithm, "updates_per_transition"):
        settings["algorithm.updates_per_transition"] = config.algorithm.updates_per_transition / factor
    with tempfile.TemporaryDirectory() as place:
        flags = [f"--{name}={value}" for name, value in settings.items()]
        commands = [["train", recipe, f"--out={place}/run", *flags]]
        if resumed:
            commands.append(["resume", f"{place}/run", f"--total-frames={total}"])
        for command in commands:
            subprocess.run(
                [
                    *(sys.executable, "-m", "edgewise.cli", *command),
                    f"--logger={Path(__file__).resolve()}:Stopwatch",
                ],
                env={**os.environ, FILE: f"{place}/times", "OMP_NUM_THREADS": "1"},
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        rows = [list(map(float, line.split())) for line in Path(f"{place}/times").read_text().splitlines()]
    frames, wall, cpu = (last - first for last, first in zip(rows[-2], rows[-batches - 2], strict=True))
    return frames / wall, frames / cpu


def reduction_seconds(parameters: int, *, processes: int) -> float:
    """Return the seconds of one averaging of gradients of so many parameters."""
    with tempfile.TemporaryDirectory() as place:
        shared = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "WORLD_SIZE": str(processes),
            "GLOO_SOCKET_IFNAME": "lo",
            RENDEZVOUS: f"file://{place}/meeting",
        }
        command = [sys.executable, "-m", "benchmarks.scaling", "--reduce", str(parameters)]
        with shared_by(processes) as descriptors:
            started = [
                subprocess.Popen(
                    command,
                    env={**shared, "RANK": str(rank), **own.environment},
                    pass_fds=own.all,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for rank, own in enumerate(descriptors)
            ]
        return max(float(process.communicate()[0]) for process in started)


def reduce(parameters: int) -> float:
    """Average gradients repeatedly, as one of several processes; return the seconds of each time."""
    import torch

    from edgewise.scale.processes.group import this_group

    torch.set_num_threads(1)
    group, size = this_group(), max(1, parameters // 20)
    pieces = [torch.nn.Parameter(torch.zeros(size)) for _ in range(20)]
    for piece in pieces:
        piece.grad = torch.ones(size)
    began = time.perf_counter()
    for number in range(REDUCTIONS + 20):
        if number == 20:
            began = time.perf_counter()
        group.average_gradients(pieces)
    return (time.perf_counter() - began) / REDUCTIONS


def measure(recipe: str, *, processes: int, repeats: int, resumed: bool) -> dict[str, Any]:
    """Measure one recipe, alternating between one process and several."""
    from edgewise.experiments.build import Builder
    from edgewise.experiments.sizes import parameters_of

    cases = {"one": (1, 1), "strong": (processes, 1), "weak": (processes, processes)}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, (count, factor) in cases.items():
            found[name].append(frames_per_second(recipe, processes=count, factor=factor, resumed=resumed))
    median, by_cpu = (
        {name: statistics.median(value[kind] for value in values) for name, values in found.items()}
        for kind in (0, 1)
    )
    parameters = sum(
        each.numel() for each in parameters_of(Builder(load_config(recipe), num_envs=2).algorithm)
    )
    return {
        "recipe": recipe,
        "processes": processes,
        "resumed": resumed,
        "frames_per_second": median,
        "all": found,
        "strong": median["strong"] / median["one"],
        "weak": median["weak"] / median["one"],
        "strong_cpu": by_cpu["strong"] / by_cpu["one"],
        "weak_cpu": by_cpu["weak"] / by_cpu["one"],
        "parameters": parameters,
        "bytes": 4 * parameters,
        "reduction_ms": 1000 * reduction_seconds(parameters, processes=processes),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--processes", type=int, default=2, help="processes that are compared with one (2)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each kind (3)")
    parser.add_argument("--resumed", action="store_true", help="time runs that are resumed")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--reduce", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reduce is not None:
        print(reduce(options.reduce))
        return 0
    results = []
    headings = ("one", "strong", "", "CPU", "weak", "", "CPU", "gradient", "reduce")
    print(f"{'recipe':16}" + "".join(f"{heading:>10}" for heading in headings))
    for recipe in options.recipes:
        found = measure(recipe, processes=options.processes, repeats=options.repeats, resumed=options.resumed)
        results.append(found)
        speed = found["frames_per_second"]
        cells = [f"{speed['one']:,.0f}"]
        for kind in ("strong", "weak"):
            cells += [f"{speed[kind]:,.0f}", f"{found[kind]:.2f}x", f"{found[f'{kind}_cpu']:.2f}x"]
        cells += [f"{found['bytes'] / 1e3:,.0f} kB", f"{found['reduction_ms']:.2f} ms"]
        print(f"{recipe:16}" + "".join(f"{cell:>10}" for cell in cells), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
