"""Dynamics of a proof: the next goal, termination, history and rewards."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.scale.devices import constant

OUTCOMES = ("true_positive", "false_negative", "false_positive", "true_negative")
TRUE_POSITIVE, FALSE_NEGATIVE, FALSE_POSITIVE, TRUE_NEGATIVE = range(4)
BY_RATIO = float("nan")
REWARDS = (
    (1.0, 0.0, 0.0, 0.0),
    (1.0, 0.0, -1.0, 0.0),
    (1.0, 0.0, 0.0, 1.0),
    (1.0, -0.5, -1.5, 1.0),
    (1.0, -1.0, -1.0, BY_RATIO),
    (1.0, -1.0, -1.0, BY_RATIO),
)
"""Six reward tables: true positive, false negative, false positive, true negative. The last two weight true
negatives by one over the number of negatives per positive."""
GIVING_UP = (0.0, 0.0, 0.0, 0.0, 0.0, 0.3)
"""Bonus for giving up on a false query, by reward table."""


@dataclass(frozen=True)
class Ends:
    """Ids of the predicates that end a proof.

    Attributes:
        num_predicates: P; greater ids are special.
        true: proved.
        false: failed.
        end_false: given up.
        end_true: claimed.
        assumed_offset: an assumed predicate's id less that of the predicate.
    """

    num_predicates: int
    true: int
    false: int
    end_false: int
    end_true: int
    assumed_offset: int


def start(query: Tensor, *, max_atoms: int) -> Tensor:
    """Return the initial goals of queries, `[B, 3]` to `[B, A, 3]` int32, one atom each."""
    atoms = torch.zeros(len(query), max_atoms, 3, dtype=torch.int32, device=query.device)
    atoms[:, 0] = query
    return atoms


def drop_assumed(atoms: Tensor, ends: Ends) -> Tensor:
    """Remove the first atom of goals `[B, A, 3]` if it was assumed, which counts as proved."""
    assumed = atoms[:, 0, 0] > ends.assumed_offset
    without = torch.cat((atoms[:, 1:], torch.zeros_like(atoms[:, :1])), 1)
    empty = without[:, 0, 0] == 0
    without[:, 0, 0] = torch.where(empty, ends.true, without[:, 0, 0])
    return torch.where(assumed.view(-1, 1, 1), without, atoms)


def is_over(atoms: Tensor, ends: Ends) -> Tensor:
    """Return which goals `[*B, A, 3]` end a proof, `[*B]` bool."""
    return atoms[..., 0, 0] > ends.num_predicates


def is_success(atoms: Tensor, ends: Ends) -> Tensor:
    """Return which goals `[*B, A, 3]` are proved or claimed, `[*B]` bool."""
    return (atoms[..., 0, 0] == ends.true) | (atoms[..., 0, 0] == ends.end_true)


def remember(history: Tensor, code: Tensor, *, step: Tensor) -> Tensor:
    """Write the hash `code` `[B]` of the goal at `step` `[B]` into `history` `[B, H]`, if it fits."""
    place = torch.arange(history.shape[-1], device=history.device)
    return torch.where(place == step.unsqueeze(-1), code.unsqueeze(-1), history)


def outcome(success: Tensor, label: Tensor) -> Tensor:
    """Classify proofs as true positive, false negative, false positive or true negative, `[B]` int64."""
    return torch.where(
        label,
        torch.where(success, TRUE_POSITIVE, FALSE_NEGATIVE),
        torch.where(success, FALSE_POSITIVE, TRUE_NEGATIVE),
    )


def reward(atoms: Tensor, label: Tensor, *, kind: int, negative_weight: Tensor, ends: Ends) -> Tensor:
    """Compute the rewards of finished proofs, `[B]` float. The caller masks unfinished ones.

    Args:
        atoms: `[B, A, 3]`.
        label: `[B]` bool, whether the query is true.
        kind: a row of `REWARDS`.
        negative_weight: `[B]`, one over the number of negatives per positive.
        ends: ids of the predicates that end a proof.
    """
    table = constant(REWARDS[kind], atoms, dtype=torch.float32)
    success = is_success(atoms, ends)
    paid = table[outcome(success, label)]
    paid = torch.where(paid.isnan(), negative_weight, paid)
    gave_up = (atoms[:, 0, 0] == ends.end_false) & ~label
    return torch.where(gave_up, paid + GIVING_UP[kind], paid)
