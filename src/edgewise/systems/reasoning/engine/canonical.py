"""One form for goals that say the same: atoms left-aligned, variables numbered as they appear; its hash."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.reasoning.knowledge.placement import can_count

ODD = (-4658895280553007687, -7723592293110705685, -7046029254386353131)
"""Odd 64-bit constants, as signed numbers, that mix the bits of a product well."""


def left_aligned(atoms: Tensor, keep: Tensor) -> Tensor:
    """The atoms to keep moved to the left in their order, and zeros behind them.

    Args:
        atoms: `[N, W, 3]`.
        keep: `[N, W]` bool.
    """
    place = (~keep).to(torch.int8).argsort(dim=-1, stable=True)
    cleared = atoms.masked_fill(~keep.unsqueeze(-1), 0)
    return cleared.gather(1, place.unsqueeze(-1).expand_as(cleared))


def without_holes(atoms: Tensor, dropped: Tensor) -> Tensor:
    """As `left_aligned`, without the atoms `dropped` `[N, W]` bool; on a CPU, sorts rows that lose one."""
    keep = ~dropped & (atoms[..., 0] != 0)
    if not can_count(atoms):
        return left_aligned(atoms, keep)
    rows = dropped.any(-1).nonzero().squeeze(-1)
    return atoms.index_copy(0, rows, left_aligned(atoms[rows], keep[rows])) if len(rows) else atoms


def canonical(atoms: Tensor, *, num_entities: int) -> Tensor:
    """Variables renamed to E+1, E+2, … by first appearance in their row; `[N, W, 3]`, left-aligned or not."""
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
    """64 bits that tell goals apart, `[*N, A, 3]` to `[*N]` int64; the order of atoms does not matter.

    The sum of a mix of every atom. Of n different goals two collide with odds of about n²/2⁶⁵: one in 10⁷
    for a million. Goals that differ only in names of variables collide as they should if they are canonical.
    """
    predicate, head, tail = atoms.to(torch.int64).unbind(-1)
    mixed = predicate * ODD[0] + head * ODD[1] + tail * ODD[2]
    mixed = (mixed ^ ((mixed >> 31) & 0x1FFFFFFFF)) * ODD[1]
    mixed = (mixed ^ ((mixed >> 29) & 0x7FFFFFFFF)) * ODD[0]
    return mixed.masked_fill(predicate == 0, 0).sum(-1)
