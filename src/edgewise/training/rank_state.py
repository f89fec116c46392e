"""What a checkpoint holds of each of several processes, and what only once for all of them.

The parts of the process with rank 0 have plain names. The part `rollout` of rank 1 is called `rank1_rollout`.
Weights and everything else that is equal in all processes are in the part `algorithm` alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewise.algorithms.algorithm import Algorithm
from edgewise.config.errors import CheckpointError
from edgewise.runs.checkpoint import serialise, store, tensor_file
from edgewise.runs.checkpoint.serialise import State
from edgewise.scale.processes.group import Group

OWN = ("algorithm", "data", "rollout", "random", "iteration")
"""Parts of the state that each process has."""
SHARED = ("algorithm", "trainer", "clock")
"""Parts that every process reads."""


def own(state: Mapping[str, State], algorithm: Algorithm, group: Group) -> Mapping[str, State]:
    """Return what this process writes of its state, by the names in a checkpoint.

    Args:
        state: of this process, as if it trained alone.
        algorithm: of this process; its `rank_keys` name the entries of its state that differ between
            processes.
        group: the processes that save together.

    Raises:
        CheckpointError: weights differ between processes.
    """
    if group.size == 1:
        return state
    mine = tuple(state["algorithm"]) if algorithm.rank_keys is None else algorithm.rank_keys
    shared = {name: value for name, value in state["algorithm"].items() if name not in mine}
    digests = group.gather(_digest(shared))
    for rank, digest in enumerate(digests):
        if digest != digests[0]:
            raise CheckpointError(
                f"processes 0 and {rank} no longer have equal weights, so nothing is saved",
                hint="resume from the last checkpoint, on machines of the same kind",
            )
    if group.first:
        return state
    apart = {"algorithm": {name: state["algorithm"][name] for name in mine}}
    apart["iteration"] = state["trainer"]["iteration"]
    return {f"rank{group.rank}_{name}": apart.get(name, state.get(name, {})) for name in OWN}


def load(path: Path, group: Group) -> dict[str, State]:
    """Load the state of this process from a checkpoint, as if it had trained alone.

    Raises:
        CheckpointError: it is damaged, or was saved by another number of processes.
    """
    if group.size == 1:
        state = store.load(path)
        _check_processes(path, state.get("trainer"), group)
        return state
    _check_processes(path, store.load(path, parts=("trainer",))["trainer"], group)
    if group.first:
        return store.load(path, parts=dict.fromkeys((*SHARED, "data", "rollout", "random")))
    names = {name: f"rank{group.rank}_{name}" for name in OWN}
    state = store.load(path, parts=(*SHARED, *names.values()))
    mine: dict[str, Any] = {name: state[stored] for name, stored in names.items()}
    return {
        **{name: state[name] for name in SHARED},
        **{name: mine[name] for name in ("data", "rollout", "random")},
        "algorithm": {**state["algorithm"], **mine["algorithm"]},
        "trainer": {**state["trainer"], "iteration": mine["iteration"]},
    }


def _check_processes(path: Path, trainer: State, group: Group) -> None:
    saved = trainer.get("processes", 1) if isinstance(trainer, Mapping) else 1
    if saved != group.size:
        raise CheckpointError(
            f"checkpoint {path} has the worlds of {saved} processes, and this run has {group.size}",
            hint=f"continue with --processes {saved}",
        )


def _digest(state: State) -> str:
    """Compute the SHA-256 of all tensors and other values of a state."""
    skeleton, tensors = serialise.flatten(state)
    named = {name or "value": tensor for name, tensor in tensors.items()}
    return hashlib.sha256(f"{skeleton!r} {tensor_file.digest_of(named)}".encode()).hexdigest()
