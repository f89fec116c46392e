"""Time of a decision on conflict graphs of 10 to 500 links: the heaviest maximal set from given logits.

    python -m benchmarks.decisions

Prints the states of the widest layer of the diagram, CPU-milliseconds per decision in batches of 1 and of 32
worlds, of the mode and of a sample with its log-probability, and the same for the exact solver of graphs that
are too wide for a diagram.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from edgewise.systems.queueing.graphs import conflict_graphs
from edgewise.systems.queueing.models.diagram_set import SetDiagrams
from edgewise.systems.queueing.models.set_tables import set_tables

GRAPHS = (
    "line10,line30,line100,line500,ring60,grid6x6,grid10x10,star20,tree127,"
    "barabasi20,barabasi50,barabasi100,barabasi500"
)


def main() -> None:
    """Print one line for each graph."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", default=GRAPHS)
    for name in parser.parse_args().graphs.split(","):
        adjacency = conflict_graphs((name,)).adjacency
        start = time.process_time()
        tables = set_tables(adjacency, max_sets=0)
        built = time.process_time() - start
        batches = (1, 32) if isinstance(tables, SetDiagrams) else (1,)
        parts = [f"{name}: {type(tables).__name__}, prepared in {built:.2f} CPU-s"]
        if isinstance(tables, SetDiagrams):
            diagrams = tables.diagrams
            widest = max(diagrams.layer(number).shape[1] for number in range(diagrams.depth))
            parts.append(f"{widest} states")
        for worlds in batches:
            generator = torch.Generator().manual_seed(0)
            logits = 5 * torch.rand(worlds, adjacency.shape[-1], generator=generator)
            allowed = torch.rand(logits.shape, generator=generator) < 0.8
            graph = torch.zeros(worlds, dtype=torch.int64)

            def distribution() -> torch.distributions.Distribution:
                return tables.distribution(logits, allowed, graph=graph)  # noqa: B023

            def sample() -> None:
                found = distribution()
                found.log_prob(found.sample())

            mode, drawn = _milliseconds(lambda: distribution().mode), _milliseconds(sample)
            parts.append(f"{worlds} worlds: mode {mode:.3g} ms, sample {drawn:.3g} ms")
        print("; ".join(parts), flush=True)


def _milliseconds(call: Callable[[], object]) -> float:
    """Return the CPU time of a call, the least of three."""
    found = []
    with torch.no_grad():
        for _ in range(3):
            start = time.process_time()
            call()
            found.append(time.process_time() - start)
    return 1000 * min(found)


if __name__ == "__main__":
    main()
