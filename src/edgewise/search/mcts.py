"""Monte-Carlo tree search for two-player games, batched over games.

Actions are selected by PUCT (https://doi.org/10.1126/science.aar6404), and the most visited one is played.
`search/gumbel.py` is better with few simulations.
"""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.envs.base import GraphEnv
from edgewise.search.tree import Evaluator, Tree, TreeSearch

EXPLORATION = 1.5
"""Weight of the exploration term of PUCT."""


class MCTS(TreeSearch):
    """A policy that chooses actions by tree search.

    Args:
        env: see `TreeSearch`.
        evaluator: gives priors and values of states.
        simulations: number of simulations per decision.
        exploration: see `EXPLORATION`.
        at_once: see `TreeSearch`.

    Example:
        With `env`, a two-player environment of 4 worlds and 9 actions:

        >>> uniform = lambda root: (torch.ones_like(root["action_mask"]) / 9, torch.zeros(len(root)))
        >>> MCTS(env, uniform, simulations=8)(env.reset())["action"].shape
        torch.Size([4])
    """

    def __init__(
        self,
        env: GraphEnv[Any],
        evaluator: Evaluator,
        *,
        simulations: int,
        exploration: float = EXPLORATION,
        at_once: int = 1,
    ) -> None:
        super().__init__(env, evaluator, simulations=simulations, at_once=at_once)
        self.exploration = exploration

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action` to the most visited action; ties are broken by the prior."""
        tree = self.search(tensordict["state"])
        prior = tree.prior[:, 0].clamp(min=0.0)
        return tensordict.set("action", (tree.visits[:, 0] + prior).argmax(-1))

    def choose_at_root(self, tree: Tree, simulation: int) -> Tensor:  # noqa: ARG002 - roots are like other nodes
        """Return the action with the highest PUCT score, `[B]`."""
        return self.choose(tree, torch.zeros_like(tree.row))

    def choose(self, tree: Tree, node: Tensor) -> Tensor:
        """Return the action with the highest PUCT score at each game's `node` `[B]`.

        The value of an unvisited action is that of the node.
        """
        visits, total = tree.visits[tree.row, node], tree.total[tree.row, node]
        node_visits = visits.sum(-1, keepdim=True)
        own = tree.value_of_mover(node).unsqueeze(-1)
        node_value = (own + total.sum(-1, keepdim=True)) / (1 + node_visits)
        q_value = torch.where(visits > 0, total / visits.clamp(min=1), node_value)
        bonus = tree.prior[tree.row, node] * (1 + node_visits).sqrt() / (1 + visits)
        return (q_value + self.exploration * bonus).argmax(-1)
