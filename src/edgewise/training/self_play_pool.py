"""Frozen snapshots of a policy and how it fares against each: whom to play next, in a checkpoint's terms."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

MATCHMAKING = ("latest", "uniform", "hard", "variance")
NEVER = -1
MEMORY = 0.99
"""How much of the games against a snapshot still counts after one more game."""


class OpponentPool:
    """Room for so many snapshots; the oldest gives way when it is full.

    All tensors have their final size from the start, so a checkpoint of a run at its beginning and at its end
    have the same shape.

    Args:
        policy: the module that snapshots are taken of.
        size: K, how many are kept.

    Attributes:
        taken: `[K]` int64, the batch at which each was taken, -1 where there is none yet.
        points: `[K]`, the learner's recent points against each, draws one half.
        games: `[K]`, how many recent games that were.
    """

    def __init__(self, policy: nn.Module, *, size: int) -> None:
        if size < 1:
            raise ValueError(f"a pool has room for 1 snapshot or more, got {size}")
        self._weights = {
            name: value.detach().unsqueeze(0).repeat(size, *[1] * value.dim())
            for name, value in policy.state_dict().items()
        }
        self.taken = torch.full((size,), NEVER)
        self.points, self.games = torch.zeros(size), torch.zeros(size)

    @property
    def count(self) -> int:
        """How many snapshots there are."""
        return int((self.taken >= 0).sum())

    @property
    def scores(self) -> Tensor:
        """The learner's expected score against each, `[K]`, as if one game more had been drawn."""
        return (self.points + 0.5) / (self.games + 1)

    def add(self, policy: nn.Module, *, batch: int) -> int:
        """Take a snapshot into the place of the oldest, and return the place."""
        place = int(self.taken.argmin())
        for name, value in policy.state_dict().items():
            self._weights[name][place] = value
        self.taken[place], self.points[place], self.games[place] = batch, 0.0, 0.0
        return place

    def player(self, place: int, *, like: nn.Module) -> nn.Module:
        """The snapshot at `place` as a module of its own, in evaluation mode, without gradients."""
        module = copy.deepcopy(like)
        module.load_state_dict({name: value[place] for name, value in self._weights.items()})
        return module.eval().requires_grad_(False)

    def draw(self, matchmaking: str, *, generator: torch.Generator) -> int:
        """A place to play against: see `odds`."""
        return int(torch.multinomial(self.odds(matchmaking), 1, generator=generator))

    def odds(self, matchmaking: str) -> Tensor:
        """How likely each place is drawn, `[K]`, summing to 1.

        `latest` plays the newest snapshot, `uniform` all alike. The other two are prioritised fictitious
        self-play (https://doi.org/10.1038/s41586-019-1724-z) on the score x: `hard` by (1 - x)², `variance`
        by x (1 - x).
        """
        if self.count == 0:
            raise ValueError("an empty pool has nobody to play")
        score, there = self.scores, self.taken >= 0
        weights = {
            "latest": (self.taken == self.taken.max()).float(),
            "uniform": torch.ones_like(score),
            "hard": (1 - score).square(),
            "variance": score * (1 - score),
        }
        if matchmaking not in weights:
            raise ValueError(f"matchmaking is one of {', '.join(MATCHMAKING)}, got {matchmaking}")
        chosen = weights[matchmaking] * there
        return chosen / chosen.sum()

    def record(self, place: int, *, points: float, games: int) -> None:
        """Remember `points` won in `games` against the snapshot at `place`; older games fade."""
        fade = MEMORY**games
        self.points[place] = self.points[place] * fade + points
        self.games[place] = self.games[place] * fade + games

    def state_dict(self) -> dict[str, Any]:
        """Snapshots and results."""
        return {
            "weights": self._weights,
            "taken": self.taken,
            "points": self.points,
            "games": self.games,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue as the pool that gave `state` would have."""
        self._weights = {name: value.clone() for name, value in state["weights"].items()}
        self.taken, self.points, self.games = (state[key].clone() for key in ("taken", "points", "games"))
