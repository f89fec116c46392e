"""Exhaustive search for proofs, breadth first: what can be proved at all, to be read beside any policy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning.dynamics import start
from edgewise.systems.reasoning.engine.canonical import goal_hash
from edgewise.systems.reasoning.engine.expand import Expansion, expand
from edgewise.systems.reasoning.engine.program import Program

CAP = 2000
"""Successors of one goal that are followed, if nothing else is said."""
GOALS_AT_ONCE = 8192
QUERIES_AT_ONCE = 1024
FRONTIER = 4_000_000
"""Goals of one level that are kept for a batch of queries; beyond, queries are flagged as cut."""


@dataclass(frozen=True)
class Search:
    """What a search found for n queries.

    Attributes:
        depth: `[n]` int64, steps of the shortest proof, 0 where there is none up to the limit.
        nodes: `[n]` int64, goals expanded.
        truncated: `[n]` bool, no proof was found, but some successors were not followed.
    """

    depth: Tensor
    nodes: Tensor
    truncated: Tensor

    @property
    def proved(self) -> Tensor:
        """`[n]` bool."""
        return self.depth > 0


def search(
    program: Program, queries: Tensor, *, depth: int, cap: int | None = CAP, frontier: int = FRONTIER
) -> Search:
    """Shortest proofs of queries `[n, 3]`, each without itself as a fact.

    Every goal of a level is expanded once: equal goals of one query are merged, in the level and with all
    before it, by a hash of 64 bits.

    Args:
        program: facts and rules; goals of more than its `max_atoms` are not followed, and count as truncated.
        queries: ground atoms.
        depth: the most steps.
        cap: the most successors of one goal.
        frontier: the most goals of one level, over a batch of queries.
    """
    parts = [
        _Breadth(program, batch, cap=cap, frontier=frontier).run(depth)
        for batch in queries.split(QUERIES_AT_ONCE)
    ]
    return Search(
        torch.cat([part.depth for part in parts]),
        torch.cat([part.nodes for part in parts]),
        torch.cat([part.truncated for part in parts]),
    )


class _Breadth:
    """The search for one batch of queries."""

    def __init__(self, program: Program, queries: Tensor, *, cap: int | None, frontier: int) -> None:
        self.program, self.queries, self.cap, self.frontier = program, queries, cap, frontier
        zero = torch.zeros(len(queries), dtype=torch.int64, device=queries.device)
        self.depth, self.nodes, self.cut = zero, zero.clone(), zero > 0
        self.seen = zero[:0]

    def run(self, limit: int) -> Search:
        atoms = start(self.queries, max_atoms=self.program.max_atoms)
        owner = torch.arange(len(self.queries), device=self.queries.device)
        for level in range(1, limit + 1):
            atoms, owner = self._level(atoms, owner, level, last=level == limit)
            if not len(owner):
                break
        return Search(self.depth, self.nodes, self.cut & (self.depth == 0))

    def _level(self, atoms: Tensor, owner: Tensor, level: int, *, last: bool) -> tuple[Tensor, Tensor]:
        """Expand a level; the next one, without goals of proved queries and without repetitions."""
        further: list[tuple[Tensor, Tensor, Tensor]] = []
        for goals, whose in zip(atoms.split(GOALS_AT_ONCE), owner.split(GOALS_AT_ONCE), strict=True):
            open_ = self.depth[whose] == 0
            goals, whose = goals[open_], whose[open_]
            found = expand(self.program, goals, excluded=self.queries[whose], cap=self.cap, counted=True)
            self._note(found, whose, level)
            if not last:
                further.append(self._going(found, whose))
        if not further:
            return atoms[:0], owner[:0]
        return self._new(*(torch.cat(parts) for parts in zip(*further, strict=True)))

    def _note(self, found: Expansion, whose: Tensor, level: int) -> None:
        self.nodes.index_add_(0, whose, torch.ones_like(whose))
        self.depth[whose[found.proved]] = level
        self.cut[whose[found.truncated_successors | found.dropped_long]] = True

    def _going(self, found: Expansion, whose: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Successors that do not end a proof, whose they are, and a code of both; each once."""
        owner = whose[found.owner]
        rows = (~(found.proved | found.failed)[found.owner] & (self.depth[owner] == 0)).nonzero().squeeze(-1)
        atoms, owner = found.successors[rows], owner[rows]
        code = goal_hash(torch.cat((atoms, _tag(owner, atoms)), 1))
        first = _first_of_each(code)
        return atoms[first], owner[first], code[first]

    def _new(self, atoms: Tensor, owner: Tensor, code: Tensor) -> tuple[Tensor, Tensor]:
        """Goals of queries that are still open and were not met before, as many as there is room for."""
        first = _first_of_each(code)
        rows = first[(self.depth[owner[first]] == 0) & ~torch.isin(code[first], self.seen)]
        self.cut[owner[rows[self.frontier :]]] = True
        rows = rows[: self.frontier]
        self.seen = torch.cat((self.seen, code[rows]))
        return atoms[rows], owner[rows]


def _tag(owner: Tensor, atoms: Tensor) -> Tensor:
    """An atom that no goal has, another one for each owner, `[N, 1, 3]`."""
    tag = torch.full_like(atoms[:, :1], -1)
    tag[:, 0, 1] = owner.to(atoms.dtype)
    return tag


def _first_of_each(code: Tensor) -> Tensor:
    """The rows `[k]` at which each different code `[N]` comes first, in their order."""
    ordered, row = code.sort(stable=True)
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return row[new].sort().values
