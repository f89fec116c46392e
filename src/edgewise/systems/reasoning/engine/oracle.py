"""Exhaustive breadth-first search for proofs: an upper bound for any policy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning.dynamics import start
from edgewise.systems.reasoning.engine.canonical import goal_hash
from edgewise.systems.reasoning.engine.expand import Expansion, expand
from edgewise.systems.reasoning.engine.program import Program

CAP = 2000
"""Default maximum number of successors of a goal."""
GOALS_AT_ONCE = 8192
QUERIES_AT_ONCE = 1024
FRONTIER = 4_000_000
"""Maximum number of goals per level for a batch of queries; queries beyond it are flagged as truncated."""


@dataclass(frozen=True)
class Search:
    """The result of a search for n queries.

    Attributes:
        depth: `[n]` int64, steps of the shortest proof; 0 if there is none within the limit.
        nodes: `[n]` int64, number of expanded goals.
        truncated: `[n]` bool, no proof was found, but some successors were not searched.
    """

    depth: Tensor
    nodes: Tensor
    truncated: Tensor

    @property
    def proved(self) -> Tensor:
        """Which queries have a proof, `[n]` bool."""
        return self.depth > 0


def search(
    program: Program, queries: Tensor, *, depth: int, cap: int | None = CAP, frontier: int = FRONTIER
) -> Search:
    """Find the shortest proofs of queries `[n, 3]`, each without the query itself as a fact.

    Equal goals of a query, within a level and with earlier levels, are merged by a hash of 64 bits.

    Args:
        program: facts and rules. Goals of more than its `max_atoms` are not searched and count as truncated.
        queries: ground atoms.
        depth: maximum number of steps.
        cap: maximum number of successors of a goal.
        frontier: maximum number of goals per level, over a batch of queries.
    """
    parts = [
        _BreadthFirst(program, batch, cap=cap, frontier=frontier).run(depth)
        for batch in queries.split(QUERIES_AT_ONCE)
    ]
    return Search(
        torch.cat([part.depth for part in parts]),
        torch.cat([part.nodes for part in parts]),
        torch.cat([part.truncated for part in parts]),
    )


class _BreadthFirst:
    """Breadth-first search for one batch of queries."""

    def __init__(self, program: Program, queries: Tensor, *, cap: int | None, frontier: int) -> None:
        self.program, self.queries, self.cap, self.frontier = program, queries, cap, frontier
        zero = torch.zeros(len(queries), dtype=torch.int64, device=queries.device)
        self.depth, self.nodes, self.truncated = zero, zero.clone(), zero > 0
        self.seen = zero[:0]

    def run(self, limit: int) -> Search:
        atoms = start(self.queries, max_atoms=self.program.max_atoms)
        owner = torch.arange(len(self.queries), device=self.queries.device)
        for level in range(1, limit + 1):
            atoms, owner = self._level(atoms, owner, level, last=level == limit)
            if not len(owner):
                break
        return Search(self.depth, self.nodes, self.truncated & (self.depth == 0))

    def _level(self, atoms: Tensor, owner: Tensor, level: int, *, last: bool) -> tuple[Tensor, Tensor]:
        """Expand a level and return the next, without goals of proved queries and without duplicates."""
        following: list[tuple[Tensor, Tensor, Tensor]] = []
        for goals, query in zip(atoms.split(GOALS_AT_ONCE), owner.split(GOALS_AT_ONCE), strict=True):
            open_ = self.depth[query] == 0
            goals, query = goals[open_], query[open_]
            found = expand(self.program, goals, excluded=self.queries[query], cap=self.cap, counted=True)
            self._record(found, query, level)
            if not last:
                following.append(self._open_successors(found, query))
        if not following:
            return atoms[:0], owner[:0]
        return self._without_seen(*(torch.cat(parts) for parts in zip(*following, strict=True)))

    def _record(self, found: Expansion, query: Tensor, level: int) -> None:
        self.nodes.index_add_(0, query, torch.ones_like(query))
        self.depth[query[found.proved]] = level
        self.truncated[query[found.truncated_successors | found.dropped_long]] = True

    def _open_successors(self, found: Expansion, query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return unique successors that do not end a proof, their queries, and a hash of both."""
        owner = query[found.owner]
        rows = (~(found.proved | found.failed)[found.owner] & (self.depth[owner] == 0)).nonzero().squeeze(-1)
        atoms, owner = found.successors[rows], owner[rows]
        code = goal_hash(torch.cat((atoms, _tag(owner, atoms)), 1))
        first = _first_of_each(code)
        return atoms[first], owner[first], code[first]

    def _without_seen(self, atoms: Tensor, owner: Tensor, code: Tensor) -> tuple[Tensor, Tensor]:
        """Return new goals of open queries, at most `frontier` of them."""
        first = _first_of_each(code)
        rows = first[(self.depth[owner[first]] == 0) & ~torch.isin(code[first], self.seen)]
        self.truncated[owner[rows[self.frontier :]]] = True
        rows = rows[: self.frontier]
        self.seen = torch.cat((self.seen, code[rows]))
        return atoms[rows], owner[rows]


def _tag(owner: Tensor, atoms: Tensor) -> Tensor:
    """Return an artificial atom that identifies the owner, `[N, 1, 3]`."""
    tag = torch.full_like(atoms[:, :1], -1)
    tag[:, 0, 1] = owner.to(atoms.dtype)
    return tag


def _first_of_each(code: Tensor) -> Tensor:
    """Return the first row of each distinct code `[N]`, in order, `[k]`."""
    ordered, row = code.sort(stable=True)
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return row[new].sort().values
