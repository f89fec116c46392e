"""What workers on a Ray cluster cost: bytes and CPU time of a batch, and frames per second with one and two.

    python -m benchmarks.workers [--recipes swarm-mappo marine-ac-iqn] [--batches 8]

CPU seconds of a batch are measured in one process: what a worker spends to collect it (*collect*), and what
the learner spends to pack and join messages (*exchange*) and to learn (*learn*). From these follow the frames
per second of a worker, the bound of the learner, `frames / (exchange + learn)`, and the number of workers
that reaches it. With `--wall`, also the frames per second of wall time with workers on this machine, which
share its cores with the learner, and the learner's CPU seconds to collect with real ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from edgewise.config.run import AnyRun, RayConfig
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.scale.workers.local import LocalWorkers
from edgewise.scale.workers.message import size
from edgewise.scale.workers.pool import RayWorkers
from edgewise.scale.workers.sharding import with_workers
from edgewise.scale.workers.worker import Blueprint

RECIPES: dict[str, dict[str, Any]] = {
    "swarm-mappo": {},
    "marine-ac-iqn": {"algorithm.learning_starts": 1, "evaluation.stages": []},
    "hex-expert": {},
}
MANY = 8
"""Workers with which the cost of a call is found: that of their calls, less that of one with all worlds."""
CPUS = 0.01
"""CPUs that a worker asks for, so that any number fits on this machine."""


class Stopwatch:
    """Adds up the CPU seconds of this process by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str, function: Callable[[], Any]) -> Any:
        """Return what a function returns, and add its time."""
        began = time.process_time()
        found = function()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - began
        return found


class Watched(LocalWorkers):
    """Workers in this process that count bytes and the time of collecting."""

    def __init__(self, blueprint: Blueprint, watch: Stopwatch) -> None:
        super().__init__(blueprint)
        self.watch, self.bytes = watch, dict[str, int]()

    def submit(self, verb: str, order: Any, call: Any, *, first: bool = False) -> int:
        """Do a call, and count the bytes of all messages."""
        number: int = self.watch(
            "collect", lambda: super(Watched, self).submit(verb, order, call, first=first)
        )
        reply = self._replies[number]
        batch = sum(each.nbytes for name, each in reply["arrays"].items() if name.startswith("batch/"))
        self.bytes = {"weights": size(order), "state": size(call), "batch": batch}
        return number


def config_of(recipe: str, workers: int, **settings: Any) -> AnyRun:
    chosen = {**RECIPES[recipe], "workers": workers, "ray.cpus": CPUS, **settings}
    return load_config(recipe, keywords=chosen)


def timed(recipe: str, workers: int, batches: int) -> tuple[dict[str, float], dict[str, int]]:
    """Return the CPU seconds of a batch by what they are spent on, and the bytes of one worker's messages."""
    config, watch = config_of(recipe, workers), Stopwatch()
    watched = Watched(Blueprint.of(config, num_envs=config.training.num_envs // workers), watch)
    parts = with_workers(Builder(config).parts(), config, workers=watched)
    for number in range(batches + 1):
        if number == 1:
            watch.seconds.clear()
        batch = watch("all", parts.rollout.collect)
        watch("learn", lambda batch=batch: parts.algorithm.learn(batch))
    each = {name: value / batches for name, value in watch.seconds.items()}
    return {**each, "exchange": each["all"] - each["collect"]}, watched.bytes


def costs(recipe: str, batches: int) -> dict[str, Any]:
    """Measure bytes and CPU seconds of a batch."""
    config = config_of(recipe, 1)
    frames = config.training.num_envs * config.training.rollout_length
    (each, sizes), (shared, _) = timed(recipe, 1, batches), timed(recipe, MANY, batches)
    exchange = each["exchange"]
    bound = frames / (exchange + each["learn"])
    alone = frames / each["collect"]
    return {
        "recipe": recipe,
        "frames": frames,
        "bytes": sizes,
        "bytes_per_frame": sizes["batch"] / frames,
        "cpu_seconds_of_a_call": max(0.0, shared["exchange"] - exchange) / (MANY - 1),
        "cpu_seconds": {"collect": each["collect"], "exchange": exchange, "learn": each["learn"]},
        "frames_per_second_of_a_worker": alone,
        "bound_of_the_learner": bound,
        "workers_at_the_bound": bound / alone,
    }


def measured(recipe: str, batches: int) -> dict[str, tuple[float, float]]:
    """Measure frames per second of wall time, and the learner's CPU seconds to collect a batch."""
    found = {}
    for workers, staleness in ((0, 0), (1, 0), (2, 0), (2, 1)):
        config = config_of(recipe, workers, **{"ray.max_staleness": staleness})
        parts = Builder(config).parts()
        running = None
        if workers:
            share = config.training.num_envs // workers
            running = RayWorkers(
                Blueprint.of(config, num_envs=share), count=workers, settings=RayConfig(cpus=CPUS)
            )
            while len(running.pids) < workers:
                running._step()
            parts = with_workers(parts, config, workers=running)
        frames = config.training.num_envs * config.training.rollout_length
        watch = Stopwatch()
        for number in range(batches + 2):
            if number == 2:
                began = time.perf_counter()
                watch.seconds.clear()
            parts.algorithm.learn(watch("collect", parts.rollout.collect))
        name = f"{workers} workers" + (f", staleness {staleness}" if staleness else "")
        wall = time.perf_counter() - began
        found[name] = (frames * batches / wall, watch.seconds["collect"] / batches)
        if running is not None:
            running.close()
    return found


def store_seconds(megabytes: float) -> dict[str, float]:
    """Return the seconds to take a batch of so many bytes from the object store of Ray."""
    from edgewise.scale.workers.cluster import connect

    ray, _ = connect(RayConfig(), workers=1)
    arrays = {str(index): torch.rand(int(megabytes * 2**20 / 4 / 20)).numpy() for index in range(20)}
    reference = ray.put({"form": json.dumps({"skeleton": {"map": {}}, "views": {}}), "arrays": arrays})
    ray.get(reference)
    began = time.process_time()
    for _ in range(50):
        ray.get(reference)
    found = (time.process_time() - began) / 50
    ray.shutdown()
    return {"megabytes": megabytes, "get_ms": 1000 * found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--batches", type=int, default=8, help="batches that are measured (8)")
    parser.add_argument("--wall", action="store_true", help="also measure wall time with workers of Ray")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = [costs(recipe, options.batches) for recipe in options.recipes]
    for result in results if options.wall else ():
        result["measured"] = measured(result["recipe"], options.batches)
    store = store_seconds(15.8)
    if options.json:
        print(json.dumps({"recipes": results, "store": store}))
        return 0
    for result in results:
        print(_table(result))
    print(f"taking {store['megabytes']} MB from the object store: {store['get_ms']:.2f} ms of CPU")
    return 0


def _table(result: dict[str, Any]) -> str:
    seconds = ", ".join(f"{name} {value:.3f} s" for name, value in result["cpu_seconds"].items())
    sizes = ", ".join(f"{name} {value / 1e6:.3f} MB" for name, value in result["bytes"].items())
    frame = f"{result['bytes_per_frame']:,.0f} bytes"
    lines = [
        f"{result['recipe']}: a batch has {result['frames']:,} frames of {frame}",
        f"  messages: {sizes}",
        f"  CPU of a batch: {seconds}; {1000 * result['cpu_seconds_of_a_call']:.1f} ms for each further call",
        f"  a worker: {result['frames_per_second_of_a_worker']:,.0f} frames/s; the learner: at most "
        f"{result['bound_of_the_learner']:,.0f}, with {result['workers_at_the_bound']:.1f} workers",
    ]
    for name, (wall, own) in result.get("measured", {}).items():
        rate = f"{wall:,.0f} frames/s of wall time"
        lines.append(f"  {name}: {rate}; the learner spends {own:.3f} s of CPU to collect a batch")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
