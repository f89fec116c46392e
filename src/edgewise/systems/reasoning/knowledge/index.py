"""Index of facts as sorted integer keys, with lookups by binary search."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.reasoning.knowledge.placement import can_count, to_device

BY_HEAD, BY_TAIL, LOOPS = 0, 1, 2
"""Sections of the index: (predicate, head, tail) order, (predicate, tail, head) order, and facts p(a,a)."""

MULTIPLIER = -7046029254386353131
"""2^64 divided by the golden ratio, as a signed integer (Fibonacci hashing)."""
SLOTS_PER_FACT = 32
LARGEST_SIEVE = 24


class FactIndex:
    """A set of ground atoms p(a,b) with membership tests and pattern matching.

    The key of a fact is `((section·(P+1) + p)·b + first)·b + second` with `b = E + 1`. One sorted array of
    keys holds every fact by head, again by tail, and facts p(a,a) a third time. All matches of any pattern
    are therefore one contiguous range.

    Args:
        facts: `[n, 3]` rows (predicate, head, tail), possibly repeated; ids start at 1.
        num_predicates: P, the largest predicate id.
        num_entities: E, the largest id of an entity; larger ids are variables.
        rows: `[k]` int64, the facts to index; all if not given.

    Attributes:
        keys: `[K]` int64, ascending; the last, larger than any key, stands for no fact.
        arguments: `[K, 2]` int32, head and tail of the fact at every place of the index; zeros at the last.
        fact: `[K]` int64, the row of `facts` it came from (the first of equal rows).

    Example:
        >>> index = FactIndex(torch.tensor([[1, 1, 2], [1, 1, 3]]), num_predicates=1, num_entities=3)
        >>> start, count = index.matches(torch.tensor([[1, 1, 4]]))
        >>> index.arguments[start : start + count].tolist()
        [[1, 2], [1, 3]]
    """

    def __init__(
        self, facts: Tensor, *, num_predicates: int, num_entities: int, rows: Tensor | None = None
    ) -> None:
        self.num_predicates, self.num_entities = num_predicates, num_entities
        self._base = num_entities + 1
        if 3 * (num_predicates + 1) * self._base**2 >= 2**63:
            raise ValueError(
                f"{num_predicates} predicates over {num_entities} entities do not fit into 63 bits"
            )
        facts = facts.to(torch.int64)
        self._check(facts)
        rows = torch.arange(len(facts), device=facts.device) if rows is None else rows
        loops = rows[facts[rows, 1] == facts[rows, 2]]
        row = torch.cat((rows, rows, loops))
        section = torch.cat([torch.full_like(part, kind) for kind, part in enumerate((rows, rows, loops))])
        key = self._key(section, *facts[row].unbind(-1))
        key, order = key.sort(stable=True)
        first = torch.ones_like(key, dtype=torch.bool)
        first[1:] = key[1:] != key[:-1]
        beyond = torch.full((1,), torch.iinfo(torch.int64).max, device=facts.device)
        arguments = facts[row[order][first]][:, 1:]
        self.keys, self.fact = torch.cat((key[first], beyond)), torch.cat((row[order][first], beyond))
        self.arguments = torch.cat((arguments, arguments.new_zeros(1, 2))).to(torch.int32)
        largest = (num_predicates, num_entities, num_entities)
        self._largest = torch.tensor(largest, device=facts.device)
        self._sieve = self._build_sieve()

    def __len__(self) -> int:
        """Return the number of distinct facts."""
        return int((self.keys < (self.num_predicates + 1) * self._base**2).sum())

    def to(self, device: torch.device | str) -> FactIndex:
        """Return a copy on another device."""
        moved = object.__new__(FactIndex)
        moved.__dict__.update(self.__dict__)
        for name in ("keys", "fact", "arguments", "_sieve", "_largest"):
            setattr(moved, name, to_device(getattr(self, name), device))
        return moved

    def key(self, atoms: Tensor) -> Tensor:
        """Return the key of each ground atom `[*N, 3]` in the section by head, `[*N]` int64."""
        predicate, head, tail = atoms.to(torch.int64).unbind(-1)
        return torch.add(tail, torch.add(head, predicate, alpha=self._base), alpha=self._base)

    def contains(self, atoms: Tensor, *, without: Tensor | None = None) -> Tensor:
        """Return which atoms are facts, `[*N]` bool; atoms with a variable or padding never are.

        Args:
            atoms: `[*N, 3]`.
            without: keys of facts to exclude, broadcastable to `[*N]`.
        """
        key = self.key(atoms)
        if not can_count(key):
            known = self._ground(atoms) & self._present(key)
            return known if without is None else known & (key != without)
        known = self._sieve[self._slot(key)]
        likely = known.nonzero(as_tuple=True)
        found = self._ground(atoms[likely]) & self._present(key[likely])
        if without is not None:
            found &= key[likely] != without.expand_as(key)[likely]
        known[likely] = found
        return known

    def matches(self, atoms: Tensor, *, section: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Find the facts that unify with each atom `[N, 3]`: `start` and `count` in the index, `[N]`.

        Two equal variables match facts p(a,a).

        Args:
            atoms: ids larger than E are variables.
            section: the result of `section` for these atoms, if already computed.
        """
        predicate, head, tail = atoms.to(torch.int64).unbind(-1)
        predicate = torch.where(predicate > self.num_predicates, 0, predicate)
        section = self.section(atoms) if section is None else section
        head_free, tail_free = head > self.num_entities, tail > self.num_entities
        bound = torch.where(head_free, torch.where(tail_free, 0, tail), head)
        other = torch.where(head_free | tail_free, 0, tail)
        low = self._number(section, predicate, bound, other)
        span = torch.where(head_free | tail_free, self._base, 1)
        span = torch.where(head_free & tail_free, self._base**2, span)
        start = torch.searchsorted(self.keys, low)
        return start, torch.searchsorted(self.keys, low + span) - start

    def section(self, atoms: Tensor) -> Tensor:
        """Return the section with the matches of each atom `[N, 3]`, `[N]` int64."""
        head, tail = atoms[..., 1].to(torch.int64), atoms[..., 2].to(torch.int64)
        head_free, tail_free = head > self.num_entities, tail > self.num_entities
        section = torch.where(head_free & ~tail_free, BY_TAIL, BY_HEAD)
        return torch.where(head_free & (head == tail), LOOPS, section)

    def place(self, atoms: Tensor, section: Tensor) -> Tensor:
        """Return the place of each ground atom `[N, 3]` in its section `[N]`; `last` if it is no fact."""
        predicate, head, tail = atoms.to(torch.int64).unbind(-1)
        key = self._key(section, predicate, head, tail)
        place = torch.searchsorted(self.keys, key)
        return torch.where(self.keys[place] == key, place, self.last)

    @property
    def last(self) -> int:
        """The place for no fact."""
        return len(self.keys) - 1

    def _key(self, section: Tensor, predicate: Tensor, head: Tensor, tail: Tensor) -> Tensor:
        first, second = (
            torch.where(section == BY_TAIL, tail, head),
            torch.where(section == BY_TAIL, head, tail),
        )
        return self._number(section, predicate, first, second)

    def _number(self, section: Tensor, predicate: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Combine the parts of a key."""
        number = torch.add(predicate, section, alpha=self.num_predicates + 1)
        return torch.add(second, torch.add(first, number, alpha=self._base), alpha=self._base)

    def _ground(self, atoms: Tensor) -> Tensor:
        """Return which atoms `[*N, 3]` are ground, `[*N]` bool; only their keys are unique."""
        return ((atoms > 0) & (atoms <= self._largest)).all(-1)

    def _present(self, key: Tensor) -> Tensor:
        return self.keys[torch.searchsorted(self.keys, key)] == key

    def _build_sieve(self) -> Tensor:
        """Build a table of hashed keys, `[2^k]` bool, that rejects almost all non-facts with one lookup."""
        facts = max(1, len(self.keys))
        bits = min(LARGEST_SIEVE, max(8, (SLOTS_PER_FACT * facts - 1).bit_length() - 1))
        self._shift, self._slots = 64 - bits, (1 << bits) - 1
        sieve = torch.zeros(1 << bits, dtype=torch.bool, device=self.keys.device)
        sieve[self._slot(self.keys)] = True
        return sieve

    def _slot(self, key: Tensor) -> Tensor:
        return ((key * MULTIPLIER) >> self._shift) & self._slots

    def _check(self, facts: Tensor) -> None:
        if facts.ndim != 2 or facts.shape[1] != 3:
            raise ValueError(f"facts are rows (predicate, head, tail), got shape {list(facts.shape)}")
        if not can_count(facts) or not len(facts):
            return
        largest = torch.tensor([self.num_predicates, self.num_entities, self.num_entities])
        if (facts < 1).any() or (facts > largest).any():
            row = int(((facts < 1) | (facts > largest)).any(-1).nonzero()[0])
            raise ValueError(
                f"fact {row} is {facts[row].tolist()}: ids go from 1 to {self.num_predicates} predicates "
                f"and {self.num_entities} entities"
            )
