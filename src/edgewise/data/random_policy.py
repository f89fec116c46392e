"""A policy that samples legal actions at random."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase

from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.spec import GraphSpec


class RandomPolicy:
    """Samples legal actions at random, for every action layout.

    Args:
        actions: the environment's `actions`.
        graph: the environment's `graph`.
        seed: random seed; None to sample from torch's global generator.
        device: of the observations.

    Example:
        >>> import edgewise as ew
        >>> env = ew.make_env("graphwalk", num_envs=8)
        >>> env.rollout(20, RandomPolicy(env.actions, env.graph, seed=0)).batch_size[0]
        8
    """

    def __init__(
        self,
        actions: ActionLayout,
        graph: GraphSpec,
        *,
        seed: int | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.actions, self.graph = actions, graph
        self.generator = None if seed is None else torch.Generator(device).manual_seed(seed)

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`."""
        action = self.actions.sample(tensordict, self.graph, generator=self.generator)
        return tensordict.set("action", action)
