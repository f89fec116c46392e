"""Exact best response to a policy on small boards, and the exploitability that follows from it.

The search follows the policy's mode and every reply of the opponent. It keeps only positions that perfect
play wins for the policy: once the policy loses such a position, the best opponent wins the game. Boards of
side 3 and 4 therefore take seconds. A side that wins against every reply is proved to be won.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.envs.policy import Policy
from edgewise.systems.hex import dynamics, scenario
from edgewise.systems.hex.config import SMALLEST
from edgewise.systems.hex.env import HexEnv
from edgewise.systems.hex.solver import LARGEST_SOLVED, Solver

CHUNK = 4096
"""Positions per forward pass of the policy."""


@dataclass(frozen=True)
class BestResponse:
    """Results of a policy against the best possible opponent.

    Args:
        wins_first: `[size²]` bool, the openings with which the policy wins as the first player.
        wins_second: `[size²]` bool, the openings against which it wins as the second player.
        wins_from_empty: whether it wins as the first player from the empty board, with its own opening.
    """

    wins_first: Tensor
    wins_second: Tensor
    wins_from_empty: bool

    @property
    def perfect(self) -> bool:
        """Whether the policy wins one side of every opening and also its own opening, which is optimal."""
        return self.wins_from_empty and bool((self.wins_first | self.wins_second).all())

    @property
    def exploitability(self) -> float:
        """Share of openings of which the policy wins neither side, although perfect play wins one."""
        return float((~(self.wins_first | self.wins_second)).float().mean())


EXACT_SIZES = (3, 4)
"""Board sides for which exploitability is computed."""


def exploitability(player: Callable[[Mapping[str, Any]], tuple[HexEnv, Policy]]) -> dict[str, float]:
    """Compute `BestResponse.exploitability` by board.

    Args:
        player: builds the environment and the policy for given settings of the game.
    """
    found = {}
    for size in EXACT_SIZES:
        env, policy = player({"size": size, "max_size": None, "swap": False})
        found[f"{size}x{size}"] = best_response(env, policy, size=size).exploitability
    return found


def best_response(env: HexEnv, policy: Policy, *, size: int) -> BestResponse:
    """Search every reply to the mode of `policy`, on both sides of every opening.

    Args:
        env: without swap, and with room for boards of `size`.
        policy: acts by its mode.
        size: side of the board, 4 at most.
    """
    cells = size * size
    opened = opening_positions(env, size=size, openings=torch.arange(cells, device=env.device))
    solver = Solver(size)
    first, second = (wins_all_replies(env, policy, opened, seat=seat, solver=solver) for seat in (0, 1))
    empty = opening_positions(env, size=size, openings=None)
    return BestResponse(first, second, bool(wins_all_replies(env, policy, empty, seat=0, solver=solver)))


def wins_all_replies(
    env: HexEnv, policy: Policy, positions: TensorDict, *, seat: int, solver: Solver
) -> Tensor:
    """Return whether a policy wins each position against every reply, `[B]` bool.

    Args:
        env: with room for these boards; any number of worlds.
        policy: acts by its mode.
        positions: `state` of undecided games, `[B]`.
        seat: the player that `policy` plays.
        solver: for boards of this side.
    """
    to_win = (positions["player"] == seat) == solver.mover_wins(
        positions["stones"], player=positions["player"]
    )
    kept = to_win.nonzero().squeeze(-1)
    if len(kept):
        to_win[kept] = _search_replies(env, policy, positions[kept], seat=seat, solver=solver)
    return to_win


def _search_replies(
    env: HexEnv, policy: Policy, positions: TensorDict, *, seat: int, solver: Solver
) -> Tensor:
    """Search all replies from positions that perfect play wins for the policy, `[B]` bool."""
    levels: list[tuple[Tensor, Tensor, Tensor]] = []
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        while len(positions):
            parent, action = _moves_to_follow(env, policy, positions, seat=seat)
            before = positions[parent]
            moved = env.advance(before, action)
            over = moved.reward > 0
            kept = (~over).nonzero().squeeze(-1)
            children, child = _unique_positions(
                TensorDict({**before, **moved.state}, before.batch_size)[kept]
            )
            # Only a move of the policy can lose a won position; then the opponent, to move, wins.
            lost_win = children["player"] != seat
            lost_win[lost_win.clone()] = solver.mover_wins(
                children["stones"][lost_win], player=children["player"][lost_win]
            )
            lost = (over & (before["player"] != seat)).index_copy(0, kept, lost_win[child])
            alive = (~lost_win).nonzero().squeeze(-1)
            place = torch.full_like(lost_win, -1, dtype=torch.int64)
            place[alive] = torch.arange(len(alive), device=place.device)
            levels.append((parent, lost, torch.full_like(parent, -1).index_copy(0, kept, place[child])))
            positions = children[alive]
    return _backward(levels)


def _moves_to_follow(
    env: HexEnv, policy: Policy, positions: TensorDict, *, seat: int
) -> tuple[Tensor, Tensor]:
    """Return moves as rows of `positions` and cells: the policy's own, and all of its opponent's."""
    mask = env.mask(positions)
    own = positions["player"] == seat
    rows = own.nonzero().squeeze(-1)
    chosen = torch.zeros_like(mask)
    for part in rows.split(CHUNK) if len(rows) else ():
        state = positions[part]
        root = TensorDict({**env.observe(state), "state": state, "action_mask": mask[part]}, [len(part)])
        chosen[part, policy(root)["action"]] = True
    parent, action = torch.where(own.unsqueeze(-1), chosen, mask).nonzero().unbind(-1)
    return parent, action


def _unique_positions(positions: TensorDict) -> tuple[TensorDict, Tensor]:
    """Return each board once, `[D]`, and its row for every position, `[B]`; chain numbers may differ."""
    if not len(positions):
        return positions, positions["player"]
    # Boards are small and borders constant, so the cells are the digits of a number to the base 3.
    cells = positions["stones"][:, : LARGEST_SOLVED**2].long()
    power = 3 ** torch.arange(cells.shape[-1] + 1, device=cells.device)
    key = (cells * power[:-1]).sum(-1) + positions["player"] * power[-1]
    _, which = torch.unique(key, return_inverse=True)
    first = torch.full((int(which.max()) + 1,), len(which), device=which.device)
    first.scatter_reduce_(0, which, torch.arange(len(which), device=which.device), "amin")
    return positions[first], which


def _backward(levels: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Return whether no reply to each position of the first level loses, now or later, `[B]` bool."""
    later = torch.zeros(0, dtype=torch.bool)
    for parent, lost, child in reversed(levels):
        bad = lost.clone()
        alive = child >= 0
        bad[alive] = ~later[child[alive]]
        count = int(parent.max()) + 1
        later = torch.bincount(parent, weights=bad.double(), minlength=count) == 0
    return later


def opening_positions(env: HexEnv, *, size: int, openings: Tensor | None) -> TensorDict:
    """Return the start of a game, `[1]`, or the games after each of the given openings, `[O]`."""
    count = 1 if openings is None else len(openings)
    sizes = torch.full((count,), size, device=env.device)
    game = scenario.draw_games(
        sizes,
        capacity=env.built_with.capacity,
        tables=env.tables,
        opening_plies=torch.zeros_like(sizes),
        most_plies=0,
        generator=env.generator,
    )
    if openings is not None:
        near = env.tables[sizes - SMALLEST, openings]
        game["stones"], game["chains"] = dynamics.place(
            game["stones"], game["chains"], cell=openings, player=game["player"], neighbours=near
        )
        game["player"], game["plies"] = 1 - game["player"], game["plies"] + 1
    return TensorDict(game, batch_size=[count])
