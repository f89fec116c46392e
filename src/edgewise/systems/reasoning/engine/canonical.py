"""Canonical form of goals: atoms left-aligned, variables numbered by first appearance; and its hash."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.reasoning.knowledge.placement import can_count

ODD = (-4658895280553007687, -7723592293110705685, -7046029254386353131)
"""Odd 64-bit constants, as signed integers, for mixing bits by multiplication."""


def left_aligned(atoms: Tensor, keep: Tensor) -> Tensor:
    """Move the atoms to keep to the left in their order, followed by zeros.

    Args:
        atoms: `[N, W, 3]`.
        keep: `[N, W]` bool.
    """
    place = (~keep).to(torch.int8).argsort(dim=-1, stable=True)
    cleared = atoms.masked_fill(~keep.unsqueeze(-1), 0)
    return cleared.gather(1, place.unsqueeze(-1).expand_as(cleared))


def drop_atoms(atoms: Tensor, dropped: Tensor) -> Tensor:
    """Remove the atoms `dropped` `[N, W]` bool and left-align; on a CPU, sort only rows that lose an atom."""
    keep = ~dropped & (atoms[..., 0] != 0)
    if not can_count(atoms):
        return left_aligned(atoms, keep)
    rows = dropped.any(-1).nonzero().squeeze(-1)
    return atoms.index_copy(0, rows, left_aligned(atoms[rows], keep[rows])) if len(rows) else atoms


def canonical(atoms: Tensor, *, num_entities: int) -> Tensor:
    """Rename variables to E+1, E+2, … by first appearance in their row, `[N, W, 3]`."""
    if not atoms.shape[1]:
        return atoms
    terms = atoms[..., 1:].flatten(1)
    free = terms > num_entities
    same = terms.unsqueeze(1) == terms.unsqueeze(2)
    first = same.to(torch.uint8).argmax(-1)
    new = free & (first == torch.arange(terms.shape[1], device=terms.device))
    number = new.cumsum(-1).gather(-1, first).to(terms.dtype)
    renamed = torch.where(free, number + num_entities, terms).unflatten(1, (-1, 2))
    return torch.cat((atoms[..., :1], renamed), -1)


def goal_hash(atoms: Tensor) -> Tensor:
    """Hash goals to 64 bits, `[*N, A, 3]` to `[*N]` int64, independent of the order of atoms.

    The hash is the sum of a hash of every atom. Among n different goals a collision has probability of about
    n²/2⁶⁵, which is 10⁻⁷ for a million. Canonical goals that differ only in variable names are equal.
    """
    predicate, head, tail = atoms.to(torch.int64).unbind(-1)
    mixed = torch.add(predicate * ODD[0], head, alpha=ODD[1]).add_(tail, alpha=ODD[2])
    mixed = (mixed ^ ((mixed >> 31) & 0x1FFFFFFFF)) * ODD[1]
    mixed = (mixed ^ ((mixed >> 29) & 0x7FFFFFFFF)) * ODD[0]
    return mixed.masked_fill(predicate == 0, 0).sum(-1)
