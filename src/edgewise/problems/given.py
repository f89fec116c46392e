"""Turn instances of files into worlds of their environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import DataError
from edgewise.envs.registry import make_env
from edgewise.problems.files import Links, Plane, Shop, read_links, read_plane, read_shop

GRAPHS = ("vertex_cover", "independent_set", "max_cut", "coloring")


def read_instance(problem: str, path: Path) -> tuple[Any, TensorDict, float]:
    """Return an environment of one world, the state in which the instance of a file begins, and its unit.

    Costs of the environment times the unit are those of the file.

    Raises:
        DataError: the file cannot be used, or the problem has no file format.
    """
    if problem in ("tsp", "cvrp"):
        return _in_the_plane(problem, read_plane(path), path)
    if problem == "job_shop":
        return _shop(read_shop(path))
    if problem in GRAPHS:
        return _graph(problem, read_links(path))
    known = ", ".join(("tsp", "cvrp", "job_shop", *GRAPHS))
    raise DataError(f"{path}: {problem} reads no files; {known} do")


def _in_the_plane(problem: str, plane: Plane, path: Path) -> tuple[Any, TensorDict, float]:
    if (problem == "cvrp") != bool(plane.demands):
        found, other = ("demands", "cvrp") if plane.demands else ("no demands", "tsp")
        raise DataError(f"{path}: it has {found}, so it is an instance of {other} and not of {problem}")
    place = torch.tensor(plane.places, dtype=torch.float32)
    low = place.amin(0)
    unit = float((place.amax(0) - low).max()) or 1.0
    count = len(place)
    settings: dict[str, Any] = {"num_cities": count}
    if problem == "cvrp":
        settings = {"num_customers": count - 1, "capacity": max(plane.capacity, 9.0)}
    env = make_env(problem, num_envs=1, **settings)
    changes = {"place": (place - low) / unit}
    if problem == "cvrp":
        changes["demand"] = torch.tensor(plane.demands) / plane.capacity
    return env, _state(env, changes), unit


def _shop(shop: Shop) -> tuple[Any, TensorDict, float]:
    jobs, machines = len(shop.machines), len(shop.machines[0])
    env = make_env("job_shop", num_envs=1, num_jobs=jobs, num_machines=machines)
    sizes = (torch.tensor([jobs]), torch.tensor([machines]))
    start = env.start(torch.tensor([shop.durations]), torch.tensor([shop.machines]), *sizes)
    return env, _state(env, {name: value[0] for name, value in start.items()}), 1.0


def _graph(problem: str, links: Links) -> tuple[Any, TensorDict, float]:
    adjacent = torch.zeros(1, links.num_nodes, links.num_nodes, dtype=torch.bool)
    for one, other in links.edges:
        adjacent[0, one, other] = adjacent[0, other, one] = True
    settings: dict[str, Any] = {"weighted": False} if problem == "vertex_cover" else {}
    env = make_env(problem, num_envs=1, num_nodes=links.num_nodes, family="er", density=1.0, **settings)
    state = env.begin(env.with_edges(torch.ones(1, links.num_nodes, dtype=torch.bool), adjacent))
    return env, _state(env, {name: value[0] for name, value in state.items()}), 1.0


def _state(env: Any, changes: dict[str, Tensor]) -> TensorDict:
    """Return the state of a new world with some entries replaced."""
    state: TensorDict = env.new_worlds(1)["state"].clone()
    return state.update({name: value.unsqueeze(0) for name, value in changes.items()})
