"""The policy that knows nothing but what is legal."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase

from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.random_actions import random_action
from edgewise.graphs.spec import GraphSpec


class RandomPolicy:
    """Legal actions at random, for every action layout.

    Args:
        actions: how the environment is acted on.
        graph: the shape of its graphs.
        seed: the same seed gives the same actions; None to draw from torch's own generator.
        device: of the observations.

    Example:
        >>> env.rollout(20, RandomPolicy(env.actions, env.graph, seed=0))
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
        """`tensordict` with `action` set."""
        action = random_action(self.actions, self.graph, observation=tensordict, generator=self.generator)
        return tensordict.set("action", action)
