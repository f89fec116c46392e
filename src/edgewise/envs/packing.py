"""TensorDicts without their checks: building one this way costs a third, and a step builds half a dozen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

Entries = Mapping[str, Any]
"""Tensors, TensorDicts or further mappings by name; all of one leading batch size."""


def pack(entries: Entries, batch_size: torch.Size, device: torch.device) -> TensorDict:
    """A TensorDict of `entries`, in which nested mappings become TensorDicts too.

    Args:
        entries: names to values of leading shape `batch_size`, all on `device`; neither is checked.
        batch_size: of the result and everything nested in it.
        device: of all tensors.
    """
    source = {
        name: value if isinstance(value, Tensor | TensorDictBase) else pack(value, batch_size, device)
        for name, value in entries.items()
    }
    return TensorDict._new_unsafe(source=source, batch_size=batch_size, device=device)


def repack(entries: Entries | TensorDictBase, batch_size: torch.Size, device: torch.device) -> TensorDict:
    """As `pack`, but with new containers all the way down: what is set in them is not set in the old ones."""
    source = {
        name: value if isinstance(value, Tensor) else repack(value, batch_size, device)
        for name, value in entries.items()
    }
    return TensorDict._new_unsafe(source=source, batch_size=batch_size, device=device)


def replace_rows(old: Entries | TensorDictBase, new: Entries, rows: Tensor) -> dict[str, Any]:
    """The entries of `new`, each with the rows of `old` that it does not replace; out of place.

    Args:
        old: entries of leading size B, those of `new` among them.
        new: entries of leading size `len(rows)`.
        rows: indices `[R]` int64, no two alike.
    """
    kept = dict(old.items())
    return {
        name: kept[name].index_copy(0, rows, value)
        if isinstance(value, Tensor)
        else replace_rows(kept[name], value, rows)
        for name, value in new.items()
    }


def choose_rows(chosen: Tensor, new: Entries, old: Entries | TensorDictBase) -> dict[str, Any]:
    """`new` where `chosen` is true and `old` elsewhere, out of place and without asking the host.

    Args:
        chosen: `[B]` bool.
        new: entries of leading size B.
        old: entries of leading size B, those of `new` among them.
    """
    kept = dict(old.items())
    return {
        name: torch.where(chosen.view(-1, *[1] * (value.ndim - 1)), value, kept[name])
        if isinstance(value, Tensor)
        else choose_rows(chosen, value, kept[name])
        for name, value in new.items()
    }
