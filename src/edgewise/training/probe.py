"""Choose the number of worlds from a short measurement of throughput and memory."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensordict import TensorDictBase

from edgewise.training.checkpoint import random_state
from edgewise.training.parts import Collector

CANDIDATES = tuple(2**power for power in range(3, 13))
FALLBACK = 64
"""Number of worlds if no trial succeeds."""
MIN_SPEEDUP = 1.1
"""Factor by which the throughput must grow for a larger number of worlds to be chosen."""
MEMORY_SHARE = 0.25
"""Part of the free memory that one batch may take; learning from it needs several times as much."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trial:
    """Throughput and memory of collecting with some number of worlds."""

    num_envs: int
    frames_per_second: float
    bytes_per_batch: int


def choose_num_envs(
    make: Callable[[int], Collector],
    *,
    steps: int,
    memory: int | None = None,
    seconds: float = 10.0,
    clock: Callable[[], float] = time.perf_counter,
    candidates: Sequence[int] = CANDIDATES,
) -> int:
    """Return the number of worlds beyond which throughput hardly grows or memory runs out.

    The result depends on the machine and its load; a run therefore stores it in its resolved config. Global
    random states are left unchanged.

    Args:
        make: builds a collector of this many worlds, with a short rollout.
        steps: rollout length of the run itself.
        memory: free bytes; read from the system if not given.
        seconds: time after which no larger number is tried.
        clock: returns the time in seconds.
        candidates: numbers to try, in increasing order.
    """
    budget = MEMORY_SHARE * (free_memory() if memory is None else memory)
    began, best = clock(), None
    with random_state.untouched():
        for num_envs in candidates:
            trial = _run_trial(make, num_envs, steps=steps, clock=clock)
            if trial is None or trial.bytes_per_batch > budget:
                break
            log.info("%d worlds: %.0f frames/s", num_envs, trial.frames_per_second)
            if best is not None and trial.frames_per_second < MIN_SPEEDUP * best.frames_per_second:
                break
            best = trial
            if clock() - began > seconds:
                break
    chosen = FALLBACK if best is None else best.num_envs
    log.info("num_envs auto: %d worlds", chosen)
    return chosen


def free_memory() -> int:
    """Return the free bytes of memory."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _run_trial(
    make: Callable[[int], Collector], num_envs: int, *, steps: int, clock: Callable[[], float]
) -> Trial | None:
    """Collect twice, the first time to warm up; returns None if memory does not suffice."""
    try:
        collector = make(num_envs)
        frames = collector.collect().numel()
        began = clock()
        batch = collector.collect()
        taken = clock() - began
    except (MemoryError, RuntimeError) as error:
        log.info("%d worlds are too many: %s", num_envs, error)
        return None
    each = _bytes(batch) / frames
    return Trial(num_envs, frames / max(taken, 1e-9), int(each * num_envs * steps))


def _bytes(batch: TensorDictBase) -> int:
    leaves = batch.values(include_nested=True, leaves_only=True)
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves)
