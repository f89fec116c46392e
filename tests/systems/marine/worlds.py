"""Boats for tests: made from a config, or with everything where a test wants it."""

import torch
from tensordict import TensorDict

from edgewise.envs.transition import apply_transition
from edgewise.systems.marine import field
from edgewise.systems.marine.config import MarineConfig
from edgewise.systems.marine.env import MarineEnv

QUIET = {"position_noise": 0.0, "velocity_noise": 0.0, "radius_noise": False}


def marine(num_envs=1, seed=0, **fields):
    """Worlds of the fields given."""
    return MarineEnv(MarineConfig(**fields), num_envs=num_envs, seed=seed)


def still(robots, *, obstacles=(), cores=(), **fields):
    """An environment without sensor noise whose worlds hold just what is placed."""
    fields = {
        **QUIET,
        "num_robots": len(robots),
        "num_obstacles": len(obstacles),
        "num_cores": len(cores),
        "normalise": False,
        **fields,
    }
    return marine(**fields)


def placed(env, robots, *, obstacles=(), cores=()):
    """The state of one world in double precision.

    Args:
        env: of just the capacity.
        robots: rows of x, y, heading, goal x, goal y, three velocities through the water, two thrusts.
        obstacles: rows of x, y, radius.
        cores: rows of x, y, whether clockwise, circulation.
    """
    robot = torch.tensor(robots, dtype=torch.float64).reshape(1, -1, 10)
    obstacle = torch.tensor(obstacles, dtype=torch.float64).reshape(1, -1, 3)
    core = torch.tensor([list(map(float, row)) for row in cores], dtype=torch.float64).reshape(1, -1, 4)
    moving = robot[..., 5:8]
    cores_at, circulation = core[..., :2], core[..., 3] * (2 * core[..., 2] - 1)
    water = field.velocity(robot[..., :2], cores=cores_at, circulation=circulation)
    active = torch.ones(robot.shape[:2], dtype=torch.bool)
    born = {
        "position": robot[..., :2],
        "heading": robot[..., 2],
        "goal": robot[..., 3:5],
        "through_water": moving,
        "over_ground": torch.cat((moving[..., :2] + water, moving[..., 2:]), -1),
        "thrust": robot[..., 8:],
        "active": active,
        "obstacle": obstacle[..., :2],
        "obstacle_radius": obstacle[..., 2],
        "obstacle_mask": torch.ones(obstacle.shape[:2], dtype=torch.bool),
        "core": cores_at,
        "circulation": circulation,
        "shortfall": torch.zeros(1, 3, dtype=torch.int64),
    }
    ended = {"step": torch.zeros(1, dtype=torch.int64), "terminated": torch.zeros_like(active)}
    return TensorDict({**env.initial_state(born), **ended}, [1])


def step(env, state, action):
    """The state after `action`, one entry for each robot, and what the step gives."""
    kind = torch.int64 if env.config.actions == "discrete" else torch.float64
    moved = env.advance(state, torch.tensor([action], dtype=kind))
    after, outcome = apply_transition(state, moved, max_steps=env.max_steps)
    return TensorDict(after, [1]), outcome
