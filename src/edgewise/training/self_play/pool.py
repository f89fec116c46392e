"""A pool of frozen snapshots of a policy, with results against each and a choice of opponents."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from edgewise.evaluation.arena.ratings import POINTS, fit

MATCHMAKING = ("latest", "uniform", "hard", "variance")
NEVER = -1
DECAY = 0.99
"""Decay of older results against a snapshot with each further game."""


class OpponentPool:
    """A pool of snapshots; when it is full, a new one replaces the oldest.

    All tensors have their final size from the start, so that all checkpoints of a run have the same shapes.

    Args:
        policy: the module to take snapshots of.
        size: K, the number of slots.

    Attributes:
        taken: `[K]` int64, the batch at which each was taken, -1 for an empty slot.
        points: `[K]`, recent points of the learner against each; a draw is one half.
        games: `[K]`, number of recent games.
        ratings: `[K]` float64, Bradley-Terry ratings of the snapshots; the first of the run has 0.
    """

    def __init__(self, policy: nn.Module, *, size: int) -> None:
        if size < 1:
            raise ValueError(f"a pool needs a size of 1 or more, got {size}")
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
        """Number of snapshots."""
        return int((self.taken >= 0).sum())

    @property
    def newest(self) -> int:
        """Slot of the newest snapshot."""
        return int(self.taken.argmax())

    @property
    def scores(self) -> Tensor:
        """Expected score of the learner against each, `[K]`, with one drawn game as a prior."""
        return (self.points + 0.5) / (self.games + 1)

    def add(self, policy: nn.Module, *, batch: int) -> int:
        """Add a snapshot in the slot of the oldest, and return the slot.

        Games that the learner has played since the last snapshot count as games of this one.
        """
        slot = int(self.taken.argmin())
        for name, value in policy.state_dict().items():
            self._weights[name][slot] = value
        self._since[:, slot], self._table[:, :, slot] = 0.0, 0.0
        self._table[:, slot] = self._since
        self._since = torch.zeros_like(self._since)
        self.taken[slot], self.points[slot], self.games[slot] = batch, 0.0, 0.0
        self._rate(slot)
        return slot

    def _rate(self, newest: int) -> None:
        """Fit ratings to all results among the snapshots; the oldest keeps its rating."""
        there = self.taken.argsort()[int((self.taken < 0).sum()) :]
        if len(there) == 1:
            self.ratings[newest] = 0.0
            return
        won, games = self._table[:, there][:, :, there]
        met = games + games.T
        # One drawn game as a prior for all pairs that played, and for neighbours in time to connect all.
        drawn = ((met > 0) | torch.ones_like(met).tril(1).triu(-1).bool()).double().fill_diagonal_(0)
        points = won + (games - won).T + drawn / 2
        strength = torch.from_numpy(fit(points.numpy(), (met + drawn).numpy())) * POINTS
        self.ratings[there] = strength - strength[0] + self.ratings[there[0]]

    def player(self, slot: int, *, like: nn.Module) -> nn.Module:
        """Build a module with the weights of a snapshot, in evaluation mode and without gradients."""
        module = copy.deepcopy(like)
        module.load_state_dict({name: value[slot] for name, value in self._weights.items()})
        return module.eval().requires_grad_(False)

    def draw(self, matchmaking: str, *, generator: torch.Generator) -> int:
        """Sample the slot of an opponent; see `odds`."""
        return int(torch.multinomial(self.odds(matchmaking), 1, generator=generator))

    def odds(self, matchmaking: str) -> Tensor:
        """Compute the probability of each slot, `[K]`.

        `latest` chooses the newest snapshot, `uniform` all with equal probability. The other two are
        prioritised fictitious self-play (https://doi.org/10.1038/s41586-019-1724-z) on the score x: `hard` by
        (1 - x)², `variance` by x (1 - x).
        """
        if self.count == 0:
            raise ValueError("the pool is empty")
        score, there = self.scores, self.taken >= 0
        weights = {
            "latest": (self.taken == self.taken.max()).float(),
            "uniform": torch.ones_like(score),
            "hard": (1 - score).square(),
            "variance": score * (1 - score),
        }
        if matchmaking not in weights:
            raise ValueError(f"matchmaking must be one of {', '.join(MATCHMAKING)}, got {matchmaking}")
        chosen = weights[matchmaking] * there
        return chosen / chosen.sum()

    def record(self, slot: int, *, points: float, games: int) -> None:
        """Add `points` from `games` against the snapshot in a slot; older games decay."""
        decay = DECAY**games
        self.points[slot] = self.points[slot] * decay + points
        self.games[slot] = self.games[slot] * decay + games
        self._since[:, slot] += torch.tensor([points, float(games)], dtype=torch.float64)

    def state_dict(self) -> dict[str, Any]:
        """Return snapshots and results."""
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
        """Restore snapshots and results."""
        self._weights = {name: value.clone() for name, value in state["weights"].items()}
        self.taken, self.points, self.games = (state[key].clone() for key in ("taken", "points", "games"))
        self.ratings, self._since, self._table = (state[key].clone() for key in ("ratings", "since", "table"))
