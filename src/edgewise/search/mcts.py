"""Monte-Carlo tree search for two-player games, batched over games.

There is one tree per game, and all trees grow together with the rules of the environment. Each simulation
descends every tree to a new action (selection), adds the next state with the evaluator's prior and value
(expansion), and adds the value to the statistics of the path (backup). Actions are selected by PUCT
(https://doi.org/10.1126/science.aar6404). Trees are tensors of a fixed size with one node per simulation, so
there is no loop over games.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.envs.base import GraphEnv

Evaluator = Callable[[TensorDictBase], tuple[Tensor, Tensor]]
"""Maps observations `[B]` to prior probabilities of actions `[B, A]` (any numbers for illegal actions) and to
values `[B]` in [-1, 1] from the perspective of the player to move."""

EXPLORATION = 1.5
"""Weight of the exploration term of PUCT."""


class MCTS:
    """A policy that chooses actions by tree search.

    Args:
        env: provides the rules and the observations; its number of worlds does not matter. Its games must
            terminate, and its transitions must be deterministic.
        evaluator: gives priors and values of states.
        simulations: number of simulations per decision.
        exploration: see `EXPLORATION`.

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
    ) -> None:
        if simulations < 1:
            raise ValueError(f"simulations must be at least 1, got {simulations}")
        self.env, self.evaluator = env, evaluator
        self.simulations, self.exploration = simulations, exploration

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action` to the most visited action; ties are broken by the prior."""
        tree = self.search(tensordict["state"])
        prior = tree.prior[:, 0].clamp(min=0.0)
        return tensordict.set("action", (tree.visits[:, 0] + prior).argmax(-1))

    @torch.no_grad()
    def search(self, state: TensorDict) -> Tree:
        """Grow the trees of the states `[B]`, none of which may be terminal."""
        tree = Tree.from_root(state, num_nodes=self.simulations + 1, num_actions=self._mask(state).shape[-1])
        self._expand(tree, state, new_node=0, terminal=torch.zeros_like(tree.terminal[:, 0]), reward=None)
        for new_node in range(1, self.simulations + 1):
            path = self._select(tree)
            node, action = path[-1].node, path[-1].action
            parent = tree.state[tree.row, node]
            moved = self.env.advance(parent, action)
            state = TensorDict({**parent, **moved.state}, parent.batch_size)
            terminal = torch.zeros_like(path[-1].active) if moved.terminated is None else moved.terminated
            reward = moved.reward * _sign(parent["player"])
            self._expand(tree, state, new_node=new_node, terminal=terminal, reward=reward)
            tree.child[tree.row, node, action] = new_node
            _backward(tree, path, value=tree.value[:, new_node])
        return tree

    def _select(self, tree: Tree) -> list[Step]:
        """Return the path of each tree from the root to an unvisited action or to a terminal state."""
        node = torch.zeros_like(tree.row)
        active = torch.ones_like(node, dtype=torch.bool)
        path: list[Step] = []
        while not path or bool(active.any()):
            best = self._puct(tree, node)
            action = torch.where(active, best, path[-1].action) if path else best
            path.append(Step(node, action, active))
            child = tree.child[tree.row, node, action]
            active = active & (child > 0) & ~tree.terminal[tree.row, child]
            node = torch.where(active, child, node)
        return path

    def _puct(self, tree: Tree, node: Tensor) -> Tensor:
        """Return the action with the highest PUCT score at each game's `node` `[B]`.

        The value of an unvisited action is that of the node.
        """
        visits, total = tree.visits[tree.row, node], tree.total[tree.row, node]
        node_visits = visits.sum(-1, keepdim=True)
        own = (tree.value[tree.row, node] * _sign(tree.state["player"][tree.row, node])).unsqueeze(-1)
        node_value = (own + total.sum(-1, keepdim=True)) / (1 + node_visits)
        q_value = torch.where(visits > 0, total / visits.clamp(min=1), node_value)
        bonus = tree.prior[tree.row, node] * (1 + node_visits).sqrt() / (1 + visits)
        return (q_value + self.exploration * bonus).argmax(-1)

    def _expand(
        self, tree: Tree, state: TensorDict, *, new_node: int, terminal: Tensor, reward: Tensor | None
    ) -> None:
        """Write states into a node of the trees, with the evaluator's value, or the reward if terminal."""
        mask = self._mask(state)
        observation = {
            **dict(self.env.observe(state).items()),
            "state": state,
            "action_mask": mask | terminal.unsqueeze(-1),
        }
        prior, value = self.evaluator(TensorDict(observation, state.batch_size))
        value = value * _sign(state["player"])
        tree.state[:, new_node] = state
        tree.prior[:, new_node] = prior.masked_fill(~mask, -torch.inf)
        tree.value[:, new_node] = value if reward is None else torch.where(terminal, reward, value)
        tree.terminal[:, new_node] = terminal

    def _mask(self, state: TensorDict) -> Tensor:
        mask = self.env.mask(state)
        if mask is None:
            raise ValueError(f"tree search needs an action mask, but {self.env.name} has none")
        return mask


@dataclass(frozen=True)
class Step:
    """One step of the selection paths of all games.

    Args:
        node: `[B]` int64, where the action is taken.
        action: `[B]` int64.
        active: `[B]` bool, whether the game's path is this long; otherwise the step repeats its last one.
    """

    node: Tensor
    action: Tensor
    active: Tensor


@dataclass(frozen=True)
class Tree:
    """The search trees of B games with M nodes each; node 0 is the root.

    Args:
        state: `[B, M]`, the state of each node.
        prior: `[B, M, A]`, prior probabilities of actions, minus infinity if illegal.
        child: `[B, M, A]` int64, the node that an action leads to; 0 if unvisited.
        visits: `[B, M, A]`, visit counts.
        total: `[B, M, A]`, sums of values from the perspective of the player to move.
        value: `[B, M]`, values of nodes from the perspective of player 0.
        terminal: `[B, M]` bool, whether the game has ended.
        row: `[B]` int64, the index of each game.
    """

    state: TensorDict
    prior: Tensor
    child: Tensor
    visits: Tensor
    total: Tensor
    value: Tensor
    terminal: Tensor
    row: Tensor

    @classmethod
    def from_root(cls, state: TensorDict, *, num_nodes: int, num_actions: int) -> Tree:
        """Allocate trees with the root states `[B]`."""
        count, device = len(state), state["player"].device
        shape = (count, num_nodes, num_actions)
        return cls(
            state=state.unsqueeze(1).expand(count, num_nodes).clone(),
            prior=torch.zeros(shape, device=device),
            child=torch.zeros(shape, dtype=torch.int64, device=device),
            visits=torch.zeros(shape, device=device),
            total=torch.zeros(shape, device=device),
            value=torch.zeros(shape[:2], device=device),
            terminal=torch.zeros(shape[:2], dtype=torch.bool, device=device),
            row=torch.arange(count, device=device),
        )


def _backward(tree: Tree, path: list[Step], *, value: Tensor) -> None:
    """Add a value `[B]`, from the perspective of player 0, to the statistics of every step of the path."""
    for step in path:
        at = (tree.row, step.node, step.action)
        tree.visits[at] += step.active
        tree.total[at] += step.active * value * _sign(tree.state["player"][tree.row, step.node])


def _sign(player: Tensor) -> Tensor:
    """Return 1 for player 0 and -1 for player 1, to change between a player's and player 0's perspective."""
    return 1.0 - 2.0 * player
