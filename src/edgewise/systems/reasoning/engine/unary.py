"""Passing over goals that leave no choice: where one successor is all there is, it is taken at once."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.engine.canonical import goal_hash
from edgewise.systems.reasoning.engine.further import Further
from edgewise.systems.reasoning.engine.successors import Successors
from edgewise.systems.reasoning.knowledge.placement import can_count


def passed(
    successors: Successors,
    atoms: Tensor,
    *,
    query: Tensor,
    history: Tensor,
    ends: dynamics.Ends,
    limit: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Goals after all steps without a choice, `[B, A, 3]`, and which still had none after `limit` of them.

    A single successor that ends the proof is not taken: that is the prover's to do. Last come the hashes of
    all goals met, `[B, limit + 1]`, from the first to where it stopped, then zeros: a circle of such goals
    ends, and whoever remembers them is not offered a way back to what was passed over.
    """
    forced = replace(successors, further=Further(), memory=True)
    history = history if successors.memory else history[:, :0]
    met = torch.zeros(len(atoms), limit + 1, dtype=torch.int64, device=atoms.device)
    met[:, 0] = goal_hash(atoms)
    stuck = torch.zeros_like(query[:, 0], dtype=torch.bool)
    for number in range(1, limit + 2):
        found = forced.of(atoms, query, history=torch.cat((history, met), -1))
        only = found.successors[found.offsets[:-1]]
        stuck = (found.counts == 1) & ~dynamics.is_over(only, ends) & ~dynamics.is_over(atoms, ends)
        if number > limit or (can_count(atoms) and not stuck.any()):
            break
        atoms = torch.where(stuck.view(-1, 1, 1), only, atoms)
        met[:, number] = torch.where(stuck, goal_hash(atoms), 0)
    return atoms, stuck, met
