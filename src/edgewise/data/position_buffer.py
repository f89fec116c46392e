"""A replay buffer of positions, whose value targets are the outcomes of the episodes.

Positions are kept in the order of play, one row per world. The outcome of a position is computed when it is
sampled from the rewards that follow it in its row, so a position counts as soon as its game has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

OUTCOME = "outcome"


class PositionBuffer:
    """A ring buffer of the latest positions of every world.

    Args:
        capacity: largest number of positions; every world has an equal share of it, at least a batch.

    Attributes:
        stored: `[B, L]` positions, or None if nothing has been stored: `reward` is in player 0's view.

    Example:
        >>> step = TensorDict({"player": torch.tensor([[0, 1, 0]])}, [1, 3])
        >>> reward, done = torch.tensor([[0.0, 1.0, 0.0]]), torch.tensor([[False, True, False]])
        >>> buffer = PositionBuffer(64)
        >>> buffer.extend(step, reward=reward, done=done)
        >>> buffer.sample(2, generator=torch.Generator().manual_seed(0))["outcome"].abs()
        tensor([1., 1.])
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.stored: TensorDictBase | None = None
        self._cursor = self._length = 0
        self._outcome: Tensor | None = None
        self._finished: Tensor | None = None

    @property
    def finished(self) -> int:
        """Number of positions of finished games."""
        return 0 if self._finished is None else int(self._finished.sum())

    @property
    def outcomes(self) -> Tensor:
        """The outcomes of all positions of finished episodes, `[K]`."""
        assert self._outcome is not None
        assert self._finished is not None
        return self._outcome[self._finished]

    def extend(self, positions: TensorDictBase, *, reward: Tensor, done: Tensor) -> None:
        """Store consecutive steps of every world.

        Args:
            positions: `[B, T]`, in games of two with `player`, who moves, and any entries to keep.
            reward: `[B, T]`, of the move made there, in the view of its player.
            done: `[B, T]` bool, whether the game ended with it.
        """
        worlds, steps = positions.batch_size
        length = max(self.capacity // worlds, steps)
        entries = positions.clone()
        entries["reward"], entries["done"] = reward * _side(positions), done.clone()
        if self.stored is None:
            self.stored = entries[:, :1].expand(worlds, length).clone()
        place = (self._cursor + torch.arange(steps, device=reward.device)) % length
        self.stored[:, place] = entries
        self._cursor, self._length = (self._cursor + steps) % length, min(length, self._length + steps)
        self._settle()

    def sample(self, count: int, *, generator: torch.Generator) -> TensorDictBase:
        """Sample positions of finished games `[count]`, with `outcome` in the mover's view and `index`."""
        assert self.stored is not None
        assert self._finished is not None
        assert self._outcome is not None
        known = self._finished.flatten().nonzero().squeeze(-1)
        chosen = known[torch.randint(len(known), (count,), generator=generator).to(known.device)]
        world, place = chosen // self.stored.shape[1], chosen % self.stored.shape[1]
        samples = self.stored[world, place]
        samples.set(OUTCOME, self._outcome[world, place])
        return samples.set("index", chosen)

    def replace(self, index: Tensor, name: str, value: Tensor) -> None:
        """Replace an entry of the positions at `index` `[M]`, as `sample` gave it."""
        assert self.stored is not None
        self.stored[name].flatten(0, 1)[index] = value

    def _settle(self) -> None:
        """Sum the rewards from every position to the end of its game, and mark the games that have one.

        A game that was cut off, at a limit of steps, counts with the rewards that it had.
        """
        assert self.stored is not None
        length = self.stored.shape[1]
        device = self.stored["reward"].device
        newest = torch.arange(self._cursor - 1, self._cursor - 1 - self._length, -1, device=device) % length
        reward, done = self.stored["reward"][:, newest], self.stored["done"][:, newest]
        outcome, finished = torch.zeros_like(reward), done.clone()
        total, ended = torch.zeros_like(reward[:, 0]), torch.zeros_like(done[:, 0])
        for back in range(self._length):
            total = reward[:, back] + total.masked_fill(done[:, back], 0.0)
            ended = ended | done[:, back]
            outcome[:, back], finished[:, back] = total, ended
        self._outcome = torch.zeros_like(self.stored["reward"])
        self._finished = torch.zeros_like(self.stored["done"])
        self._outcome[:, newest] = outcome * _side(self.stored)[:, newest]
        self._finished[:, newest] = finished

    def state_dict(self) -> dict[str, Any]:
        """Return the stored positions and where the next ones go."""
        stored = {} if self.stored is None else self.stored.clone().to_dict()
        return {"stored": stored, "cursor": self._cursor, "length": self._length}

    def load_state_dict(self, state: Mapping[str, Any], *, device: torch.device | str = "cpu") -> None:
        """Restore a state; the next samples are then those of the saved buffer."""
        self.stored = self._outcome = self._finished = None
        self._cursor, self._length = int(state["cursor"]), int(state["length"])
        if state["stored"]:
            shape = state["stored"]["done"].shape
            self.stored = TensorDict(state["stored"], batch_size=shape, device=device).clone()
            self._settle()


def _side(positions: TensorDictBase) -> Tensor:
    """Return 1 for player 0 and -1 for player 1, or 1 for the only one, `[B, T]`."""
    player = positions.get("player", None)
    if player is None:
        return torch.ones(positions.batch_size, device=positions.device)
    return 1.0 - 2.0 * player
