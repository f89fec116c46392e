"""Sets of nodes as bits of whole numbers: intersections of thousands of sets at once cost next to nothing."""

from __future__ import annotations

import torch
from torch import Tensor

WORD = 62
"""Nodes per word of a bit set: int64 without its sign, and one to spare."""


def pack(members: Tensor) -> Tensor:
    """Sets of nodes as bit words, `[*B, N]` bool to `[*B, W]` int64 with `W = ceil(N / 62)`.

    Example:
        >>> pack(torch.tensor([True, False, True]))
        tensor([5])
    """
    place = torch.arange(members.shape[-1], device=members.device)
    bits = members.to(torch.int64) << place % WORD
    return torch.stack([word.sum(-1) for word in bits.split(WORD, -1)], -1)


def unpack(words: Tensor, num_nodes: int) -> Tensor:
    """The reverse of `pack`, `[*B, W]` int64 to `[*B, num_nodes]` bool."""
    node = torch.arange(num_nodes, device=words.device)
    return (words[..., node // WORD] >> node % WORD & 1).bool()
