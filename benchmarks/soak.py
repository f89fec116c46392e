"""Train small runs for very many batches and measure whether memory or open files grow.

    python -m benchmarks.soak --minutes 120 --batches 100000

Three runs at once, each in a process of its own until one of the limits is reached: marine with a full
replay buffer, hex against a pool of snapshots, and graphwalk. A batch is one step of two worlds and the
updates that it pays for, so that there are many.

A leak is what is never given back, so what decides is memory in use: the bytes that the program holds from
the C allocator and the blocks that it holds from Python's. Resident memory is shown as well; it also grows
where the allocator keeps free memory in pieces. Slopes are of the second half of each run, from the means of
blocks, with a 95 % interval. SIGINT or SIGTERM ends the runs early, and the slopes up to there are reported.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import t as student

from edgewise.config.errors import Interrupted
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.runs.folder import RunFolder
from edgewise.terminal.machine import LARGEST_IN_HEAP, NEVER_TRIM
from edgewise.training.callbacks import Callback, StopTraining
from edgewise.training.trainer import Trainer

BLOCKS = 20
SAMPLES = 500
COMMON = {
    "training.num_envs": 2,
    "training.rollout_length": 1,
    "evaluation.episodes": 2,
    "evaluation.baselines": [],
    "logging.tensorboard": False,
    "logging.replays": 0,
    "checkpoint.keep_last": 2,
}
RUNS: dict[str, dict[str, Any]] = {
    "marine-quick": {
        "algorithm.replay_size": 64,
        "algorithm.learning_starts": 8,
        "algorithm.minibatch_size": 8,
        "model.hidden": 8,
        "env.max_steps": 20,
    },
    "hex-selfplay": {
        "training.curriculum": [],
        "env.size": 3,
        "evaluation.settings": {"size": 3},
        "algorithm.pool_share": 0.5,
        "algorithm.pool_size": 4,
        "algorithm.snapshot_every": 50,
        "algorithm.epochs": 1,
        "algorithm.minibatch_size": 4,
        "model.encoder.hidden": 8,
        "model.encoder.layers": 1,
        "model.encoder.heads": 2,
    },
    "graphwalk-ppo": {
        "training.curriculum": [],
        "env.num_nodes": [4, 6],
        "algorithm.epochs": 1,
        "algorithm.minibatch_size": 4,
        "model.encoder.hidden": 8,
        "model.encoder.layers": 1,
        "model.encoder.heads": 2,
    },
}


class Mallinfo(ctypes.Structure):
    """What glibc's `mallinfo2` returns."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
            "keepcost",
        )
    )  # fmt: skip


class Sample(NamedTuple):
    """What a process holds at one moment.

    Attributes:
        batches: trained so far.
        resident: bytes of physical memory.
        in_use: bytes held from the C allocator; tensors are among them, small Python objects are not.
        blocks: held from Python's allocator.
        files: that are open.
    """

    batches: int
    resident: int
    in_use: int
    blocks: int
    files: int

    @classmethod
    def now(cls, batches: int) -> Sample:
        """Measure this process without garbage in cycles and without names in the cache of attributes.

        That cache has 4,096 places, and names that C code looks up fill it slowly over thousands of batches.
        """
        gc.collect()
        sys._clear_type_cache()
        call = ctypes.CDLL(None).mallinfo2
        call.restype = Mallinfo
        heap = call()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            batches,
            pages * os.sysconf("SC_PAGE_SIZE"),
            heap.uordblks + heap.hblkhd,
            sys.getallocatedblocks(),
            len(os.listdir("/proc/self/fd")),
        )


TUNABLES = ":".join(
    f"glibc.malloc.{name}={value}"
    for name, value in {
        "tcache_count": 0,
        "mmap_threshold": LARGEST_IN_HEAP,
        "trim_threshold": NEVER_TRIM,
    }.items()
)
"""The allocator as commands set it, but without its cache per thread, whose free blocks it counts as in use.

It reads this when a process starts.
"""
MEASURED = ("in_use", "blocks", "resident", "files")


class Meter(Callback):
    """Samples what the process holds, into a table that has its size from the start.

    Args:
        batches: of the whole run.
        deadline: on the monotonic clock, at which the run is stopped.
        record: a file to which every sample is appended as it is taken.
    """

    def __init__(self, batches: int, deadline: float, record: Path | None = None) -> None:
        self._every = max(1, batches // SAMPLES)
        self._deadline = deadline
        self._record = record
        self._table = np.zeros((batches // self._every + 1, len(Sample._fields)), np.int64)
        self._taken = 0

    def on_batch(self, frames: int, metrics: Any) -> None:  # noqa: ARG002 - batches count
        number = int(metrics["iteration"])
        if number % self._every:
            return
        sample = Sample.now(number)
        self._table[self._taken] = sample
        self._taken += 1
        if self._record is not None:
            with self._record.open("a") as file:
                file.write(",".join(map(str, sample)) + "\n")
        if time.monotonic() > self._deadline:
            raise StopTraining("the time is over")

    @property
    def columns(self) -> dict[str, list[int]]:
        """All samples so far, by what was measured."""
        return dict(zip(Sample._fields, self._table[: self._taken].T.tolist(), strict=True))


def slope(x: list[int], y: list[int]) -> dict[str, float]:
    """Return the slope of the second half of a series with its 95 % interval, from the means of blocks."""
    half = len(x) // 2
    count = min(BLOCKS, len(x) - half)
    if count < 3:
        raise ValueError(f"{len(x)} samples are too few for a slope; let the run go on for longer")
    blocks = [
        (np.mean(part_x), np.mean(part_y))
        for part_x, part_y in zip(
            np.array_split(np.array(x[half:], float), count),
            np.array_split(np.array(y[half:], float), count),
            strict=True,
        )
    ]
    at, value = np.array(blocks).T
    centred = at - at.mean()
    found = float(centred @ value / (centred @ centred))
    rest = value - value.mean() - found * centred
    error = float(np.sqrt(rest @ rest / max(count - 2, 1) / (centred @ centred)))
    margin = float(student.ppf(0.975, max(count - 2, 1))) * error
    return {"slope": found, "low": found - margin, "high": found + margin}


def soak(
    recipe: str, *, batches: int, minutes: float, seed: int = 0, record: Path | None = None
) -> dict[str, Any]:
    """Train one recipe in this process, and return the slopes per 1,000 batches."""
    torch.set_num_threads(1)
    frames = COMMON["training.num_envs"] * COMMON["training.rollout_length"]
    settings = {
        **COMMON,
        **RUNS[recipe],
        "seed": seed,
        "training.total_frames": frames * batches,
        "evaluation.every": frames * max(1, batches // 100),
        "checkpoint.every": frames * max(1, batches // 100),
        "logging.every": max(1, batches // 1000),
    }
    config = load_config(recipe, keywords=settings)
    began = time.process_time()
    meter = Meter(batches, time.monotonic() + 60 * minutes, record)
    with tempfile.TemporaryDirectory() as place, contextlib.suppress(Interrupted):
        folder = RunFolder.create(Path(place) / "run", config.to_plain())
        with folder.locked():
            Trainer(config, Builder(config).parts(), folder, callbacks=[meter]).run()
    columns = meter.columns
    last = {name: values[-1] for name, values in columns.items()}
    slopes = {name: slope(columns["batches"], columns[name]) for name in MEASURED}
    return {
        "recipe": recipe,
        "cpu_seconds": time.process_time() - began,
        **last,
        "per_1000": {
            name: {key: 1000 * value for key, value in found.items()} for name, found in slopes.items()
        },
        "grows": [name for name in MEASURED if grows(slopes[name], last[name], batches)],
    }


def grows(found: dict[str, float], level: float, batches: int) -> bool:
    """Return whether a slope is above zero beyond its interval and would add 1 % in `batches` batches."""
    return found["low"] > 0 and found["slope"] * batches > 0.01 * level


@dataclass(frozen=True)
class Child:
    """A soak in a process of its own, out of reach of the terminal's signals.

    Args:
        recipe: the run.
        process: prints its results as JSON.
    """

    recipe: str
    process: subprocess.Popen[str]

    @classmethod
    def start(cls, recipe: str, options: argparse.Namespace) -> Child:
        """Start the soak of one recipe."""
        limits = {"batches": options.batches, "minutes": options.minutes, "seed": options.seed}
        arguments = [f"--{name}={value}" for name, value in limits.items()]
        if options.record:
            arguments.append(f"--record={options.record}")
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.soak", "--recipe", recipe, *arguments],
            env=os.environ | {"GLIBC_TUNABLES": TUNABLES},
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        return cls(recipe, process)

    def end(self) -> None:
        """Ask the run to stop and to report."""
        self.process.terminate()

    def wait(self) -> dict[str, Any] | None:
        """Return the results, None if the soak failed."""
        text, _ = self.process.communicate()
        return None if self.process.returncode else json.loads(text.splitlines()[-1])


def main() -> int:
    """Soak the runs, all at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=100_000, help="batches of each run (100000)")
    parser.add_argument("--minutes", type=float, default=120.0, help="minutes of each run at most (120)")
    parser.add_argument("--recipe", choices=sorted(RUNS), help="one of them; all if not given")
    parser.add_argument("--seed", type=int, default=0, help="random seed (0)")
    parser.add_argument("--record", type=Path, help="a folder that gets every sample as it is taken")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    if options.record:
        options.record.mkdir(parents=True, exist_ok=True)
    if options.recipe and os.environ.get("GLIBC_TUNABLES") == TUNABLES:
        record = options.record and options.record / f"{options.recipe}.csv"
        limits = {"batches": options.batches, "minutes": options.minutes}
        print(json.dumps(soak(options.recipe, **limits, seed=options.seed, record=record)))
        return 0
    children = [Child.start(recipe, options) for recipe in ([options.recipe] if options.recipe else RUNS)]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: [child.end() for child in children])
    results = [child.wait() for child in children]
    found = [one for one in results if one is not None]
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print_table(found)
    return int(len(found) < len(results) or any(one["grows"] for one in found))


def print_table(found: list[dict[str, Any]]) -> None:
    """Print the level and the slope of everything that was measured, one line for each."""
    print(f"{'recipe':15}{'batches':>9} {'':10}{'at the end':>14}  per 1,000 batches")
    for one in found:
        for name in MEASURED:
            unit, divisor = ("kB", 1000) if name in ("in_use", "resident") else ("", 1)
            by = {key: value / divisor for key, value in one["per_1000"][name].items()}
            level = f"{one[name] / divisor:,.0f} {unit:2}"
            span = f"{by['slope']:9.3f} [{by['low']:.3f}, {by['high']:.3f}]"
            verdict = "GROWS" if name in one["grows"] else "within noise"
            print(f"{one['recipe']:15}{one['batches']:9,} {name:10}{level:>14} {span:30} {verdict}")


if __name__ == "__main__":
    sys.exit(main())
