"""The batched SLD engine: all successors of many goals at once, ragged, with no loop over goals or clauses.

A goal is a list of atoms to prove, `[A, 3]` rows (predicate, head, tail), padded with zeros. Its first atom
is resolved with every rule and then every fact it unifies with; the rest is context. In each successor,
ground atoms that are known facts are dropped. Where nothing remains of a successor the goal is proved, and
`[True]` is its only successor; where there is no successor at all, `[False]` is.

The excluded fact of a goal is never used, neither to resolve with nor to drop an atom.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from edgewise.envs.reasoning.program import Program
from edgewise.envs.reasoning.resolve import Goals, Resolvents, by_facts, by_rules, prepared

NO_CLAUSE = torch.iinfo(torch.int64).min
"""The origin of a successor that no clause gave: `[False]`, or the end of a goal that was over before."""


@dataclass(frozen=True)
class Expansion:
    """The successors of B goals, one goal's after another's.

    Attributes:
        successors: `[N, A, 3]` int32, canonical: left-aligned, variables numbered by first appearance.
        owner: `[N]` int64, whose successor it is, never decreasing.
        offsets: `[B + 1]` int64: those of goal b are rows `offsets[b]` to `offsets[b + 1]`, at least one.
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
        """How many successors each goal has, `[B]` int64."""
        return self.offsets.diff()

    @property
    def place(self) -> Tensor:
        """The place of each successor among those of its goal, `[N]` int64."""
        return torch.arange(len(self.owner), device=self.owner.device) - self.offsets[self.owner]


def expand(program: Program, states: Tensor, *, excluded: Tensor, cap: int | None = None) -> Expansion:
    """All successors of goals.

    Args:
        program: facts and rules.
        states: `[B, A, 3]`; variables are term ids E+1..E+2A.
        excluded: `[B, 3]`, for each goal a fact that must not be used; zeros for none.
        cap: the most successors of a goal; more are left out, rules first kept, and the goal is flagged. What
            a cap leaves out is never taken for a proof or for a failure of the goal's other successors.
    """
    goals = prepared(program, states, excluded)
    start, count, skipped = matching_facts(program, goals, excluded)
    at_once = ~goals.failed & ~goals.proved & (goals.length == 0) & (count > 0)
    match = (start + (start >= skipped).long()).clamp(max=program.facts.last)
    proof = torch.where(at_once, -1 - program.facts.fact[match], NO_CLAUSE)
    goals = replace(goals, proved=goals.proved | at_once)
    found = _Found(program, goals, proof=proof, cap=cap)
    found.add_rules()
    found.add_facts(start, count, skipped)
    return found.assembled()


def matching_facts(program: Program, goals: Goals, excluded: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where facts of each goal's first atom begin, how many there are, and the place to skip, each `[B]`."""
    start, count = program.facts.matches(goals.first)
    place = program.facts.place(excluded, program.facts.section(goals.first))
    matches = (place >= start) & (place < start + count)
    return start, count - matches.long(), torch.where(matches, place, program.facts.last)


def spread(counts: Tensor) -> tuple[Tensor, Tensor]:
    """`counts[b]` rows for each b: whose each row is, and its number among them, each `[counts.sum()]`."""
    owner = torch.repeat_interleave(counts)
    first = counts.cumsum(0) - counts
    return owner, torch.arange(len(owner), device=counts.device) - first[owner]


class _Found:
    """Successors as they are found: rules first, then facts."""

    def __init__(self, program: Program, goals: Goals, *, proof: Tensor, cap: int | None) -> None:
        self.program, self.goals, self.proof, self.cap = program, goals, proof, cap
        self.proved = goals.proved
        nobody = torch.zeros_like(goals.proved)
        self.truncated, self.long = nobody, nobody
        self.rows: list[tuple[Tensor, Tensor, Tensor]] = []
        self.counts: list[Tensor] = []

    @property
    def _live(self) -> Tensor:
        return ~(self.proved | self.goals.failed)

    def add_rules(self) -> None:
        predicate = self.goals.first[:, 0].long()
        count = torch.where(self._live, self.program.rule_count[predicate], 0)
        if self.cap is not None and self.program.plain_heads:
            self.truncated = count > self.cap
            count = count.clamp(max=self.cap)
        owner, number = spread(count)
        rule = self.program.rule_start[predicate][owner] + number
        resolved = by_rules(self.program, self.goals, owner=owner, rule=rule)
        self._add(resolved, owner, self.program.rule[rule])

    def add_facts(self, start: Tensor, count: Tensor, skipped: Tensor) -> None:
        count = torch.where(self._live, count, 0)
        if self.cap is not None:
            room = (self.cap - self.counts[0]).clamp(min=0)
            self.truncated = self.truncated | (count > room)
            count = count.minimum(room)
        owner, number = spread(count)
        place = start[owner] + number
        place = place + (place >= skipped[owner]).long()
        resolved = by_facts(self.program, self.goals, owner=owner, place=place)
        self._add(resolved, owner, -1 - self.program.facts.fact[place])

    def _add(self, resolved: Resolvents, owner: Tensor, origin: Tensor) -> None:
        """Keep what fits, and note the first proof of every goal and what was left out."""
        short = resolved.length <= self.program.max_atoms
        possible = short if resolved.possible is None else short & resolved.possible
        long = ~short if resolved.possible is None else ~short & resolved.possible
        self.long = self.long.index_put((owner[long],), long.new_ones(()))
        ends = (possible & (resolved.length == 0)).nonzero().squeeze(-1).flip(0)
        self.proved = self.proved.index_put((owner[ends],), self.proved.new_ones(()))
        self.proof = self.proof.index_put((owner[ends],), origin[ends])
        kept = possible.nonzero().squeeze(-1)
        rows = resolved.atoms, owner, origin
        if len(kept) < len(owner):
            rows = resolved.atoms[kept], owner[kept], origin[kept]
        self.rows.append(rows)
        self.counts.append(torch.bincount(rows[1], minlength=len(self.proved)))

    def assembled(self) -> Expansion:
        """Everything in its place, proofs and failures collapsed to one successor."""
        program, live = self.program, self._live
        by_rule, by_fact = (torch.where(live, count, 0) for count in self.counts)
        if self.cap is not None:
            self.truncated = live & (self.truncated | (by_rule > self.cap))
            by_rule = by_rule.clamp(max=self.cap)
        total = by_rule + by_fact
        over = total == 0
        offsets = torch.cat((total.new_zeros(1), total.clamp(min=1).cumsum(0)))
        owner = torch.repeat_interleave(total.clamp(min=1))
        successors = self.goals.first.new_zeros(len(owner), program.max_atoms, 3)
        origin = torch.full_like(owner, NO_CLAUSE)
        before = torch.zeros_like(total)
        for (atoms, whose, clause), found, kept in zip(
            self.rows, self.counts, (by_rule, by_fact), strict=True
        ):
            number = torch.arange(len(whose), device=whose.device) - (found.cumsum(0) - found)[whose]
            fits = (number < kept[whose]).nonzero().squeeze(-1)
            place = (offsets[:-1] + before)[whose[fits]] + number[fits]
            width = min(atoms.shape[1], program.max_atoms)
            successors[place, :width] = atoms[fits, :width]
            origin[place] = clause[fits]
            before = before + kept
        ends, words = offsets[:-1][over], program.vocabulary
        successors[ends, 0, 0] = torch.where(self.proved[over], words.true, words.false).to(successors.dtype)
        origin[ends] = self.proof[over]
        return Expansion(
            successors, owner, offsets, origin, self.proved, over & ~self.proved, self.truncated, self.long
        )
