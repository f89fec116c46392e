"""Batched SLD resolution: all successors of many goals at once, ragged, without loops over goals or clauses.

A goal is a list of atoms to prove, `[A, 3]` rows (predicate, head, tail), padded with zeros. Its first atom
is resolved with every rule and then every fact that it unifies with. In each successor, ground atoms that are
known facts are dropped. If empty remains of a successor, the goal is proved and its only successor is
`[True]`. If there is no successor at all, it is `[False]`.

The excluded fact of a goal is never used, neither for resolution nor for dropping an atom.

The number of rows of an expansion depends on its goals. On a CPU the rows are counted. On other devices
counting would synchronise with the host, so the maximum number of rows is allocated and the rest is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from edgewise.systems.reasoning.engine.extra_actions import ExtraActions
from edgewise.systems.reasoning.engine.history import History
from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.engine.resolve import (
    Goals,
    Resolvents,
    prepare_goals,
    resolve_with_facts,
    resolve_with_rules,
)
from edgewise.systems.reasoning.knowledge.placement import can_count

NO_CLAUSE = torch.iinfo(torch.int64).min
"""The origin of a successor without a clause: `[False]`, an extra action, or a goal that was over before."""


@dataclass(frozen=True)
class Expansion:
    """The successors of B goals, grouped by goal.

    Attributes:
        successors: `[N, A, 3]` int32, canonical: left-aligned, variables numbered by first appearance.
        owner: `[N]` int64, the goal of each successor, non-decreasing; B for empty rows at the end.
        offsets: `[B + 1]` int64; goal b has the rows `offsets[b]` to `offsets[b + 1]`, at least one.
        origin: `[N]` int64, the clause used: the number of a rule, or −1 − the row of a fact, or `NO_CLAUSE`.
        proved: `[B]` bool, the successor is `[True]`.
        failed: `[B]` bool, the successor is `[False]`.
        truncated_successors: `[B]` bool, some successors were left out because of the cap.
        dropped_long: `[B]` bool, some successors were left out because they have more than A atoms.
    """

    successors: Tensor
    owner: Tensor
    offsets: Tensor
    origin: Tensor
    proved: Tensor
    failed: Tensor
    truncated_successors: Tensor
    dropped_long: Tensor

    @property
    def counts(self) -> Tensor:
        """Number of successors of each goal, `[B]` int64."""
        return self.offsets.diff()

    @property
    def place(self) -> Tensor:
        """Index of each successor within its goal, `[N]` int64."""
        return torch.arange(len(self.owner), device=self.owner.device) - self.offsets[self.owner]

    def chosen(self, place: Tensor, *, rows: Tensor | None = None) -> Tensor:
        """Return one successor of each goal, or of each in `rows` `[B]`, `[B, A, 3]`.

        A place `[B]` beyond the last is clamped.
        """
        first, end = self.offsets[:-1], self.offsets[1:]
        if rows is not None:
            first, end = first[rows], end[rows]
        return self.successors[torch.clamp(first + place, first, end - 1)]

    def padded(self, width: int) -> tuple[Tensor, Tensor]:
        """Return successors padded with zeros, `[B, width, A, 3]` int32, and which places are filled."""
        place = torch.arange(width, device=self.owner.device)
        filled = place < self.counts.unsqueeze(-1)
        row = torch.where(filled, self.offsets[:-1].unsqueeze(-1) + place, 0)
        return self.successors[row].masked_fill(~filled.view(*filled.shape, 1, 1), 0), filled


def expand(
    program: Program,
    states: Tensor,
    *,
    excluded: Tensor,
    cap: int | None = None,
    history: Tensor | None = None,
    extra_actions: ExtraActions | None = None,
    counted: bool | None = None,
) -> Expansion:
    """Compute all successors of goals.

    Args:
        program: facts and rules.
        states: `[B, A, 3]`; variables are term ids E+1..E+2A.
        excluded: `[B, 3]`, a fact per goal that must not be used; zeros for none.
        cap: maximum number of successors of a goal. Rules are kept before facts, and truncated goals are
            flagged. Omitted successors never count as a proof.
        history: `[B, H]`, hashes of earlier goals; successors with such a hash are left out.
        extra_actions: actions to offer beside successors; the cap does not count them.
        counted: whether to count the rows on the host; by default only on a CPU. Otherwise a cap is needed.
    """
    counted = can_count(states) if counted is None else counted
    if not counted and cap is None:
        raise ValueError("an expansion with counted=False needs a cap")
    goals = prepare_goals(program, states, excluded)
    start, count, skipped = matching_facts(program, goals, excluded)
    at_once = ~goals.failed & ~goals.proved & (goals.length == 0) & (count > 0)
    match = (start + (start >= skipped).long()).clamp(max=program.facts.last)
    proof = torch.where(at_once, -1 - program.facts.fact[match], NO_CLAUSE)
    goals = replace(goals, proved=goals.proved | at_once)
    found = _ExpansionBuilder(program, goals, proof=proof, cap=cap, history=history, counted=counted)
    found.add_rules()
    found.add_facts(start, count, skipped)
    return found.build(extra_actions or ExtraActions())


def matching_facts(program: Program, goals: Goals, excluded: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Find the facts that match each goal's first atom: start, count and place to skip, each `[B]`."""
    first = goals.first.to(torch.int64)
    section = program.facts.section(first)
    start, count = program.facts.matches(first, section=section)
    place = program.facts.place(excluded, section)
    matches = (place >= start) & (place < start + count)
    return start, count - matches.long(), torch.where(matches, place, program.facts.last)


def repeat_ranges(counts: Tensor, *, rows: int | None = None) -> tuple[Tensor, Tensor]:
    """Repeat each b `counts[b]` times: return b and the number within b, each `[counts.sum()]`.

    Args:
        counts: `[B]` int64.
        rows: number of rows to allocate, at least the sum; surplus rows get b = B. Counted if not given.
    """
    last = counts.cumsum(0)
    if rows is None:
        owner = torch.repeat_interleave(counts)
        return owner, torch.arange(len(owner), device=counts.device) - (last - counts)[owner]
    row = torch.arange(rows, device=counts.device)
    owner = torch.searchsorted(last, row, right=True)
    return owner, row - torch.cat((last - counts, last[-1:]))[owner]


class _ExpansionBuilder:
    """Collects successors, first by rules and then by facts, and builds the expansion."""

    def __init__(
        self,
        program: Program,
        goals: Goals,
        *,
        proof: Tensor,
        cap: int | None,
        history: Tensor | None,
        counted: bool,
    ) -> None:
        self.program, self.goals, self.proof, self.cap, self.counted = program, goals, proof, cap, counted
        self.history = None if history is None else History(history)
        self.proved = goals.proved
        none = torch.zeros_like(goals.proved)
        self.truncated, self.long = none, none
        self.parts: list[_Part] = []

    @property
    def _live(self) -> Tensor:
        return ~(self.proved | self.goals.failed)

    def add_rules(self) -> None:
        """Add successors by rules. If no head binds anything, all rules unify and the cap applies first."""
        program, predicate = self.program, self.goals.first[:, 0].long()
        if not len(program.rule):
            self.parts.append(_Part.none(self.goals))
            return
        if self.counted and not program.plain_heads:
            self._add_rules_by_head()
            return
        count, most = torch.where(self._live, program.rule_count[predicate], 0), program.most_rules
        if self.cap is not None and program.plain_heads:
            self.truncated, most = count > self.cap, min(most, self.cap)
            count = count.clamp(max=self.cap)
        owner, number, valid = self._repeat_ranges(count, most)
        if not len(owner):
            self.parts.append(_Part.none(self.goals))
            return
        rule = (program.rule_start[predicate][owner] + number).clamp(max=len(program.rule) - 1)
        resolved = resolve_with_rules(program, self.goals, owner=owner, rule=rule)
        self._add(resolved, owner, program.rule[rule], valid)

    def _add_rules_by_head(self) -> None:
        """Add successors by those rules alone whose heads may unify, in the order of the rules."""
        program = self.program
        start, count = program.matching_rules(self.goals.first)
        count = torch.where(self._live.unsqueeze(-1), count, 0)
        place, number = repeat_ranges(count.flatten())
        if not len(place):
            self.parts.append(_Part.none(self.goals))
            return
        owner, rule = place // 3, program.head_row[start.flatten()[place] + number]
        order = (owner * len(program.rule) + rule).argsort()
        owner, rule = owner[order], rule[order]
        resolved = resolve_with_rules(program, self.goals, owner=owner, rule=rule)
        self._add(resolved, owner, program.rule[rule], None)

    def add_facts(self, start: Tensor, count: Tensor, skipped: Tensor) -> None:
        """Add successors by facts, as many as the cap still allows."""
        facts, count = self.program.facts, torch.where(self._live, count, 0)
        if self.cap is not None:
            room = (self.cap - self.parts[0].count).clamp(min=0)
            self.truncated = self.truncated | (count > room)
            count = count.minimum(room)
        owner, number, valid = self._repeat_ranges(count, self.cap or 0)
        if not len(owner):
            self.parts.append(_Part.none(self.goals))
            return
        place = start[owner] + number
        place = (place + (place >= skipped[owner]).long()).clamp(max=facts.last)
        resolved = resolve_with_facts(self.program, self.goals, owner=owner, place=place)
        self._add(resolved, owner, -1 - facts.fact[place], valid)

    def _repeat_ranges(self, count: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return owner and number of rows, and which are valid; None if all are, because they are counted."""
        if self.counted:
            return *repeat_ranges(count), None
        owner, number = repeat_ranges(count, rows=most * len(count))
        valid = owner < len(count)
        return owner.clamp(max=len(count) - 1), number, valid

    def _add(self, resolved: Resolvents, owner: Tensor, origin: Tensor, valid: Tensor | None) -> None:
        """Keep the resolvents that fit; record the first proof of every goal and what was left out."""
        long = resolved.length > self.program.max_atoms
        fits = ~long
        for usable in (resolved.possible, valid):
            if usable is not None:
                long, fits = long & usable, fits & usable
        self.long = self.long | _any(long, owner, like=self.long)
        ends = fits & (resolved.length == 0)
        row = torch.arange(len(owner), device=owner.device)
        first = torch.full_like(self.proof, len(owner)).scatter_reduce(
            0, owner, torch.where(ends, row, len(owner)), "amin"
        )
        proves = first < len(owner)
        self.proved = self.proved | proves
        self.proof = torch.where(proves, origin[first.clamp(max=len(owner) - 1)], self.proof)
        if self.history is not None:
            fits = fits & ~self.history.has(resolved.atoms, owner)
        rows = resolved.atoms, owner, origin
        self.parts.append(_Part.of(*rows, fits, counted=self.counted, like=self.proof))

    def build(self, extra_actions: ExtraActions) -> Expansion:
        """Build the expansion: proofs and failures have one successor, extra actions come last."""
        program, live, words = self.program, self._live, self.program.vocabulary
        cap = self.cap
        kept = [torch.where(live, part.count, 0) for part in self.parts]
        if cap is not None:
            self.truncated = live & (self.truncated | (kept[0] > cap))
            kept[0] = kept[0].clamp(max=cap)
        total = sum(kept[1:], kept[0])
        over = total == 0
        extras = extra_actions.offered(self.goals, proved=self.proved, over=over, program=program)
        room = total.clamp(min=1)
        total = sum((offered.long() for offered, _ in extras), room)
        offsets = torch.cat((total.new_zeros(1), total.cumsum(0)))
        rows = None if self.counted else len(total) * (max(1, cap or 0) + len(extras))
        owner, _ = repeat_ranges(total, rows=rows)
        successors = self.goals.first.new_zeros(len(owner) + 1, program.max_atoms, 3)
        origin = torch.full((len(owner) + 1,), NO_CLAUSE, device=owner.device)
        start = offsets[:-1]
        for part, count in zip(self.parts, kept, strict=True):
            if not len(part.owner):
                continue
            place = torch.where(part.number < count[part.owner], start[part.owner] + part.number, len(owner))
            if part.fits is not None:
                place = torch.where(part.fits, place, len(owner))
            width = min(part.atoms.shape[1], program.max_atoms)
            successors[place, :width] = part.atoms[:, :width]
            origin[place] = part.origin
            start = start + count
        ends = torch.where(over, offsets[:-1], len(owner))
        word = torch.where(self.proved, words.true, words.false).to(successors.dtype)
        successors[ends, 0, 0] = word
        origin[ends] = self.proof
        start = offsets[:-1] + room
        for offered, goal in extras:
            successors[torch.where(offered, start, len(owner))] = goal
            start = start + offered.long()
        return Expansion(
            successors=successors[:-1],
            owner=owner,
            offsets=offsets,
            origin=origin[:-1],
            proved=self.proved,
            failed=over & ~self.proved,
            truncated_successors=self.truncated,
            dropped_long=self.long,
        )


@dataclass(frozen=True)
class _Part:
    """Successors by rules or by facts: atoms `[N, W, 3]`; owner, origin and number within the owner `[N]`.

    `count` `[B]` is the number per goal. `fits` `[N]` marks the valid rows; None if all are valid.
    """

    atoms: Tensor
    owner: Tensor
    origin: Tensor
    number: Tensor
    count: Tensor
    fits: Tensor | None

    @classmethod
    def of(
        cls, atoms: Tensor, owner: Tensor, origin: Tensor, fits: Tensor, *, counted: bool, like: Tensor
    ) -> _Part:
        count = torch.zeros_like(like).index_add(0, owner, fits.long())
        first = count.cumsum(0) - count
        if not counted:
            return cls(atoms, owner, origin, fits.long().cumsum(0) - 1 - first[owner], count, fits)
        rows = fits.nonzero().squeeze(-1)
        if len(rows) < len(owner):
            atoms, owner, origin = atoms[rows], owner[rows], origin[rows]
        number = torch.arange(len(owner), device=owner.device) - first[owner]
        return cls(atoms, owner, origin, number, count, None)

    @classmethod
    def none(cls, goals: Goals) -> _Part:
        empty = goals.length.new_zeros(0)
        return cls(goals.rest[:0], empty, empty, empty, torch.zeros_like(goals.length), None)


def _any(flag: Tensor, owner: Tensor, *, like: Tensor) -> Tensor:
    """Return which owners `[B]` have a flagged row `[N]`."""
    return torch.zeros_like(like, dtype=torch.int64).index_add(0, owner, flag.long()) > 0
