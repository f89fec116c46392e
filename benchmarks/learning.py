"""Learning beside its bare matrix products, and the share of iterations, in recipes.

    python -m benchmarks.learning [--recipes graphwalk-ppo,hex-selfplay] [--repeats 3] [--json FILE] [--quick]

One batch of a recipe is collected and learnt from again and again. The products of one `learn`, forward and
backward, are recorded by their shapes and repeated alone, on random numbers: what learning would take if
all else were free. CPU-seconds of one thread, minima of runs in turn; attention runs as it does in a run, in
C where it can. `EDGEWISE_NATIVE=0` measures it in torch.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from benchmarks.program import cpu_seconds
from torch.utils._python_dispatch import TorchDispatchMode

from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.terminal.machine import keep_memory

RECIPES = ("graphwalk-ppo", "swarm-mappo-dense", "queueing-family-ppo", "hex-selfplay")
PRODUCTS = {
    torch.ops.aten.mm.default: (0, 1),
    torch.ops.aten.addmm.default: (1, 2),
    torch.ops.aten.bmm.default: (0, 1),
    torch.ops.aten.baddbmm.default: (1, 2),
}
"""Operations that are products, and the places of their factors."""


class Recorded(TorchDispatchMode):
    """Counts products by shapes and strides of their factors."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[tuple[Any, ...]] = Counter()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function in PRODUCTS:
            factors = [args[place] for place in PRODUCTS[function]]
            self.found[tuple((tuple(each.shape), each.stride()) for each in factors)] += 1
        return function(*args, **(kwargs or {}))


def products(learn: Callable[[], object]) -> Callable[[], None]:
    """Return a function that repeats the products of `learn`, without anything else."""
    with Recorded() as recorded:
        learn()
    pairs = [
        (count, [torch.empty_strided(shape, stride).normal_() for shape, stride in factors])
        for factors, count in recorded.found.items()
    ]

    def repeat() -> None:
        for count, (one, other) in pairs:
            for _ in range(count):
                torch.matmul(one, other)

    return repeat


def measure(name: str, *, repeats: int) -> dict[str, float]:
    """Measure the parts of an iteration of a recipe."""
    builder = Builder(load_config(name))
    algorithm, collector = builder.algorithm, builder.collector
    batch = collector.collect()
    began = time.process_time()
    batch = collector.collect()
    collecting = time.process_time() - began

    def learn() -> None:
        algorithm.learn(batch)

    learn()
    found = cpu_seconds({"learning": learn, "products": products(learn)}, repeats, choose=min)
    iteration = collecting + found["learning"]
    return {
        "collecting, s": collecting,
        "learning, s": found["learning"],
        "products, s": found["products"],
        "learning over products": found["learning"] / found["products"],
        "share of learning": found["learning"] / iteration,
        "frames per CPU-s": batch.numel() / iteration,
    }


def main() -> None:
    """Measure the recipes and print their figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipes", default=",".join(RECIPES), help="names, separated by commas")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, of which the shortest counts")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="the first recipe, once")
    options = parser.parse_args()
    names = options.recipes.split(",")[: 1 if options.quick else None]
    torch.set_num_threads(1)
    keep_memory()
    figures = {}
    for name in names:
        figures[name] = measure(name, repeats=1 if options.quick else options.repeats)
        print(name, " ".join(f"{key} {value:.4g};" for key, value in figures[name].items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
