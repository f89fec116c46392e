"""Rollouts of robots that end one by one, whose every number says where it comes from."""

from __future__ import annotations

import numpy as np
import torch
from tensordict import TensorDict


def played(
    seed: int, *, worlds: int = 2, steps: int = 12, robots: int = 3, discrete: bool = False, slots: int = 2
) -> TensorDict:
    """`[worlds, steps]` of random episodes; `ego.self` holds the step, the world and the robot.

    A robot ends with some probability in each step, a world when none is active, or when time runs out; the
    next step then belongs to a new episode with another number of robots. What comes `next` has 0.5 added to
    its step.
    """
    draw = np.random.default_rng(seed)
    active = np.zeros((worlds, steps, robots), bool)
    ended, still = np.zeros_like(active), np.zeros_like(active)
    done, timeout = np.zeros((worlds, steps, 1), bool), np.zeros((worlds, steps, 1), bool)
    for world in range(worlds):
        alive = _new_team(draw, robots)
        gone = np.zeros(robots, bool)
        for step in range(steps):
            active[world, step] = alive
            gone = gone | (alive & (draw.random(robots) < 0.25))
            alive = alive & ~gone
            ended[world, step], still[world, step] = gone, alive
            timeout[world, step] = draw.random() < 0.15
            done[world, step] = timeout[world, step] | ~alive.any()
            if done[world, step]:
                alive, gone = _new_team(draw, robots), np.zeros(robots, bool)
    terminated = done & ~still.any(-1, keepdims=True)
    action = draw.integers(25, size=active.shape) if discrete else draw.random((*active.shape, 2), np.float32)
    return TensorDict(
        {
            "agents": {"active": _tensor(active), "ego": _ego(draw, active.shape, slots=slots, ahead=0.0)},
            "action": _tensor(action),
            "next": {
                "agents": {
                    "active": _tensor(still),
                    "ego": _ego(draw, active.shape, slots=slots, ahead=0.5),
                    "terminated": _tensor(ended),
                },
                "reward": _tensor(draw.normal(size=(*active.shape, 1)).astype(np.float32)),
                "done": _tensor(done),
                "terminated": _tensor(terminated),
                "truncated": _tensor(timeout),
            },
        },
        batch_size=[worlds, steps],
    )


def one_by_one(batch: TensorDict, *, steps: int, discount: float) -> list[tuple[float, ...]]:
    """The oracle: transitions of single robots, followed step by step in plain Python, sorted.

    Each is world, robot, first step, last step, its length, its return and its discount.
    """
    after, found = batch["next"], []
    for world in range(batch.shape[0]):
        for robot in range(batch["agents", "active"].shape[-1]):
            for first in range(batch.shape[1]):
                if batch["agents", "active"][world, first, robot]:
                    total = 0.0
                    for ahead in range(steps):
                        here = first + ahead
                        if here == batch.shape[1]:
                            break
                        total += discount**ahead * after["reward"][world, here, robot, 0].item()
                        ended = after["agents", "terminated"][world, here, robot].item()
                        if ended or after["done"][world, here].item() or ahead == steps - 1:
                            left = 0.0 if ended else discount ** (ahead + 1)
                            found.append((world, robot, first, here, ahead + 1, total, left))
                            break
    return sorted(found)


def told(transitions: TensorDict) -> list[tuple[float, ...]]:
    """Transitions in the oracle's form, by what their observations say of where they come from."""
    here, there = transitions["observation", "self"], transitions["next_observation", "self"]
    columns = (
        here[:, 1],
        here[:, 2],
        here[:, 0],
        there[:, 0] - 0.5,
        transitions["steps"],
        transitions["reward"],
        transitions["discount"],
    )
    assert (here[:, 1:3] == there[:, 1:3]).all()
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def _new_team(draw: np.random.Generator, robots: int) -> np.ndarray:
    return np.arange(robots) < draw.integers(1, robots + 1)


def _ego(
    draw: np.random.Generator, shape: tuple[int, int, int], *, slots: int, ahead: float
) -> dict[str, torch.Tensor]:
    world, step, robot = np.meshgrid(*map(np.arange, shape), indexing="ij")
    own = np.zeros((*shape, 7), np.float32)
    own[..., 0], own[..., 1], own[..., 2] = step + ahead, world, robot
    return {
        "self": torch.from_numpy(own),
        "objects": torch.from_numpy(draw.random((*shape, slots, 5), np.float32)),
        "mask": torch.from_numpy(draw.random((*shape, slots)) < 0.5),
    }


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))
