"""Players that need no learning: any cell, or the cell through which both players' shortest ways lead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.hex import dynamics
from edgewise.envs.hex.config import SMALLEST
from edgewise.envs.hex.env import HexEnv

Policy = Callable[[TensorDict], TensorDict]
FAR = 1000
"""More stones than any way needs: what a way through the other player's stones costs."""


def random_player(env: HexEnv) -> Policy:
    """Any legal cell, all alike."""
    return env.rand_action


def shortest_way(env: HexEnv) -> Policy:
    """The cell for which the shortest ways of both players through it have least missing stones together."""

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        near = env.tables[state["size"] - SMALLEST]
        both = sum(missing_stones(state["stones"], near, player=player) for player in (0, 1))
        worth = torch.as_tensor(both).masked_fill(~tensordict["action_mask"], 4 * FAR)
        return tensordict.set("action", worth.argmin(-1))

    return policy


def missing_stones(stones: Tensor, neighbours: Tensor, *, player: int) -> Tensor:
    """How many stones `player` lacks to join its sides by a way through each node, `[B, N]` int64.

    Args:
        stones: `[B, N]` int8.
        neighbours: `[B, N, 6]` int64.
        player: 0 or 1.
    """
    own = stones == player + 1
    price = torch.where(own, 0, torch.where(stones == dynamics.EMPTY, 1, FAR)).long()
    start, goal = (-4, -3) if player == 0 else (-2, -1)
    return _ways(price, neighbours, start) + _ways(price, neighbours, goal) - price


def _ways(price: Tensor, neighbours: Tensor, border: int) -> Tensor:
    """The cheapest way from a border to each node, its own price included, `[B, N]`."""
    count, nodes = price.shape
    far = torch.full_like(price, FAR)
    far[:, border] = 0
    flat = neighbours.reshape(count, -1)
    for _ in range(nodes):
        nearest = far.gather(1, flat).view(count, nodes, -1).amin(-1)
        nearer = torch.minimum(far, (nearest + price).clamp(max=FAR))
        if torch.equal(nearer, far):
            break
        far = nearer
    return far


BASELINES: Mapping[str, Callable[[HexEnv], Policy]] = {
    "random": random_player,
    "shortest_way": shortest_way,
}
