"""Build TensorDicts without the checks of their constructor, which takes a third of the time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

Entries = Mapping[str, Any]
"""Tensors, TensorDicts or nested mappings by name, all with the same leading batch size."""


def to_tensordict(entries: Entries, batch_size: torch.Size, device: torch.device) -> TensorDict:
    """Build a TensorDict of `entries`; nested mappings become TensorDicts too.

    Args:
        entries: names to values of leading shape `batch_size`, all on `device`; neither is checked.
        batch_size: of the result and everything nested in it.
        device: of all tensors.
    """
    source = {
        name: value
        if isinstance(value, Tensor | TensorDictBase)
        else to_tensordict(value, batch_size, device)
        for name, value in entries.items()
    }
    return TensorDict._new_unsafe(source=source, batch_size=batch_size, device=device)


def to_new_tensordict(
    entries: Entries | TensorDictBase, batch_size: torch.Size, device: torch.device
) -> TensorDict:
    """Build a TensorDict like `to_tensordict`, but copy nested TensorDicts; tensors are shared."""
    source = {
        name: value if isinstance(value, Tensor) else to_new_tensordict(value, batch_size, device)
        for name, value in entries.items()
    }
    return TensorDict._new_unsafe(source=source, batch_size=batch_size, device=device)


def replace_rows(old: Entries | TensorDictBase, new: Entries, rows: Tensor) -> dict[str, Any]:
    """Return the entries of `old` that `new` has, with `rows` replaced by `new`; out of place.

    Args:
        old: entries with leading size B, including all of `new`.
        new: entries with leading size `len(rows)`.
        rows: distinct indices `[R]` int64.
    """
    kept = dict(old.items())
    return {
        name: kept[name].index_copy(0, rows, value)
        if isinstance(value, Tensor)
        else replace_rows(kept[name], value, rows)
        for name, value in new.items()
    }


def join_rows(first: Entries, second: Entries) -> dict[str, Any]:
    """Concatenate two sets of rows with the same entries."""
    return {
        name: torch.cat((value, second[name]))
        if isinstance(value, Tensor)
        else join_rows(value, second[name])
        for name, value in first.items()
    }


def split_rows(entries: Entries | TensorDictBase, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the first `count` rows of entries and the others, as views."""
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    for name, value in entries.items():
        if isinstance(value, Tensor):
            first[name], second[name] = value.split((count, len(value) - count))
        else:
            first[name], second[name] = split_rows(value, count)
    return first, second


def where_rows(chosen: Tensor, new: Entries, old: Entries | TensorDictBase) -> dict[str, Any]:
    """Return `new` where `chosen` is true and `old` elsewhere, out of place and without synchronisation.

    Args:
        chosen: `[B]` bool.
        new: entries with leading size B.
        old: entries with leading size B, including all of `new`.
    """
    kept = dict(old.items())
    return {
        name: torch.where(chosen.view(-1, *[1] * (value.ndim - 1)), value, kept[name])
        if isinstance(value, Tensor)
        else where_rows(chosen, value, kept[name])
        for name, value in new.items()
    }
