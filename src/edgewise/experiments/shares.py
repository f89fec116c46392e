"""The share of each process in the worlds, minibatches and data of a run. Never imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgewise.algorithms.config import CloneConfig
from edgewise.algorithms.expert_iteration_config import ExpertIterationConfig
from edgewise.algorithms.off_policy_config import OffPolicyConfig
from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun

SAMPLING = (OffPolicyConfig, CloneConfig, ExpertIterationConfig)
"""Settings of algorithms whose processes each sample an equal part of every minibatch."""
BUFFERS = ("replay_size", "buffer_size")
"""Settings of algorithms that keep this many transitions."""


def refuse_unequal_shares(config: AnyRun) -> None:
    """Raise ConfigError if the processes of a run cannot have equal shares of it."""
    processes, training = config.processes, config.training
    if processes == 1:
        return
    if training.num_envs == "auto":
        raise ConfigError(
            "training.num_envs: auto measures a single process", hint="give a number, or use --processes 1"
        )
    _refuse_remainder("training.num_envs", training.num_envs, processes)
    if isinstance(config.algorithm, SAMPLING):
        _refuse_remainder("algorithm.minibatch_size", config.algorithm.minibatch_size, processes)


def shares(config: AnyRun) -> dict[str, Any]:
    """Return what each process has of a run; empty if there is only one."""
    refuse_unequal_shares(config)
    processes, training = config.processes, config.training
    if processes == 1 or training.num_envs == "auto":
        return {}
    worlds = training.num_envs // processes
    found = {"num_envs": worlds, "frames_per_batch": worlds * training.rollout_length}
    for name in ("minibatch_size", *BUFFERS):
        total = getattr(config.algorithm, name, None)
        if total is not None:
            found[name] = max(1, total // processes)
    return {"processes": processes, "each_process": found}


def refuse_other_processes(folder: Path, *, then: int, now: int) -> None:
    """Raise ConfigError if a run is continued by another number of processes than it began with."""
    if then != now:
        raise ConfigError(
            f"processes: the worlds of {folder} are shared by {then} processes, got {now}",
            hint=f"continue with --processes {then}",
        )


def _refuse_remainder(field: str, total: int, processes: int) -> None:
    if total % processes:
        fewer = total - total % processes
        suited = [str(number) for number in (fewer, fewer + processes) if number > 0]
        raise ConfigError(
            f"{field}: got {total}, which {processes} processes cannot share equally",
            hint=f"use {' or '.join(suited)}, or another number of processes",
        )
