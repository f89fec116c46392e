"""Players that need no learning: any cell, shortest ways, random continuations, or a tree of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.policy import Policy
from edgewise.search.mcts import MCTS, Evaluator
from edgewise.systems.hex.config import SMALLEST
from edgewise.systems.hex.dynamics import EMPTY, FAR, missing_stones, reaches
from edgewise.systems.hex.env import HexEnv
from edgewise.systems.hex.open_spiel import installed, open_spiel_player

FILLINGS = 64
"""Random fillings of the board that a Monte-Carlo player looks at before a move."""
SIMULATIONS, FILLINGS_OF_A_LEAF = 128, 4
"""Positions that a tree search looks at before a move, and random fillings that value each of them."""


def random_player(env: HexEnv) -> Policy:
    """Any legal cell, all alike."""
    return env.rand_action


def shortest_way(env: HexEnv) -> Policy:
    """The cell for which the shortest ways of both players through it have least missing stones together."""

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        near = env.tables[state["size"] - SMALLEST]
        both = missing_stones(state["stones"], near).sum(-1)
        worth = both.masked_fill(~tensordict["action_mask"], 4 * FAR)
        return tensordict.set("action", worth.argmin(-1))

    return policy


def monte_carlo(env: HexEnv) -> Policy:
    """The cell that the mover owns most often where it wins, among random fillings of the board.

    How a filled board was filled does not matter in Hex, so a filling is a random game to its end, and counts
    for every cell that it gives the mover, as if that had been the move.
    """

    def policy(tensordict: TensorDict) -> TensorDict:
        state, mask = tensordict["state"], tensordict["action_mask"]
        near = env.tables[state["size"] - SMALLEST]
        worth = fillings(state["stones"], near, player=state["player"], count=FILLINGS)
        return tensordict.set("action", worth.masked_fill(~mask, -1.0).argmax(-1))

    return policy


def mcts(env: HexEnv) -> Policy:
    """Monte-Carlo tree search: looks ahead, and values positions by random fillings of the board."""
    return MCTS(env, _by_fillings(env), simulations=SIMULATIONS)


def _by_fillings(env: HexEnv) -> Evaluator:
    """All moves are as likely; a position is worth what its mover wins of a few random fillings."""

    def judge(root: TensorDict) -> tuple[Tensor, Tensor]:
        state, mask = root["state"], root["action_mask"]
        near = env.tables[state["size"] - SMALLEST]
        _, won = _filled(state["stones"], near, player=state["player"], count=FILLINGS_OF_A_LEAF)
        return mask / mask.sum(-1, keepdim=True), 2 * won.float().mean(-1) - 1

    return judge


def fillings(stones: Tensor, neighbours: Tensor, *, player: Tensor, count: int) -> Tensor:
    """How often the mover wins the random fillings in which it owns each node, `[B, N]` in [0, 1].

    Args:
        stones: `[B, N]` int8; cells beyond a smaller board may be filled too, they touch nothing.
        neighbours: `[B, N, 6]` int64.
        player: `[B]` int64, who is to move.
        count: how many fillings of each board.
    """
    own, won = _filled(stones, neighbours, player=player, count=count)
    owned = own.float()
    return (owned * won.unsqueeze(-1)).sum(1) / owned.sum(1).clamp(min=1)


def _filled(stones: Tensor, neighbours: Tensor, *, player: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Random fillings: what the mover owns of each, `[B, K, N]` bool, and whether it wins, `[B, K]` bool."""
    games, nodes = stones.shape
    stones, neighbours = stones.repeat_interleave(count, 0), neighbours.repeat_interleave(count, 0)
    player = player.repeat_interleave(count)
    connected = (neighbours != torch.arange(nodes, device=stones.device).view(-1, 1)).any(-1)
    free = (stones == EMPTY) & connected
    order = torch.rand(stones.shape, device=stones.device).masked_fill(~free, 2.0).argsort(-1).argsort(-1)
    gets = free & (order < (free.sum(-1, keepdim=True) + 1) // 2)
    own = (stones == (player + 1).unsqueeze(-1)) | gets
    won = reaches(own, neighbours, player=player)
    return own.view(games, count, nodes), won.view(games, count)


BASELINES: Mapping[str, Callable[[HexEnv], Policy]] = {
    "random": random_player,
    "shortest_way": shortest_way,
    "monte_carlo": monte_carlo,
    "mcts": mcts,
    **({"open_spiel": open_spiel_player} if installed() else {}),
}
