"""Baseline players without learning: random, and a heuristic that looks one ply ahead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.policy import Policy
from edgewise.systems.hive import dynamics
from edgewise.systems.hive.env import HiveEnv
from edgewise.systems.hive.pieces import Hand

WIN, QUEEN_SIDE, REPLY = 1000.0, 1.0, 0.02
"""Value of a won game, of one occupied hex around the opponent's queen, and of one legal reply less."""
BATCH = 4096
"""Positions that are evaluated together."""


def random_player(env: HiveEnv) -> Policy:
    """Return a policy that plays a uniformly random legal move."""
    return env.rand_action


def greedy(env: HiveEnv) -> Policy:
    """Return a policy that plays the move with the best position after it, see `evaluate`."""

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        mask = tensordict["action_mask"]
        position = {name: value for name, value in state.items() if name != "step"}
        game, place = mask.nonzero(as_tuple=True)
        value = torch.full(mask.shape, -torch.inf, device=mask.device)
        for rows, places in zip(game.split(BATCH), place.split(BATCH), strict=True):
            before = {name: entry[rows] for name, entry in position.items()}
            after = dynamics.play(
                before, before["moves"][torch.arange(len(rows), device=rows.device), places], env.hand
            )
            value[rows, places] = evaluate(after, env.hand)
        return tensordict.set("action", value.argmax(-1))

    return policy


def evaluate(position: dynamics.Position, hand: Hand) -> Tensor:
    """Evaluate positions for the player that has just moved, `[B]` float.

    Counts occupied hexes around the queens and the legal replies of the opponent. A repeated position is
    worth half a hex less, so that games make progress.
    """
    mover = 1 - position["player"]
    around = dynamics.around_queens(position, hand)
    rows = torch.arange(len(mover), device=mover.device)
    pressure = around[rows, 1 - mover] - around[rows, mover]
    table = dynamics.mover_table(position, dynamics.mover_board(position), hand)
    value = QUEEN_SIDE * pressure - REPLY * table.flatten(1).sum(-1)
    value = value - 0.5 * (dynamics.repetitions(position) - 1)
    return value + WIN * dynamics.result(position, hand, player=mover)


BASELINES: Mapping[str, Callable[[HiveEnv], Policy]] = {"random": random_player, "greedy": greedy}
