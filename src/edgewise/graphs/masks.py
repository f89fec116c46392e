"""Masks that are true everywhere need no work; on a CPU, looking is cheaper than masking."""

from __future__ import annotations

from typing import overload

from torch import Tensor

from edgewise.graphs.edges import may_branch_on


@overload
def unless_all(mask: Tensor) -> Tensor | None: ...
@overload
def unless_all(mask: None) -> None: ...
def unless_all(mask: Tensor | None) -> Tensor | None:
    """Return a mask, or None if it is true everywhere; the mask itself where Python may not ask.

    Example:
        >>> import torch
        >>> unless_all(torch.tensor([True, True])) is None
        True
    """
    return None if mask is None or (may_branch_on(mask) and bool(mask.all())) else mask
