"""Loop detection: which successors are an earlier goal of their own episode."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.reasoning.engine.canonical import goal_hash
from edgewise.systems.reasoning.knowledge.placement import can_count

SIEVE_BITS = 16
SPREADING = -7046029254386353131
"""2^64 divided by the golden ratio, as a signed integer (Fibonacci hashing)."""


class History:
    """The earlier goals of each episode, by their hashes.

    On a CPU a table of hashed pairs (episode, hash) rejects almost all new goals with one lookup.

    Args:
        codes: `[B, H]` int64, hashes padded with zeros.
    """

    def __init__(self, codes: Tensor) -> None:
        self._codes = codes
        if not can_count(codes):
            return
        used = (codes != 0).any(0).nonzero()
        self._codes = codes[:, : int(used[-1]) + 1 if len(used) else 0]
        self._salt = torch.arange(len(codes)) * SPREADING
        self._table = torch.zeros(1 << SIEVE_BITS, dtype=torch.bool)
        self._table[_slot(self._codes ^ self._salt.unsqueeze(-1))] = True

    def has(self, atoms: Tensor, owner: Tensor) -> Tensor:
        """Return which canonical goals `[N, W, 3]` are in the history of `owner` `[N]`, `[N]` bool."""
        code = goal_hash(atoms)
        if not can_count(code):
            return (self._codes[owner] == code.unsqueeze(-1)).any(-1)
        visited = self._table[_slot(code ^ self._salt[owner])]
        rows = visited.nonzero().squeeze(-1)
        visited[rows] = (self._codes[owner[rows]] == code[rows].unsqueeze(-1)).any(-1)
        return visited


def _slot(code: Tensor) -> Tensor:
    return ((code * SPREADING) >> (64 - SIEVE_BITS)) & ((1 << SIEVE_BITS) - 1)
