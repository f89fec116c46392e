"""Counts of matching facts: per atom, and the share of them that completes a proof."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.reasoning.engine.expand import matching_facts, repeat_ranges
from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.engine.resolve import prepare_goals, resolve_with_facts


def usable_matches(program: Program, atoms: Tensor, *, excluded: Tensor) -> Tensor:
    """Count the facts that unify with each atom `[N, 3]`, without the excluded one `[N, 3]`, `[N]` int64.

    A true query of the training set is itself a fact. Counting it would leak the label.
    """
    start, count = program.facts.matches(atoms)
    place = program.facts.place(excluded, program.facts.section(atoms))
    return count - ((place >= start) & (place < start + count)).long()


def proving_share(program: Program, states: Tensor, *, excluded: Tensor) -> Tensor:
    """Compute the share of facts matching the first atom that complete the proof, `[B]` float64.

    The engine only reports whether a goal is proved, not whether one neighbour of ten proves it or nine. This
    share distinguishes the two. It is 1 where no fact completes the proof, so proofs by rules keep their
    weight.

    Args:
        program: facts and rules.
        states: `[B, A, 3]`.
        excluded: `[B, 3]`, facts that must not be used.
    """
    goals = prepare_goals(program, states, excluded)
    start, count, skipped = matching_facts(program, goals, excluded)
    owner, number = repeat_ranges(count)
    place = start[owner] + number
    place = place + (place >= skipped[owner]).long()
    place = place.clamp(max=program.facts.last)
    done = resolve_with_facts(program, goals, owner=owner, place=place).length == 0
    proofs = torch.zeros(len(states), dtype=torch.float64, device=states.device)
    proofs.index_add_(0, owner, done.double())
    return torch.where(proofs > 0, proofs / count.clamp(min=1), 1.0)
