"""Chooses how many worlds step side by side, from a short trial of what memory and throughput allow."""

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
"""Worlds where nothing can be tried."""
GAIN = 1.1
"""How much faster twice the worlds must be to be worth their memory."""
SHARE = 0.25
"""Part of the free memory that one batch may take; learning from it needs several times as much."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trial:
    """What collecting with some number of worlds costs."""

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
    """The number of worlds beyond which collecting gets hardly faster, or memory short.

    The answer depends on the machine and its load, so a run keeps it in its resolved config and never asks
    again. Global random states are left as they were.

    Args:
        make: builds a collector of so many worlds, of a few steps.
        steps: of a batch in the run itself.
        memory: bytes that are free; asked of the system if not given.
        seconds: after which no larger number is tried.
        clock: in seconds.
        candidates: numbers to try, rising.
    """
    budget = SHARE * (free_memory() if memory is None else memory)
    began, best = clock(), None
    with random_state.untouched():
        for num_envs in candidates:
            trial = _try(make, num_envs, steps=steps, clock=clock)
            if trial is None or trial.bytes_per_batch > budget:
                break
            log.info("%d worlds: %.0f frames/s", num_envs, trial.frames_per_second)
            if best is not None and trial.frames_per_second < GAIN * best.frames_per_second:
                break
            best = trial
            if clock() - began > seconds:
                break
    chosen = FALLBACK if best is None else best.num_envs
    log.info("num_envs auto: %d worlds", chosen)
    return chosen


def free_memory() -> int:
    """Bytes of memory that nobody uses."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _try(
    make: Callable[[int], Collector], num_envs: int, *, steps: int, clock: Callable[[], float]
) -> Trial | None:
    """Collect twice, the first time to warm up; None where memory does not suffice."""
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
