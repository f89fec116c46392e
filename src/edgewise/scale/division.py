"""The share of each process and worker in the worlds, minibatches and data of a run. Never imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgewise.algorithms.config import CloneConfig
from edgewise.algorithms.expert_iteration_config import ExpertIterationConfig
from edgewise.algorithms.off_policy_config import OffPolicyConfig
from edgewise.algorithms.self_play_settings import SelfPlaySettings
from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun

SAMPLING = (OffPolicyConfig, CloneConfig, ExpertIterationConfig)
"""Settings of algorithms whose processes each sample an equal part of every minibatch."""
BUFFERS = ("replay_size", "buffer_size")
"""Settings of algorithms that keep this many transitions."""


def refuse_unequal_shares(config: AnyRun) -> None:
    """Raise ConfigError if the processes or workers of a run cannot have equal shares of it."""
    processes, training = config.processes, config.training
    if config.workers:
        _refuse_workers(config)
    if processes == 1:
        return
    _refuse_remainder("training.num_envs", training.num_envs, processes)
    if isinstance(config.algorithm, SAMPLING):
        _refuse_remainder("algorithm.minibatch_size", config.algorithm.minibatch_size, processes)


def shares(config: AnyRun) -> dict[str, Any]:
    """Return what each process and each worker has of a run; empty if there is only one process."""
    refuse_unequal_shares(config)
    processes, training = config.processes, config.training
    return {**_worker_shares(config), **_process_shares(config, training.num_envs // processes)}


def share_of_worker(config: AnyRun) -> int:
    """Return the worlds of each worker."""
    return config.training.num_envs // config.workers


def _worker_shares(config: AnyRun) -> dict[str, Any]:
    if not config.workers:
        return {}
    worlds = share_of_worker(config)
    found = {"num_envs": worlds, "frames_per_batch": worlds * config.training.rollout_length}
    return {"workers": config.workers, "each_worker": found}


def _process_shares(config: AnyRun, worlds: int) -> dict[str, Any]:
    processes, training = config.processes, config.training
    if processes == 1:
        return {}
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


def _refuse_workers(config: AnyRun) -> None:
    """Raise ConfigError if the workers of a run cannot have equal shares of its worlds."""
    workers, processes, training = config.workers, config.processes, config.training
    _refuse_remainder("training.num_envs", training.num_envs, workers, whom="workers")
    if processes > 1:
        _refuse_remainder("workers", workers, processes)
        if config.cluster.address is None:
            raise ConfigError(
                f"ray.address: {processes} processes need workers of one cluster, and none was given",
                hint="start one with `ray start --head`, and give --ray.address auto",
            )
    if isinstance(config.algorithm, SelfPlaySettings):
        raise ConfigError(
            "workers: games against a pool of earlier policies are played where the run learns",
            hint="use --processes, which every algorithm can",
        )


def _refuse_remainder(field: str, total: int, count: int, *, whom: str = "processes") -> None:
    if total % count:
        fewer = total - total % count
        suited = [str(number) for number in (fewer, fewer + count) if number > 0]
        raise ConfigError(
            f"{field}: got {total}, which {count} {whom} cannot share equally",
            hint=f"use {' or '.join(suited)}, or another number of {whom}",
        )
