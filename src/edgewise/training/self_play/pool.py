"""Frozen snapshots of a policy and how it fares against each: whom to play next, in a checkpoint's terms."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from edgewise.evaluation.arena.ratings import POINTS, fit

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
        ratings: `[K]` float64, Bradley-Terry ratings of the snapshots, the first of the run being 0.
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
        self.ratings = torch.zeros(size, dtype=torch.float64)
        # Points and games of the learner since the last snapshot, and of each snapshot against older ones.
        self._since = torch.zeros(2, size, dtype=torch.float64)
        self._table = torch.zeros(2, size, size, dtype=torch.float64)

    @property
    def count(self) -> int:
        """How many snapshots there are."""
        return int((self.taken >= 0).sum())

    @property
    def newest(self) -> int:
        """The place of the snapshot taken last."""
        return int(self.taken.argmax())

    @property
    def scores(self) -> Tensor:
        """The learner's expected score against each, `[K]`, as if one game more had been drawn."""
        return (self.points + 0.5) / (self.games + 1)

    def add(self, policy: nn.Module, *, batch: int) -> int:
        """Take a snapshot into the place of the oldest, and return the place.

        The games that the learner has played on its way here, since the last snapshot, count as this one's.
        """
        place = int(self.taken.argmin())
        for name, value in policy.state_dict().items():
            self._weights[name][place] = value
        self._since[:, place], self._table[:, :, place] = 0.0, 0.0
        self._table[:, place] = self._since
        self._since = torch.zeros_like(self._since)
        self.taken[place], self.points[place], self.games[place] = batch, 0.0, 0.0
        self._rate(place)
        return place

    def _rate(self, newest: int) -> None:
        """Fit ratings to all results among the snapshots; the oldest keeps the rating that it had."""
        there = self.taken.argsort()[int((self.taken < 0).sum()) :]
        if len(there) == 1:
            self.ratings[newest] = 0.0
            return
        won, games = self._table[:, there][:, :, there]
        met = games + games.T
        # A drawn game more for all that met, and for neighbours in time, which ties every two together.
        drawn = ((met > 0) | torch.ones_like(met).tril(1).triu(-1).bool()).double().fill_diagonal_(0)
        points = won + (games - won).T + drawn / 2
        strength = torch.from_numpy(fit(points.numpy(), (met + drawn).numpy())) * POINTS
        self.ratings[there] = strength - strength[0] + self.ratings[there[0]]

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
        self._since[:, place] += torch.tensor([points, float(games)], dtype=torch.float64)

    def state_dict(self) -> dict[str, Any]:
        """Snapshots and results."""
        return {
            "weights": self._weights,
            "taken": self.taken,
            "points": self.points,
            "games": self.games,
            "ratings": self.ratings,
            "since": self._since,
            "table": self._table,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue as the pool that gave `state` would have."""
        self._weights = {name: value.clone() for name, value in state["weights"].items()}
        self.taken, self.points, self.games = (state[key].clone() for key in ("taken", "points", "games"))
        self.ratings, self._since, self._table = (state[key].clone() for key in ("ratings", "since", "table"))
