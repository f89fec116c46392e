"""The picture of a running world, from the states that it has passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tensordict import TensorDict

from edgewise.envs.base import GraphEnv
from edgewise.experiments.replays import replay_function
from edgewise.plugins import Environment, environments
from edgewise.report.pictures.write import array

WIDTH, HEIGHT = 640, 480


def newest_frame(env: GraphEnv[Any], states: Sequence[TensorDict]) -> Any:
    """Return the last moment of an episode as pixels `[480, 640, 3]`, a NumPy array of uint8.

    Args:
        env: with one world.
        states: of the episode so far, each of batch size `[1]`.
    """
    passed = torch.cat(list(states)).cpu()
    draw = replay_function(env.rand_action, env, entry=declaration(env))
    return array(draw(passed), width=WIDTH, height=HEIGHT)


def declaration(env: GraphEnv[Any]) -> Environment:
    """Return the declaration of an environment; one that was not declared is its class alone."""
    kind = type(env)
    address = f"{kind.__module__}:{kind.__qualname__}"
    found = (entry for entry in environments().values() if entry.env in (kind, address))
    return next(found, Environment(env=kind))
