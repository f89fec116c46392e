"""Looks ahead in games of two players: one tree per game, all grown together by the environment's own rules.

Every simulation goes down each tree to a move that was not tried yet, makes it, asks a evaluator what the new
position is value, and tells the moves on the way. Which move is tried is PUCT's choice
(https://doi.org/10.1126/science.aar6404): its mean result, plus its prior chance over how often it was tried.
There is no loop over games; trees are tensors of a fixed size, one place per simulation.
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
"""From positions `[B]` to the chances of actions `[B, A]`, whatever those of illegal ones, and the value of
each position to its mover `[B]`, in [-1, 1]."""

EXPLORATION = 1.5
"""Weight of the prior chance beside the mean result."""


class MCTS:
    """A player that looks ahead before it moves.

    Args:
        env: gives the rules and what the evaluator sees; of any number of worlds. Its games must end by
            themselves, without draws of its generator on the way.
        evaluator: values positions.
        simulations: how many positions are looked at before a move.
        exploration: see `EXPLORATION`.

    Example:
        >>> from edgewise.envs.registry import make_env
        >>> env = make_env("hex", size=3, num_envs=4)
        >>> alike = lambda root: (torch.ones_like(root["action_mask"]) / 9, torch.zeros(len(root["player"])))
        >>> MCTS(env, alike, simulations=8)(env.reset())["action"].shape
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
            raise ValueError(f"a search looks at 1 position or more, got {simulations}")
        self.env, self.evaluator, self.simulations, self.exploration = (
            env,
            evaluator,
            simulations,
            exploration,
        )

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`: the move that was tried most, the likelier one of equals."""
        tree = self.search(tensordict["state"])
        likely = tree.prior[:, 0].clamp(min=0.0)
        return tensordict.set("action", (tree.visits[:, 0] + likely).argmax(-1))

    @torch.no_grad()
    def search(self, state: TensorDict) -> Tree:
        """The trees of the positions `state` `[B]`, whose games are under way."""
        tree = Tree.planted(state, places=self.simulations + 1, actions=self._mask(state).shape[-1])
        self._expand(tree, state, place=0, over=torch.zeros_like(tree.ended[:, 0]), result=None)
        for place in range(1, self.simulations + 1):
            way = self._select(tree)
            node, action = way[-1].node, way[-1].action
            before = tree.state[tree.row, node]
            moved = self.env.advance(before, action)
            after = TensorDict({**before, **moved.state}, before.batch_size)
            over = torch.zeros_like(way[-1].going) if moved.terminated is None else moved.terminated
            self._expand(tree, after, place=place, over=over, result=moved.reward * _sign(before["player"]))
            tree.child[tree.row, node, action] = place
            _backward(tree, way, value=tree.value[:, place])
        return tree

    def _select(self, tree: Tree) -> list[Step]:
        """The moves from the root to one that was not tried before, or that ended the game."""
        node = torch.zeros_like(tree.row)
        going = torch.ones_like(node, dtype=torch.bool)
        way: list[Step] = []
        while not way or bool(going.any()):
            chosen = self._choose(tree, node)
            action = torch.where(going, chosen, way[-1].action) if way else chosen
            way.append(Step(node, action, going))
            child = tree.child[tree.row, node, action]
            going = going & (child > 0) & ~tree.ended[tree.row, child]
            node = torch.where(going, child, node)
        return way

    def _choose(self, tree: Tree, node: Tensor) -> Tensor:
        """PUCT's move at each game's `node` `[B]`; moves not tried are taken to be as good as the node."""
        visits, total = tree.visits[tree.row, node], tree.total[tree.row, node]
        tried = visits.sum(-1, keepdim=True)
        own = (tree.value[tree.row, node] * _sign(tree.state["player"][tree.row, node])).unsqueeze(-1)
        mean = (own + total.sum(-1, keepdim=True)) / (1 + tried)
        result = torch.where(visits > 0, total / visits.clamp(min=1), mean)
        chance = tree.prior[tree.row, node] * (1 + tried).sqrt() / (1 + visits)
        return (result + self.exploration * chance).argmax(-1)

    def _expand(
        self, tree: Tree, state: TensorDict, *, place: int, over: Tensor, result: Tensor | None
    ) -> None:
        """Put positions into a place of the trees, with what the evaluator, or the end, says of them."""
        mask = self._mask(state)
        seen = {
            **dict(self.env.observe(state).items()),
            "state": state,
            "action_mask": mask | over.unsqueeze(-1),
        }
        chances, value = self.evaluator(TensorDict(seen, state.batch_size))
        value = value * _sign(state["player"])
        tree.state[:, place] = state
        tree.prior[:, place] = chances.masked_fill(~mask, -torch.inf)
        tree.value[:, place] = value if result is None else torch.where(over, result, value)
        tree.ended[:, place] = over

    def _mask(self, state: TensorDict) -> Tensor:
        mask = self.env.mask(state)
        if mask is None:
            raise ValueError(
                f"{self.env.name} does not say which actions are legal: there is nothing to search"
            )
        return mask


@dataclass(frozen=True)
class Step:
    """One move on the way down, in every game.

    Args:
        node: `[B]` int64, where it is made.
        action: `[B]` int64.
        going: `[B]` bool, whether the game's way goes so far; elsewhere its last step stands again.
    """

    node: Tensor
    action: Tensor
    going: Tensor


@dataclass(frozen=True)
class Tree:
    """What was found out about each of B games, in M places; place 0 is the root.

    Args:
        state: positions, `[B, M]`.
        prior: `[B, M, A]`, chances of actions, minus infinity where illegal.
        child: `[B, M, A]` int64, the place that an action leads to; 0 where it was not tried.
        visits: `[B, M, A]`, how often it was tried.
        total: `[B, M, A]`, the sum of its results for the mover.
        value: `[B, M]`, what a position is value to player 0.
        ended: `[B, M]` bool, whether the game is over there.
        row: `[B]` int64, the number of each game.
    """

    state: TensorDict
    prior: Tensor
    child: Tensor
    visits: Tensor
    total: Tensor
    value: Tensor
    ended: Tensor
    row: Tensor

    @classmethod
    def planted(cls, state: TensorDict, *, places: int, actions: int) -> Tree:
        """Room for trees that grow from `state` `[B]`."""
        count, device = len(state), state["player"].device
        shape = (count, places, actions)
        return cls(
            state=state.unsqueeze(1).expand(count, places).clone(),
            prior=torch.zeros(shape, device=device),
            child=torch.zeros(shape, dtype=torch.int64, device=device),
            visits=torch.zeros(shape, device=device),
            total=torch.zeros(shape, device=device),
            value=torch.zeros(shape[:2], device=device),
            ended=torch.zeros(shape[:2], dtype=torch.bool, device=device),
            row=torch.arange(count, device=device),
        )


def _backward(tree: Tree, way: list[Step], *, value: Tensor) -> None:
    """Count a result, in player 0's view `[B]`, for every move that led to it."""
    for step in way:
        at = (tree.row, step.node, step.action)
        tree.visits[at] += step.going
        tree.total[at] += step.going * value * _sign(tree.state["player"][tree.row, step.node])


def _sign(player: Tensor) -> Tensor:
    """1 for player 0 and -1 for player 1: what turns a mover's view into player 0's, and back."""
    return 1.0 - 2.0 * player
