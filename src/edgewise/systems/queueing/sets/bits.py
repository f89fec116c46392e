"""Sets of nodes as bits of integers, for fast intersections of thousands of sets."""

from __future__ import annotations

import torch
from torch import Tensor

WORD = 62
"""Nodes per word of a bit set: int64 without its sign bit and one spare bit."""


def pack(members: Tensor) -> Tensor:
    """Pack sets of nodes into bit words, `[*B, N]` bool to `[*B, W]` int64 with `W = ceil(N / 62)`.

    Example:
        >>> pack(torch.tensor([True, False, True]))
        tensor([5])
    """
    place = torch.arange(members.shape[-1], device=members.device)
    bits = members.to(torch.int64) << place % WORD
    return torch.stack([word.sum(-1) for word in bits.split(WORD, -1)], -1)


def unpack(words: Tensor, num_nodes: int) -> Tensor:
    """Unpack bit words, the inverse of `pack`, `[*B, W]` int64 to `[*B, num_nodes]` bool."""
    node = torch.arange(num_nodes, device=words.device)
    return (words[..., node // WORD] >> node % WORD & 1).bool()
