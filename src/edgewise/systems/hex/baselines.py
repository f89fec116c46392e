"""Baseline players without learning: random, shortest path, current, Monte Carlo and tree search."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.policy import Policy
from edgewise.experiments.learning_pays import References
from edgewise.search.mcts import MCTS
from edgewise.search.tree import Evaluator
from edgewise.systems.hex import circuit
from edgewise.systems.hex.config import SMALLEST
from edgewise.systems.hex.dynamics import EMPTY, FAR, connects, missing_stones
from edgewise.systems.hex.env import HexEnv
from edgewise.systems.hex.open_spiel import installed, open_spiel_player

FILLINGS = 64
"""Random fillings of the board that the Monte-Carlo player samples per move."""
TRIED, PLIES = 10, 9
"""Cells that `least_resistance` tries, and plies that it looks ahead after each."""
SIMULATIONS, FILLINGS_PER_LEAF = 128, 4
"""Simulations of the tree search per move, and random fillings that evaluate each leaf."""


def random_player(env: HexEnv) -> Policy:
    """Return a policy that plays a uniformly random legal cell."""
    return env.rand_action


def shortest_way(env: HexEnv) -> Policy:
    """Return a policy that plays the cell where both players' shortest paths need the fewest stones."""

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        near = env.tables[state["size"] - SMALLEST]
        missing = missing_stones(state["stones"], near).sum(-1)
        cost = missing.masked_fill(~tensordict["action_mask"], 4 * FAR)
        return tensordict.set("action", cost.argmin(-1))

    return policy


def most_current(env: HexEnv) -> Policy:  # noqa: ARG001 - the same for all boards
    """Return a policy that plays the cell where the product of both players' currents is largest."""

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        product = _products(state["stones"], state["size"], tensordict["action_mask"])
        return tensordict.set("action", product.argmax(-1))

    return policy


def least_resistance(env: HexEnv) -> Policy:  # noqa: ARG001 - the same for all boards
    """Return a policy that looks ahead along the line that `most_current` would play for both sides.

    It tries the `TRIED` cells with the largest product of currents, lets both players go on by `most_current`
    for `PLIES` plies, and plays the cell after which its own resistance over the opponent's is lowest.
    """

    def policy(tensordict: TensorDict) -> TensorDict:
        state, mask = tensordict["state"], tensordict["action_mask"]
        tried = _products(state["stones"], state["size"], mask).topk(min(TRIED, mask.shape[-1]), -1).indices
        legal = mask.gather(-1, tried).flatten()
        rows = torch.arange(len(mask), device=mask.device).repeat_interleave(tried.shape[-1])
        size, player = state["size"][rows], state["player"][rows]
        stones, free = state["stones"][rows], mask[rows]
        stones, free = _put(stones, free, tried.flatten(), player)
        for ply in range(PLIES):
            mover = 1 - player if ply % 2 == 0 else player
            stones, free = _put(stones, free, _products(stones, size, free).argmax(-1), mover)
        resistance = circuit.currents(stones, size)[1].log()
        own, other = (resistance.gather(-1, side.unsqueeze(-1)).squeeze(-1) for side in (player, 1 - player))
        worth = (other - own).masked_fill(~legal, -torch.inf).view_as(tried)
        return tensordict.set("action", tried.gather(-1, worth.argmax(-1, keepdim=True)).squeeze(-1))

    return policy


def _products(stones: Tensor, size: Tensor, free: Tensor) -> Tensor:
    """Return the product of both players' currents at each node, `[B, N]`; -1 where it is not free."""
    return circuit.currents(stones, size)[0].prod(-1).masked_fill(~free, -1.0)


def _put(stones: Tensor, free: Tensor, node: Tensor, player: Tensor) -> tuple[Tensor, Tensor]:
    """Return stones and free nodes `[B, N]` with another stone of `player` `[B]` at `node` `[B]`."""
    place = node.unsqueeze(-1)
    colour = (player + 1).to(stones.dtype).unsqueeze(-1)
    return stones.scatter(-1, place, colour), free.scatter(
        -1, place, torch.zeros_like(place, dtype=torch.bool)
    )


def monte_carlo(env: HexEnv) -> Policy:
    """Return a policy that plays the cell with the highest win rate over random fillings of the board.

    The order of moves on a full Hex board does not matter. A random filling is therefore a random game played
    to its end, and it counts for every cell that the mover owns in it.
    """

    def policy(tensordict: TensorDict) -> TensorDict:
        state, mask = tensordict["state"], tensordict["action_mask"]
        near = env.tables[state["size"] - SMALLEST]
        win_rate = filling_win_rates(state["stones"], near, player=state["player"], count=FILLINGS)
        return tensordict.set("action", win_rate.masked_fill(~mask, -1.0).argmax(-1))

    return policy


def mcts(env: HexEnv) -> Policy:
    """Return Monte-Carlo tree search with leaves evaluated by random fillings of the board."""
    return MCTS(env, _filling_evaluator(env), simulations=SIMULATIONS)


def _filling_evaluator(env: HexEnv) -> Evaluator:
    """Return an evaluator with a uniform prior and the mover's mean result over a few random fillings."""

    def evaluate(root: TensorDict) -> tuple[Tensor, Tensor]:
        state, mask = root["state"], root["action_mask"]
        near = env.tables[state["size"] - SMALLEST]
        _, won = _random_fillings(state["stones"], near, player=state["player"], count=FILLINGS_PER_LEAF)
        return mask / mask.sum(-1, keepdim=True), 2 * won.float().mean(-1) - 1

    return evaluate


def filling_win_rates(stones: Tensor, neighbours: Tensor, *, player: Tensor, count: int) -> Tensor:
    """Compute the mover's win rate over the random fillings in which it owns each node, `[B, N]` in [0, 1].

    Args:
        stones: `[B, N]` int8. Padding cells of smaller boards may be filled; they touch nothing.
        neighbours: `[B, N, 6]` int64.
        player: `[B]` int64, the player to move.
        count: fillings per board.
    """
    own, won = _random_fillings(stones, neighbours, player=player, count=count)
    owned = own.float()
    return (owned * won.unsqueeze(-1)).sum(1) / owned.sum(1).clamp(min=1)


def _random_fillings(
    stones: Tensor, neighbours: Tensor, *, player: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """Sample fillings: the nodes the mover owns, `[B, K, N]` bool, and whether it wins, `[B, K]` bool."""
    games, nodes = stones.shape
    stones, neighbours = stones.repeat_interleave(count, 0), neighbours.repeat_interleave(count, 0)
    player = player.repeat_interleave(count)
    connected = (neighbours != torch.arange(nodes, device=stones.device).view(-1, 1)).any(-1)
    free = (stones == EMPTY) & connected
    order = torch.rand(stones.shape, device=stones.device).masked_fill(~free, 2.0).argsort(-1).argsort(-1)
    filled = free & (order < (free.sum(-1, keepdim=True) + 1) // 2)
    own = (stones == (player + 1).unsqueeze(-1)) | filled
    won = connects(own, neighbours, player=player)
    return own.view(games, count, nodes), won.view(games, count)


BASELINES: Mapping[str, Callable[[HexEnv], Policy]] = {
    "random": random_player,
    "shortest_way": shortest_way,
    "most_current": most_current,
    "least_resistance": least_resistance,
    "monte_carlo": monte_carlo,
    "mcts": mcts,
    **({"open_spiel": open_spiel_player} if installed() else {}),
}


def references(env: HexEnv | None) -> References:  # noqa: ARG001 - the same for all boards
    """Return the rules that count: those without random fillings, which are slow and weaker."""
    return References(("shortest_way", "most_current", "least_resistance"))
