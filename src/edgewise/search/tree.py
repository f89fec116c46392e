"""Search trees of many games or worlds that grow together: selection, expansion and backup on tensors.

There is one tree per game, with the rules of the environment. Each simulation descends every tree to a new
action (selection), adds the next state with the evaluator's prior and value (expansion), and adds the value
to the statistics of the path (backup). Trees have a fixed size with one node per simulation, so there is no
loop over games. How an action is selected is up to the subclass of `TreeSearch`. An environment without
`player` has one player, whose rewards count as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.envs.base import GraphEnv

Evaluator = Callable[[TensorDictBase], tuple[Tensor, Tensor]]
"""Maps observations `[B]` to prior probabilities of actions `[B, A]` (any numbers for illegal actions) and to
values `[B]` of the rewards to come, from the perspective of the player to move."""


@runtime_checkable
class EncodesInstances(Protocol):
    """An evaluator that does part of its work once for the states that a search begins in."""

    def on_instances(self, roots: TensorDictBase) -> Evaluator:
        """Return an evaluator of states that follow from `roots [B]`, the same number from each in order."""


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
        gained: `[B, M]`, rewards on the way from the root, from the perspective of player 0.
        value: `[B, M]`, `gained` and the rewards to come, from the perspective of player 0.
        terminal: `[B, M]` bool, whether the game has ended.
        row: `[B]` int64, the index of each game.
    """

    state: TensorDict
    prior: Tensor
    child: Tensor
    visits: Tensor
    total: Tensor
    gained: Tensor
    value: Tensor
    terminal: Tensor
    row: Tensor

    @classmethod
    def from_root(cls, state: TensorDict, *, num_nodes: int, num_actions: int) -> Tree:
        """Allocate trees with the root states `[B]`."""
        count, device = len(state), side(state).device
        shape = (count, num_nodes, num_actions)
        return cls(
            state=state.unsqueeze(1).expand(count, num_nodes).clone(),
            prior=torch.zeros(shape, device=device),
            child=torch.zeros(shape, dtype=torch.int64, device=device),
            visits=torch.zeros(shape, device=device),
            total=torch.zeros(shape, device=device),
            gained=torch.zeros(shape[:2], device=device),
            value=torch.zeros(shape[:2], device=device),
            terminal=torch.zeros(shape[:2], dtype=torch.bool, device=device),
            row=torch.arange(count, device=device),
        )

    def value_of_mover(self, node: Tensor) -> Tensor:
        """Return the evaluator's value of `node` `[B]` from the perspective of its player, `[B]`."""
        return self.value[self.row, node] * side(self.state)[self.row, node]


class TreeSearch(ABC):
    """Grows search trees with the rules of an environment.

    Args:
        env: provides the rules and the observations; its number of worlds does not matter. Its games must
            terminate, and its transitions must be deterministic. Players need not alternate.
        evaluator: gives priors and values of states.
        simulations: number of simulations per decision.
        at_once: simulations whose new states are evaluated together; each counts as a draw for those selected
            after it until its value is known. With 1, every simulation sees the values of all before it.
    """

    def __init__(
        self, env: GraphEnv[Any], evaluator: Evaluator, *, simulations: int, at_once: int = 1
    ) -> None:
        for name, number in (("simulations", simulations), ("at_once", at_once)):
            if number < 1:
                raise ValueError(f"{name} must be at least 1, got {number}")
        self.env, self.evaluator, self.simulations, self.at_once = env, evaluator, simulations, at_once
        self._evaluate = evaluator

    @abstractmethod
    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action` in worlds `[B]`, none of which may be over."""

    @abstractmethod
    def choose(self, tree: Tree, node: Tensor) -> Tensor:
        """Return the action to follow at each game's `node` `[B]`, which is not the root."""

    @abstractmethod
    def choose_at_root(self, tree: Tree, simulation: int) -> Tensor:
        """Return the action to follow at the roots, `[B]`; `simulation` counts from 0."""

    @torch.no_grad()
    def search(self, state: TensorDict) -> Tree:
        """Grow the trees of the states `[B]`, none of which may be terminal."""
        evaluator, self._evaluate = self.evaluator, self.evaluator
        if isinstance(evaluator, EncodesInstances):
            self._evaluate = evaluator.on_instances(self._observed(state, self._mask(state)))
        tree = Tree.from_root(state, num_nodes=self.simulations + 1, num_actions=self._mask(state).shape[-1])
        nothing = torch.zeros_like(tree.value[:, :1])
        self._expand(tree, state, new_nodes=range(1), terminal=nothing.bool(), gained=nothing)
        self.prepare(tree)
        for first in range(1, self.simulations + 1, self.at_once):
            new_nodes = range(first, min(first + self.at_once, self.simulations + 1))
            self._simulate(tree, new_nodes)
        return tree

    def _simulate(self, tree: Tree, new_nodes: range) -> None:
        """Make one simulation for each of `new_nodes`."""
        paths = []
        for new_node in new_nodes:
            paths.append(self._select(tree, new_node - 1))
            _count_visit(tree, paths[-1])
        games, count = len(tree.row), len(new_nodes)
        row = tree.row.repeat_interleave(count)
        node, action = (
            torch.stack([getattr(path[-1], name) for path in paths], 1).flatten()
            for name in ("node", "action")
        )
        parent = tree.state[row, node]
        moved = self.env.advance(parent, action)
        state = TensorDict({**parent, **moved.state}, parent.batch_size)
        over = torch.zeros_like(row, dtype=torch.bool) if moved.terminated is None else moved.terminated
        gained = tree.gained[row, node] + moved.reward * side(parent)
        self._expand(
            tree,
            state,
            new_nodes=new_nodes,
            terminal=over.view(games, count),
            gained=gained.view(games, count),
        )
        for path, new_node in zip(paths, new_nodes, strict=True):
            tree.child[tree.row, path[-1].node, path[-1].action] = new_node
            _backward(tree, path, value=tree.value[:, new_node])

    def prepare(self, tree: Tree) -> None:  # noqa: B027 - optional
        """Do what a subclass needs between the evaluation of the roots and the first simulation."""

    def _select(self, tree: Tree, simulation: int) -> list[Step]:
        """Return the path of each tree from the root to an unvisited action or to a terminal state."""
        node = torch.zeros_like(tree.row)
        active = torch.ones_like(node, dtype=torch.bool)
        path: list[Step] = []
        while not path or bool(active.any()):
            if path:
                action = torch.where(active, self.choose(tree, node), path[-1].action)
            else:
                action = self.choose_at_root(tree, simulation)
            path.append(Step(node, action, active))
            child = tree.child[tree.row, node, action]
            active = active & (child > 0) & ~tree.terminal[tree.row, child]
            node = torch.where(active, child, node)
        return path

    def _expand(
        self, tree: Tree, state: TensorDict, *, new_nodes: range, terminal: Tensor, gained: Tensor
    ) -> None:
        """Write states `[B * R]` into R nodes of each tree; the evaluator values games that go on."""
        mask = self._mask(state)
        prior, value = self._evaluate(self._observed(state, mask | terminal.view(-1, 1)))
        to_come = (value * side(state)).view_as(terminal).masked_fill(terminal, 0.0)
        at = slice(new_nodes.start, new_nodes.stop)
        tree.state[:, at] = state.view(*terminal.shape)
        tree.prior[:, at] = prior.masked_fill(~mask, -torch.inf).view(*terminal.shape, -1)
        tree.gained[:, at] = gained
        tree.value[:, at] = gained + to_come
        tree.terminal[:, at] = terminal

    def _observed(self, state: TensorDict, mask: Tensor) -> TensorDict:
        """Return the observations of states, with a legal action also where the episode is over."""
        seen = {**self.env.whole_observation(state), "state": state, "action_mask": mask}
        return TensorDict(seen, state.batch_size)

    def _mask(self, state: TensorDict) -> Tensor:
        mask = self.env.mask(state)
        if mask is None:
            raise ValueError(f"tree search needs an action mask, but {self.env.name} has none")
        return mask


def _count_visit(tree: Tree, path: list[Step]) -> None:
    """Count a visit of every step of the path."""
    for step in path:
        tree.visits[tree.row, step.node, step.action] += step.active


def _backward(tree: Tree, path: list[Step], *, value: Tensor) -> None:
    """Add a value `[B]`, from the perspective of player 0, to the totals of every step of the path."""
    sides = side(tree.state)
    for step in path:
        at = (tree.row, step.node, step.action)
        tree.total[at] += step.active * value * sides[tree.row, step.node]


def side(state: TensorDictBase) -> Tensor:
    """Return the `sign` of whoever is to move, `[*B]`; 1 where there is one player."""
    player = state.get("player", None)
    if player is not None:
        return sign(player)
    some = next(state.values(include_nested=True, leaves_only=True))
    return torch.ones(state.batch_size, device=some.device)


def sign(player: Tensor) -> Tensor:
    """Return 1 for player 0 and -1 for player 1, to change between a player's and player 0's perspective."""
    return 1.0 - 2.0 * player
