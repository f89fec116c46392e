"""How well the best possible opponent does against a policy, by playing out every one of its replies.

A policy that acts by its mode leaves few positions, and only those count that are still won for it by perfect
play: one that it lets slip is lost to the best opponent, whatever it does later. So boards of side 3 and 4
are searched whole in seconds. That a position is won need not be believed: a side that survives every reply
has proved it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.graphs.policy import Policy
from edgewise.systems.hex import dynamics, scenario
from edgewise.systems.hex.config import SMALLEST
from edgewise.systems.hex.env import HexEnv
from edgewise.systems.hex.solver import LARGEST_SOLVED, Solver

CHUNK = 4096
"""Most positions that the policy sees at once."""


@dataclass(frozen=True)
class Perfection:
    """What a policy keeps of its won positions against every reply.

    Args:
        proved_first: openings, `[size²]` bool, after which it wins as the first player.
        proved_second: openings against which it wins as the second player.
        wins_unaided: whether it wins as the first player from the empty board, opening as it likes.
    """

    proved_first: Tensor
    proved_second: Tensor
    wins_unaided: bool

    @property
    def perfect(self) -> bool:
        """Whether it wins one side of every opening, and opens well: then no play is better."""
        return self.wins_unaided and bool((self.proved_first | self.proved_second).all())

    @property
    def exploitability(self) -> float:
        """Share of openings of which it can win neither side for certain, though one of them is won."""
        return float((~(self.proved_first | self.proved_second)).float().mean())


EXACT_SIZES = (3, 4)
"""Boards on which a policy's worst case is told."""


def exploitability(player: Callable[[Mapping[str, Any]], tuple[HexEnv, Policy]]) -> dict[str, float]:
    """`Perfection.exploitability` by board, of the policy that `player` gives for settings of the game."""
    found = {}
    for size in EXACT_SIZES:
        env, policy = player({"size": size, "max_size": None, "swap": False})
        found[f"{size}x{size}"] = perfection(env, policy, size=size).exploitability
    return found


def perfection(env: HexEnv, policy: Policy, *, size: int) -> Perfection:
    """Play out every reply to the mode of `policy`, on both sides of every opening of a board.

    Args:
        env: shows boards to the policy; without swap, and with room for boards of `size`.
        policy: acts by its mode.
        size: of the boards, 4 at most.
    """
    cells = size * size
    opened = opened_boards(env, size=size, openings=torch.arange(cells, device=env.device))
    solver = Solver(size)
    first, second = (survives(env, policy, opened, seat=seat, solver=solver) for seat in (0, 1))
    empty = opened_boards(env, size=size, openings=None)
    return Perfection(first, second, bool(survives(env, policy, empty, seat=0, solver=solver)))


def survives(env: HexEnv, policy: Policy, positions: TensorDict, *, seat: int, solver: Solver) -> Tensor:
    """Whether a policy wins each of some positions against every reply, `[B]` bool.

    Args:
        env: of these boards; of any number of worlds.
        policy: acts by its mode.
        positions: `state` of undecided games, `[B]`.
        seat: the player that `policy` is.
        solver: knows their boards.
    """
    to_win = (positions["player"] == seat) == solver.decided(positions["stones"], player=positions["player"])
    kept = to_win.nonzero().squeeze(-1)
    if len(kept):
        to_win[kept] = _survives(env, policy, positions[kept], seat=seat, solver=solver)
    return to_win


def _survives(env: HexEnv, policy: Policy, positions: TensorDict, *, seat: int, solver: Solver) -> Tensor:
    """As `survives`, of positions that perfect play wins for the policy."""
    levels: list[tuple[Tensor, Tensor, Tensor]] = []
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        while len(positions):
            parent, action = _branches(env, policy, positions, seat=seat)
            before = positions[parent]
            moved = env.advance(before, action)
            over = moved.reward > 0
            kept = (~over).nonzero().squeeze(-1)
            children, child = _distinct(TensorDict({**before, **moved.state}, before.batch_size)[kept])
            # Only the policy itself can let a won position slip: then the opponent, to move, wins.
            slipped = children["player"] != seat
            slipped[slipped.clone()] = solver.decided(
                children["stones"][slipped], player=children["player"][slipped]
            )
            lost = (over & (before["player"] != seat)).index_copy(0, kept, slipped[child])
            going_on = (~slipped).nonzero().squeeze(-1)
            place = torch.full_like(slipped, -1, dtype=torch.int64)
            place[going_on] = torch.arange(len(going_on), device=place.device)
            levels.append((parent, lost, torch.full_like(parent, -1).index_copy(0, kept, place[child])))
            positions = children[going_on]
    return _backwards(levels)


def _branches(env: HexEnv, policy: Policy, positions: TensorDict, *, seat: int) -> tuple[Tensor, Tensor]:
    """The moves to follow, as rows of `positions` and cells: the policy's own, and all of its opponent."""
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


def _distinct(positions: TensorDict) -> tuple[TensorDict, Tensor]:
    """Each board once, `[D]`, and which of them every position has, `[B]`; chains may be numbered anyhow."""
    if not len(positions):
        return positions, positions["player"]
    # Boards are small and borders are always the same: cells are the digits of a number to the base 3.
    cells = positions["stones"][:, : LARGEST_SOLVED**2].long()
    power = 3 ** torch.arange(cells.shape[-1] + 1, device=cells.device)
    key = (cells * power[:-1]).sum(-1) + positions["player"] * power[-1]
    _, which = torch.unique(key, return_inverse=True)
    first = torch.full((int(which.max()) + 1,), len(which), device=which.device)
    first.scatter_reduce_(0, which, torch.arange(len(which), device=which.device), "amin")
    return positions[first], which


def _backwards(levels: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Whether each position of the first level survives: no reply loses, now or later, `[B]` bool."""
    later = torch.zeros(0, dtype=torch.bool)
    for parent, lost, child in reversed(levels):
        bad = lost.clone()
        going_on = child >= 0
        bad[going_on] = ~later[child[going_on]]
        count = int(parent.max()) + 1
        later = torch.bincount(parent, weights=bad.double(), minlength=count) == 0
    return later


def opened_boards(env: HexEnv, *, size: int, openings: Tensor | None) -> TensorDict:
    """Games of one size as they begin, `[1]`, or after the first player's stone on each opening, `[O]`."""
    count = 1 if openings is None else len(openings)
    sizes = torch.full((count,), size, device=env.device)
    game = scenario.draw_games(
        sizes,
        capacity=env.config.capacity,
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
