"""Speed of the replay buffer: sampling and updating priorities, storing, n-step windows.

    python -m benchmarks.replay [--json FILE] [--quick]

CPU time of one thread, medians of interleaved runs, milliseconds per call at 1M transitions of 279 bytes and
batches of 256. The goals: `sample` and `update` of the tree each under 0.3.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from benchmarks.program import Figures, cpu_seconds, main
from tensordict import TensorDict

from edgewise.data.prioritised import PrioritisedSampler, TablePriorities
from edgewise.data.replay_buffer import ReplayBuffer
from edgewise.data.transitions import Transitions

BATCH, CALLS, SLOTS = 256, 20, 5
Tasks = dict[str, Callable[[], object]]


def run(quick: bool) -> Figures:
    """Measure milliseconds by structure and task."""
    capacity, repeats = (20_000, 5) if quick else (1_000_000, 30)
    torch.set_num_threads(1)
    tasks = {
        **sampler_tasks("tree", capacity),
        **sampler_tasks("running sum", capacity, running_sum=True),
        **replay_tasks("uniform", capacity, prioritised=False),
        **replay_tasks("prioritised", capacity, prioritised=True),
        **window_tasks(64 if quick else 1024),
    }
    taken = cpu_seconds({name: _often(task) for name, task in tasks.items()}, repeats)
    figures: Figures = {f"capacity {capacity}, ms": {}}
    for name, seconds in taken.items():
        figures[f"capacity {capacity}, ms"][name] = 1000 * seconds / CALLS
    return figures


def sampler_tasks(name: str, capacity: int, *, running_sum: bool = False) -> Tasks:
    """Build the tasks of sampling and updating 256 of `capacity` priorities."""
    sampler = PrioritisedSampler(capacity)
    if running_sum:
        sampler._table = TablePriorities(capacity, torch.device("cpu"))
    sampler._rng = torch.Generator().manual_seed(0)
    every = torch.arange(capacity)
    sampler.extend(every)
    sampler.update_priority(every, torch.rand(capacity))
    index, error = torch.randint(capacity, (BATCH,)), torch.rand(BATCH)
    return {
        f"{name}: sample": lambda: sampler.sample(every, BATCH),
        f"{name}: update": lambda: sampler.update_priority(index, error),
    }


def replay_tasks(name: str, capacity: int, *, prioritised: bool) -> Tasks:
    """Build the same tasks with transitions, and storing 64 of them."""
    replay = ReplayBuffer(capacity, batch_size=BATCH, prioritised=prioritised)
    some = stored(10_000)
    while len(replay) < capacity:
        replay.extend(some)
    few = stored(64)
    return {f"{name} replay: sample": replay.sample, f"{name} replay: extend 64": lambda: replay.extend(few)}


def window_tasks(worlds: int) -> Tasks:
    """Build windows of 1 and 3 steps over 8 steps of `worlds` worlds with 5 agents."""
    batch = played(worlds, 8, 5)
    return {
        f"windows of {steps}, {worlds} worlds": lambda steps=steps: Transitions(
            per_agent=True, steps=steps, discount=0.99
        ).stored(batch)
        for steps in (1, 3)
    }


def stored(count: int) -> TensorDict:
    """Sample transitions as the replay buffer stores them."""
    return TensorDict(
        {
            "observation": ego(count),
            "next_observation": ego(count),
            "action": torch.rand(count, 2),
            "reward": torch.rand(count),
            "span": torch.ones(count, dtype=torch.int8),
        },
        [count],
    )


def played(*shape: int) -> TensorDict:
    """Sample a rollout `[worlds, steps]` with occasional ends of worlds."""
    active, done = torch.ones(shape, dtype=torch.bool), torch.rand(*shape[:2], 1) < 0.05
    return TensorDict(
        {
            "agents": {"active": active, "ego": ego(*shape)},
            "action": torch.rand(*shape, 2),
            "next": {
                "agents": {"active": active, "ego": ego(*shape), "terminated": done.expand(shape)},
                "reward": torch.rand(*shape, 1),
                "done": done,
                "terminated": done,
            },
        },
        shape[:2],
    )


def ego(*shape: int) -> TensorDict:
    """Sample egocentric views."""
    return TensorDict(
        {
            "self": torch.rand(*shape, 7),
            "objects": torch.rand(*shape, SLOTS, 5),
            "mask": torch.rand(*shape, SLOTS) < 0.5,
        },
        shape,
    )


def _often(task: Callable[[], object]) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(CALLS):
            task()

    return repeated


if __name__ == "__main__":
    main(run, __doc__)
