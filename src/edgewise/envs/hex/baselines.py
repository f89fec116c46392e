"""Players that need no learning: any cell, or the cell through which both players' shortest ways lead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict

from edgewise.envs.hex.config import SMALLEST
from edgewise.envs.hex.dynamics import FAR, missing_stones
from edgewise.envs.hex.env import HexEnv

Policy = Callable[[TensorDict], TensorDict]


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


BASELINES: Mapping[str, Callable[[HexEnv], Policy]] = {
    "random": random_player,
    "shortest_way": shortest_way,
}
