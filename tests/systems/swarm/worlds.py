"""Swarms for tests: made from a config, or with every body where a test wants it."""

import torch
from tensordict import TensorDict

from edgewise.systems.swarm.config import SwarmConfig
from edgewise.systems.swarm.env import SwarmEnv


def swarm(num_envs=1, seed=0, **fields):
    """A swarm of the fields given."""
    return SwarmEnv(SwarmConfig(**fields), num_envs=num_envs, seed=seed)


def placed(env, agents, goals, obstacles=()):
    """The state of one world at rest with bodies at these places, in double precision."""
    position = torch.tensor([agents], dtype=torch.float64)
    obstacle = torch.tensor(obstacles, dtype=torch.float64).reshape(1, -1, 2)
    born = {
        "position": position,
        "goal": torch.tensor([goals], dtype=torch.float64),
        "obstacle": obstacle,
        "active": torch.ones(position.shape[:2], dtype=torch.bool),
        "obstacle_mask": torch.ones(obstacle.shape[:2], dtype=torch.bool),
        "crowded": torch.zeros(1, dtype=torch.int64),
    }
    return TensorDict({**env.initial_state(born), "step": torch.zeros(1, dtype=torch.int64)}, [1])


def single(state):
    """The same state in single precision."""
    return state.apply(lambda entry: entry.float() if entry.is_floating_point() else entry)


def follow(env, state, actions):
    """The state and the rewards `[A]` after each of `actions`, an iterable of one action per agent."""
    passed = []
    for action in actions:
        moved = env.advance(state, torch.tensor([action]))
        state = TensorDict({**state, **moved.state, "step": state["step"] + 1}, [1])
        passed.append((state, moved.reward[0]))
    return passed


def padded(state):
    """The same worlds with room for more, absent bodies lying on top of real ones."""
    wider = dict(state.items())
    for name, room in (("position", 6), ("goal", 6), ("velocity", 6), ("obstacle", 4)):
        wider[name] = torch.cat((state[name], state[name][:, :1].expand(-1, room, -1)), 1)
    for name, room in (("active", 6), ("obstacle_mask", 4)):
        wider[name] = torch.cat((state[name], state[name].new_zeros(6, room)), 1)
    for name in ("arrival", "terminated", "touched"):
        wider[name] = torch.cat((state[name], state[name].new_zeros(6, 6)), 1)
    return wider
