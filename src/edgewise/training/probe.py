"""Choose the number of worlds from a short measurement of throughput and memory."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from tensordict import TensorDictBase

from edgewise.runs.checkpoint import random_state
from edgewise.scale.devices import free_memory

CANDIDATES = tuple(2**power for power in range(3, 13))
FALLBACK = 64
"""Number of worlds if no trial succeeds."""
MIN_SPEEDUP = 1.1
"""Factor by which the throughput must grow for a larger number of worlds to be chosen."""
MEMORY_SHARE = 0.25
"""Part of the free memory that one batch may take on a CPU, where what learning needs is not measured."""
PEAK_SHARE = 0.8
"""Part of the free memory that collecting and learning may take at their peak, where it is measured."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """A run with some number of worlds and a short rollout.

    Args:
        collect: returns the next batch.
        learn: learns from a batch.
    """

    collect: Callable[[], TensorDictBase]
    learn: Callable[[TensorDictBase], object]


@dataclass(frozen=True)
class Trial:
    """Throughput and memory of some number of worlds.

    Args:
        num_envs: number of worlds.
        frames_per_second: of collecting.
        memory_share: bytes that the run needs, as a part of those it may take.
    """

    num_envs: int
    frames_per_second: float
    memory_share: float


class DeviceMemory:
    """Measures the memory of a device.

    Args:
        device: of the run.

    Attributes:
        has_peak: whether the device knows its largest use; only CUDA does.
    """

    def __init__(self, device: torch.device | str) -> None:
        self._device = torch.device(device)
        self.has_peak = self._device.type == "cuda"

    def free(self) -> int:
        """Return the free bytes."""
        return free_memory(self._device)

    def start(self) -> None:
        """Forget the largest use so far."""
        if self.has_peak:
            torch.cuda.reset_peak_memory_stats(self._device)

    def peak(self) -> int:
        """Return the largest use since `start`, in bytes."""
        return int(torch.cuda.max_memory_allocated(self._device))


def choose_num_envs(
    make: Callable[[int], Candidate],
    *,
    steps: int,
    device: torch.device | str = "cpu",
    memory: DeviceMemory | None = None,
    seconds: float = 10.0,
    clock: Callable[[], float] = time.perf_counter,
    candidates: Sequence[int] = CANDIDATES,
) -> int:
    """Return the number of worlds beyond which throughput hardly grows or memory runs out.

    The result depends on the machine and its load; a run therefore stores it in its resolved config. Global
    random states are left unchanged. On a device that measures its memory, each candidate also learns once,
    and what both need at their peak is scaled to the rollout length of the run.

    Args:
        make: builds a candidate of this many worlds, with a short rollout.
        steps: rollout length of the run itself.
        device: of the run.
        memory: measures the memory of the device; made for `device` if not given.
        seconds: time after which no larger number is tried.
        clock: returns the time in seconds.
        candidates: numbers to try, in increasing order.
    """
    memory = DeviceMemory(device) if memory is None else memory
    began, best = clock(), None
    with random_state.untouched():
        for num_envs in candidates:
            trial = _run_trial(make, num_envs, steps=steps, clock=clock, memory=memory)
            if trial is None or trial.memory_share > 1:
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


def _run_trial(
    make: Callable[[int], Candidate],
    num_envs: int,
    *,
    steps: int,
    clock: Callable[[], float],
    memory: DeviceMemory,
) -> Trial | None:
    """Collect twice, the first time to warm up; returns None if memory does not suffice."""
    free = memory.free()
    try:
        memory.start()
        candidate = make(num_envs)
        batch = candidate.collect()
        frames = batch.numel()
        began = clock()
        batch = candidate.collect()
        taken = clock() - began
        longer = num_envs * steps / frames
        if memory.has_peak:
            candidate.learn(batch)
            share = memory.peak() * longer / (PEAK_SHARE * free)
        else:
            share = _bytes(batch) * longer / (MEMORY_SHARE * free)
    except (MemoryError, RuntimeError) as error:
        log.info("%d worlds are too many: %s", num_envs, error)
        return None
    return Trial(num_envs, frames / max(taken, 1e-9), share)


def _bytes(batch: TensorDictBase) -> int:
    leaves = batch.values(include_nested=True, leaves_only=True)
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves)
