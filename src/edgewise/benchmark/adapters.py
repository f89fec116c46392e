"""Let policies of other libraries act on the instances of the benchmark.

A policy that reads arrays, such as one of Stable-Baselines3, becomes a policy of ours by `reading_arrays`;
one that plans a whole solution at once, such as one of RL4CO, by `following_plans`. Both go into a method
file:

    METHOD = Method("mine", policy=lambda env: following_plans(env, plan), tasks=("tsp",))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.envs.adapters.outside_view import Arrays, actions_from, arrays, observation_of
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.graphs.keys import GRAPH, MASK


def reading_arrays(env: GraphEnv[Any], predict: Callable[[Arrays, Any], Any]) -> Policy:
    """Return a policy that is asked with arrays.

    Args:
        env: in which it acts.
        predict: gets the observation of all worlds as `to_gymnasium` shows it, and their action mask or None;
            returns an action for each world. With MaskablePPO of sb3-contrib:
            `lambda seen, mask: model.predict(flat(seen), action_masks=mask, deterministic=True)[0]`.
    """

    def policy(root: TensorDictBase) -> TensorDictBase:
        whole = root.copy()
        if GRAPH not in whole:
            described = env.describe(root["state"])
            assert described is not None
            whole.set(GRAPH, TensorDict(dict(described.items()), root.batch_size))
        mask = root.get(MASK, None)
        action = predict(observation_of(whole, env), None if mask is None else arrays(mask))
        return root.set("action", actions_from(action, env))

    return policy


def following_plans(env: GraphEnv[Any], plan: Callable[[TensorDictBase], Tensor]) -> Policy:
    """Return a policy that plans all actions when worlds begin, and then takes them.

    Args:
        env: in which it acts.
        plan: gets the states in which the worlds begin, and returns their actions `[B, T]`. Beyond its last
            column, the first legal action is taken. An action that is not legal is an error.
    """
    planned: Tensor | None = None

    def policy(root: TensorDictBase) -> TensorDictBase:
        nonlocal planned
        step = root["state", "step"]
        if planned is None or bool((step == 0).all()):
            planned = torch.as_tensor(plan(root["state"])).to(env.action_spec.dtype)
        within = step.clamp(max=planned.shape[1] - 1).unsqueeze(-1)
        action = planned.gather(1, within).squeeze(-1)
        first = root[MASK].int().argmax(-1)
        return root.set("action", torch.where(step < planned.shape[1], action, first))

    return policy
