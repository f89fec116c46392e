"""What a prover may choose from: successors by resolution, less those met before, and actions that end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.envs.reasoning.canonical import goal_hash
from edgewise.envs.reasoning.expand import NO_CLAUSE, Expansion, expand, spread
from edgewise.envs.reasoning.program import Program
from edgewise.graphs.knowledge.placement import can_count

SIEVE_BITS = 18
SPREADING = -7046029254386353131


@dataclass(frozen=True)
class Successors:
    """Goals to their successors, one call for worlds that step and for minibatches.

    It holds the program and nothing else, so a recipe can hand it to a model, which recomputes successors
    from the goals that a rollout kept.

    Args:
        program: facts and rules.
        cap: the most successors, the actions below included.
        memory: whether to leave out goals whose hash is in `history`.
        give_up: whether `Endf` is offered where no successor ends the proof by itself.
        claim: whether `Endt` is.
        assume: whether a ground first atom can be assumed.

    Example:
        >>> found = env.successors(root["goal"])
        >>> found.successors[found.offsets[:-1] + action]
    """

    program: Program
    cap: int
    memory: bool = True
    give_up: bool = True
    claim: bool = False
    assume: bool = False

    def __call__(self, goal: TensorDictBase) -> Expansion:
        """Successors of goals in one row after another.

        Args:
            goal: `atoms` `[*B, A, 3]`, `query` `[*B, 3]` and, with memory, `history` `[*B, H]`; leading
                dimensions are flattened in their order.
        """
        history = goal.get("history").flatten(0, -2) if self.memory else None
        return self.of(goal.get("atoms").flatten(0, -3), goal.get("query").flatten(0, -2), history=history)

    def of(self, atoms: Tensor, query: Tensor, *, history: Tensor | None = None) -> Expansion:
        """As a call, from tensors `[B, A, 3]`, `[B, 3]` and `[B, H]`."""
        room = self.cap - self.give_up - self.claim - self.assume
        found = expand(self.program, atoms, excluded=query, cap=room)
        keep = found.owner < len(atoms)
        if self.memory and history is not None:
            keep = keep & ~_met_before(found, history, program=self.program)
        return self._with_ends(found, keep, atoms)

    def to(self, device: torch.device | str) -> Successors:
        """The same on another device."""
        return replace(self, program=self.program.to(device))

    def _with_ends(self, found: Expansion, keep: Tensor, atoms: Tensor) -> Expansion:
        """The successors to keep, `[False]` where none is left, and the actions that end."""
        goals, device = len(atoms), atoms.device
        owner = found.owner.clamp(max=goals - 1)
        kept = torch.zeros(goals, dtype=torch.int64, device=device).index_add(0, owner, keep.long())
        lost = kept == 0
        failed = found.failed | lost
        extras = self._extras(atoms, open_=~found.proved & ~failed, proved=found.proved)
        total = kept.clamp(min=1) + sum((offered.long() for offered, _ in extras), torch.zeros_like(kept))
        offsets = torch.cat((total.new_zeros(1), total.cumsum(0)))
        rows, _ = spread(total, rows=None if can_count(atoms) else goals * self.cap)
        beyond = len(rows)
        successors = found.successors.new_zeros(beyond + 1, *found.successors.shape[1:])
        origin = torch.full((beyond + 1,), NO_CLAUSE, device=device)
        number = keep.long().cumsum(0) - 1 - (kept.cumsum(0) - kept)[owner]
        place = torch.where(keep, offsets[owner] + number, beyond)
        successors[place], origin[place] = found.successors, found.origin
        successors[torch.where(lost, offsets[:-1], beyond), 0, 0] = self.program.vocabulary.false
        start = offsets[:-1] + kept.clamp(min=1)
        for offered, goal in extras:
            successors[torch.where(offered, start, beyond)] = goal
            start = start + offered.long()
        return replace(
            found,
            successors=successors[:-1],
            origin=origin[:-1],
            owner=rows,
            offsets=offsets,
            failed=failed,
        )

    def _extras(self, atoms: Tensor, *, open_: Tensor, proved: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Further actions: where they are offered `[B]`, and what they lead to, `[B, A, 3]` or `[A, 3]`."""
        words, extras = self.program.vocabulary, []
        if self.assume:
            first = atoms[:, 0]
            ground = (first[:, 1:] <= words.num_entities).all(-1) & (first[:, 0] <= words.num_predicates)
            assumed = atoms.clone().to(torch.int32)
            assumed[:, 0, 0] += words.assumed_offset
            extras.append((ground & ~proved & (first[:, 0] > 0), assumed))
        for wanted, word in ((self.give_up, words.end_false), (self.claim, words.end_true)):
            if wanted:
                end = torch.zeros(atoms.shape[1:], dtype=torch.int32, device=atoms.device)
                end[0, 0] = word
                extras.append((open_, end))
        return extras


def _met_before(found: Expansion, history: Tensor, *, program: Program) -> Tensor:
    """Which successors `[N]` have their hash in the history `[B, H]` of their goal; ends never do.

    On a CPU a table of hashed pairs (goal, hash) tells almost all that have not, and the others are compared.
    """
    code = goal_hash(found.successors)
    going = found.successors[:, 0, 0] <= program.vocabulary.num_predicates
    owner = found.owner.clamp(max=len(history) - 1)
    if not can_count(history):
        return going & (history[owner] == code.unsqueeze(-1)).any(-1)
    whose = torch.arange(len(history)).unsqueeze(-1) * SPREADING
    table = torch.zeros(1 << SIEVE_BITS, dtype=torch.bool)
    table[_slot(history ^ whose)] = True
    rows = (going & table[_slot(code ^ whose.squeeze(-1)[owner])]).nonzero().squeeze(-1)
    met = torch.zeros_like(going)
    met[rows] = (history[owner[rows]] == code[rows].unsqueeze(-1)).any(-1)
    return met


def _slot(code: Tensor) -> Tensor:
    return ((code * SPREADING) >> (64 - SIEVE_BITS)) & ((1 << SIEVE_BITS) - 1)
