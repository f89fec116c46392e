"""The part of the contract of environments that describe an instance once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase

from edgewise.envs.base import GraphEnv


def check_described(env: GraphEnv[Any], steps: Iterator[tuple[TensorDictBase, TensorDictBase]]) -> None:
    """Raise AssertionError if what `describe` returns changes within an episode, or a reference is no node.

    Args:
        env: with `describe`.
        steps: root and next of every step of a rollout with resets.
    """
    if env.graph.step is None:
        return
    for root, following in steps:
        for entries in (root, following):
            state = entries["state"]
            again = TensorDict(dict(env.describe(state) or {}), state.batch_size)
            for name, value in again.items():
                changed = (value != entries["graph", name]) & ~((value != value) & _nan(entries, name))
                if changed.any():
                    world = int(changed.reshape(len(changed), -1).any(-1).nonzero()[0])
                    raise AssertionError(
                        f"{env.name}.describe is not the same within an episode: `{name}` differs in world "
                        f"{world}; what changes belongs to `step` in `observe`"
                    )
            _check_references(env, entries)
    _check_symmetries(env)


def _nan(entries: TensorDictBase, name: str) -> torch.Tensor:
    value: torch.Tensor = entries["graph", name]
    return value != value


def _check_references(env: GraphEnv[Any], entries: TensorDictBase) -> None:
    exists = entries["graph", "node_mask"]
    for name in env.graph.step.references if env.graph.step else ():
        node = entries["step", "nodes", name]
        wrong = (node < -1) | (node >= exists.shape[-1])
        wrong = wrong | ((node >= 0) & ~exists.gather(-1, node.clamp(0, exists.shape[-1] - 1)[:, None])[:, 0])
        if wrong.any():
            raise AssertionError(
                f"{env.name}: step.nodes.{name} is {int(node[wrong][0])} in world {int(wrong.nonzero()[0])}, "
                "which is no node; -1 stands for none"
            )


def _check_symmetries(env: GraphEnv[Any]) -> None:
    """Play the same actions under every symmetry: the rewards must be the same."""
    if env.num_symmetries < 2:
        return
    number = torch.arange(env.num_symmetries, device=env.device)
    root = env.under_symmetries(env.new_worlds(1).expand(env.num_symmetries), number)
    for _ in range(5):
        one = env.actions.sample(root[:1], env.graph)
        following = env.simulate(root.set("action", one.repeat_interleave(env.num_symmetries, 0)))
        reward = following["reward"]
        if not torch.allclose(reward, reward[:1].expand_as(reward), rtol=1e-4, atol=1e-5):
            raise AssertionError(f"{env.name}: an action has other rewards under a symmetry")
        if following["done"].any():
            return
        root = following
