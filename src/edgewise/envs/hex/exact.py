"""How well the best possible opponent does against a policy, by playing out every one of its replies.

A policy that acts by its mode leaves so few positions that boards of side 3 and 4 are searched whole in
seconds. No solver is needed to know whether it is perfect: a side that survives every reply has proved that
its position is won.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.envs.hex import dynamics, scenario
from edgewise.envs.hex.config import SMALLEST
from edgewise.envs.hex.env import HexEnv

Policy = Callable[[TensorDict], TensorDict]
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


def perfection(env: HexEnv, policy: Policy, *, size: int) -> Perfection:
    """Play out every reply to the mode of `policy`, on both sides of every opening of a board."""
    cells = size * size
    opened = _positions(env, size=size, openings=torch.arange(cells, device=env.device))
    first, second = (survives(env, policy, opened, seat=seat) for seat in (0, 1))
    empty = _positions(env, size=size, openings=None)
    return Perfection(first, second, bool(survives(env, policy, empty, seat=0)))


def survives(env: HexEnv, policy: Policy, positions: TensorDict, *, seat: int) -> Tensor:
    """Whether a policy wins each of some positions against every reply, `[B]` bool.

    Args:
        env: of these boards; of any number of worlds.
        policy: acts by its mode.
        positions: `state` of undecided games, `[B]`.
        seat: the player that `policy` is.
    """
    levels: list[tuple[Tensor, Tensor, Tensor]] = []
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        while len(positions):
            parent, action = _branches(env, policy, positions, seat=seat)
            before = positions[parent]
            moved = env.advance(before, action)
            over = moved.reward > 0
            lost = over & (before["player"] != seat)
            kept = (~over).nonzero().squeeze(-1)
            children, child = _distinct(TensorDict({**before, **moved.state}, before.batch_size)[kept])
            levels.append((parent, lost, torch.full_like(parent, -1).index_copy(0, kept, child)))
            positions = children
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
    key = torch.cat((positions["stones"], positions["player"].unsqueeze(-1).to(torch.int8)), -1)
    _, which = torch.unique(key, dim=0, return_inverse=True)
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


def _positions(env: HexEnv, *, size: int, openings: Tensor | None) -> TensorDict:
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
