"""How many facts speak for an atom, and of those that bind a proved goal's first atom, how many prove it."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.reasoning.engine.expand import matching_facts, spread
from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.engine.resolve import by_facts, prepared


def usable_matches(program: Program, atoms: Tensor, *, excluded: Tensor) -> Tensor:
    """How many facts unify with each atom `[N, 3]`, the excluded one `[N, 3]` not counted, `[N]` int64.

    A true query of the training set is a fact itself: whoever counted it would see the answer.
    """
    start, count = program.facts.matches(atoms)
    place = program.facts.place(excluded, program.facts.section(atoms))
    return count - ((place >= start) & (place < start + count)).long()


def proving_share(program: Program, states: Tensor, *, excluded: Tensor) -> Tensor:
    """The share of facts that finish the proof, among those that unify with the first atom, `[B]` float64.

    The engine says only whether a goal is proved; one neighbour in a region proves as well as nine of ten do.
    This tells them apart. It is 1 where no fact unifies, so that proofs by a rule alone keep their weight.

    Args:
        program: facts and rules.
        states: `[B, A, 3]`.
        excluded: `[B, 3]`, facts that must not be used.
    """
    goals = prepared(program, states, excluded)
    start, count, skipped = matching_facts(program, goals, excluded)
    owner, number = spread(count)
    place = start[owner] + number
    place = place + (place >= skipped[owner]).long()
    done = by_facts(program, goals, owner=owner, place=place.clamp(max=program.facts.last)).length == 0
    proofs = torch.zeros(len(states), dtype=torch.float64, device=states.device)
    proofs.index_add_(0, owner, done.double())
    return torch.where(proofs > 0, proofs / count.clamp(min=1), 1.0)
