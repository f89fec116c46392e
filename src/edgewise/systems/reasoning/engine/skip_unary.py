"""Skip goals without a choice: a goal with a single successor is replaced by it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.engine.canonical import goal_hash
from edgewise.systems.reasoning.engine.extra_actions import ExtraActions
from edgewise.systems.reasoning.engine.successors import Successors
from edgewise.systems.reasoning.knowledge.placement import can_count


def skip_unary(
    successors: Successors,
    atoms: Tensor,
    *,
    query: Tensor,
    history: Tensor,
    ends: dynamics.Ends,
    limit: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Follow steps without a choice, at most `limit` of them.

    A single successor that ends the proof is not followed; the policy must choose it. The visited goals count
    as history, so a loop of such goals ends, and adding them to the history of the episode prevents a return.

    Returns:
        The goals reached, `[B, A, 3]`; which of them still have a single successor after `limit` steps, `[B]`
        bool; and the hashes of all visited goals in order, padded with zeros, `[B, limit + 1]`.
    """
    forced = replace(successors, extra_actions=ExtraActions(), memory=True)
    history = history if successors.memory else history[:, :0]
    visited = torch.zeros(len(atoms), limit + 1, dtype=torch.int64, device=atoms.device)
    visited[:, 0] = goal_hash(atoms)
    unary = torch.zeros_like(query[:, 0], dtype=torch.bool)
    for number in range(1, limit + 2):
        found = forced.of(atoms, query, history=torch.cat((history, visited), -1))
        only = found.successors[found.offsets[:-1]]
        unary = (found.counts == 1) & ~dynamics.is_over(only, ends) & ~dynamics.is_over(atoms, ends)
        if number > limit or (can_count(atoms) and not unary.any()):
            break
        atoms = torch.where(unary.view(-1, 1, 1), only, atoms)
        visited[:, number] = torch.where(unary, goal_hash(atoms), 0)
    return atoms, unary, visited
