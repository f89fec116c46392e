"""Records on which graphs a run was trained, and refuses changed graphs and evaluation on trained ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import CheckpointError, DataError
from edgewise.config.model import Config
from edgewise.config.run import AnyRun
from edgewise.envs.graphs_config import GraphsConfig, with_split
from edgewise.evaluation.instances import changed
from edgewise.graphs import in_memory as given
from edgewise.graphs.datasets import read_graphs
from edgewise.graphs.graph_set import ALL, GraphSet
from edgewise.graphs.graph_store import dump_graph_set
from edgewise.runs import durable

RECORD = "graphs.json"
FORMAT = "edgewise-graphs-record/1"


def graphs_of(env: Config) -> GraphSet | None:
    """Return the graphs that an environment takes its instances from; None if it is not given any."""
    if not isinstance(env, GraphsConfig) or env.graphs is None:
        return None
    return read_graphs(env.graphs, seed=env.split_seed)


def write_graphs(config: AnyRun, folder: Path) -> None:
    """Write which graphs each split has, and graphs that were given in Python themselves."""
    found = graphs_of(config.env)
    if found is None:
        return
    if given.is_given(config.env.graphs):
        durable.replace_whole(folder / given.FILE, dump_graph_set(found))
    record = {
        "format": FORMAT,
        "source": found.source,
        "trained_on": config.env.split,
        "splits": {split: _part(found, split) for split in (*found.splits, ALL)},
    }
    durable.replace_whole(folder / RECORD, (json.dumps(record, indent=1) + "\n").encode())


def refuse_changed_graphs(config: AnyRun, folder: Path) -> None:
    """Raise CheckpointError if a split has other graphs than when the run began."""
    found, recorded = graphs_of(config.env), _recorded(folder)
    if found is None or recorded is None:
        return
    now = {split: _part(found, split)["sha256"] for split in (*found.splits, ALL)}
    differing = [split for split, part in recorded["splits"].items() if now.get(split) != part["sha256"]]
    if differing:
        raise CheckpointError(
            f"{folder} was trained on other graphs: {found.source} has changed in {', '.join(differing)}",
            hint="restore the graphs, or start a new run",
        )


def refuse_trained_graphs(run_env: Config, settings: Mapping[str, Any], folder: Path | None = None) -> None:
    """Raise DataError if `valid` or `test` of an evaluation has graphs that the run was trained on.

    Args:
        run_env: config of the run's environment.
        settings: how the evaluation differs from it.
        folder: of the run, whose record says what it was trained on; `run_env` itself does if not given.
    """
    env = changed(run_env, with_split(run_env, settings))
    found, split = graphs_of(env), getattr(env, "split", ALL)
    if found is None or split not in ("valid", "test"):
        return
    recorded = None if folder is None else _recorded(folder)
    own = graphs_of(run_env) if recorded is None else None
    trained: set[str] = set()
    if recorded is not None:
        trained.update(recorded["splits"][recorded["trained_on"]]["graphs"])
    elif own is not None:
        trained.update(_part(own, getattr(run_env, "split", ALL))["graphs"])
    seen = [found.labels[number] for number in found.members(split) if found.hashes[number] in trained]
    if seen:
        raise DataError(
            f"{found.source}: {len(seen)} of {len(found.members(split))} graphs of the split {split} "
            f"were trained on, such as {seen[0]}",
            hint="evaluate on graphs that are new to the policy, or name the split train or all",
        )


def _part(found: GraphSet, split: str) -> dict[str, Any]:
    hashes = found.hashes
    members = [hashes[number] for number in found.members(split)]
    return {"count": len(members), "sha256": found.fingerprint(split), "graphs": members}


def _recorded(folder: Path) -> dict[str, Any] | None:
    """Return the record of a run folder; None if it has none."""
    file = folder / RECORD
    return read_record(file) if os.path.lexists(file) else None


def read_record(file: Path) -> dict[str, Any]:
    """Read the record of the graphs of a run.

    Raises:
        DataError: it is damaged or something else.
    """
    try:
        record: dict[str, Any] = files.read_json(file)
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']!r} is not {FORMAT!r}")
        trained = record["splits"][record["trained_on"]]["graphs"]
        if not all(isinstance(part["sha256"], str) for part in record["splits"].values()) or not isinstance(
            trained, list
        ):
            raise TypeError("a split has no SHA-256")
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{file} is not a record of graphs: {error!r}") from error
    return record
