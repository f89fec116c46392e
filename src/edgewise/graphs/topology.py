"""Constant topologies that are stored once and looked up by an id."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import torch
from tensordict import TensorDict
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.functional import pad
from torchrl.data import Bounded, TensorSpec

from edgewise.graphs.edges import Device, Edges, EdgeSource, Lead, ends_exist

EdgeList = Sequence[tuple[int, int]] | Tensor


class TopologyBank:
    """K constant topologies, padded to the edge count of the largest.

    Args:
        index: `[K, 2, E]` int64; ends of absent edges are zero.
        mask: `[K, E]` bool.
        attr: `[K, E, D]` or None.
    """

    def __init__(self, index: Tensor, mask: Tensor, attr: Tensor | None = None) -> None:
        if index.dim() != 3 or index.shape[1] != 2 or mask.shape != (index.shape[0], index.shape[2]):
            raise ValueError(
                f"a bank takes index [K, 2, E] and mask [K, E], "
                f"got {list(index.shape)} and {list(mask.shape)}"
            )
        if index.dtype != torch.int64 or mask.dtype != torch.bool:
            raise ValueError(
                f"a bank takes an int64 index and a bool mask, got {index.dtype} and {mask.dtype}"
            )
        if len(index) == 0:
            raise ValueError("a bank needs at least one topology, got none")
        if attr is not None and attr.shape[:-1] != mask.shape:
            raise ValueError(
                f"a bank takes attr [K, E, D] with [K, E] = {list(mask.shape)}, got {list(attr.shape)}"
            )
        self.index = index.masked_fill(~mask.unsqueeze(1), 0)
        if _has_values(index) and bool((self.index < 0).any()):
            raise ValueError(f"a bank's nodes count from zero, got {int(self.index.min())}")
        self.mask = mask
        self.attr = attr
        self._copies: dict[torch.device, TopologyBank] = {}

    @classmethod
    def from_edge_lists(
        cls,
        edge_lists: Sequence[EdgeList],
        attributes: Sequence[Tensor] | None = None,
        *,
        both_ways: bool = False,
    ) -> TopologyBank:
        """Build a bank of K graphs, each given as `(source, target)` pairs or as a tensor `[2, E_k]`.

        Args:
            edge_lists: K lists of edges.
            attributes: K tensors `[E_k, D]` of edge features.
            both_ways: add the reverse of every edge, with the same features.

        Example:
            >>> bank = TopologyBank.from_edge_lists([[(0, 1), (1, 2)], [(2, 0)]], both_ways=True)
            >>> bank.mask.sum(-1)
            tensor([4, 2])
        """
        if not edge_lists:
            raise ValueError("a bank needs at least one edge list, got none")
        if attributes is not None and len(attributes) != len(edge_lists):
            raise ValueError(f"{len(edge_lists)} edge lists but {len(attributes)} attribute tensors")
        lists = [_as_index(edges, number) for number, edges in enumerate(edge_lists)]
        for number, attr in enumerate(attributes or ()):
            if attr.dim() != 2 or len(attr) != lists[number].shape[1]:
                raise ValueError(
                    f"edge list {number} has {lists[number].shape[1]} edges but attributes {list(attr.shape)}"
                )
        if both_ways:
            lists = [torch.cat((edges, edges.flip(0)), 1) for edges in lists]
            attributes = attributes and [torch.cat((attr, attr)) for attr in attributes]
        capacity = max(edges.shape[1] for edges in lists)
        index = torch.stack([pad(edges, (0, capacity - edges.shape[1])) for edges in lists])
        mask = torch.stack([torch.arange(capacity, device=edges.device) < edges.shape[1] for edges in lists])
        if attributes is None:
            return cls(index, mask)
        return cls(
            index, mask, torch.stack([pad(attr, (0, 0, 0, capacity - len(attr))) for attr in attributes])
        )

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"TopologyBank({len(self)} graphs of at most {self.num_edges} edges)"

    @property
    def num_edges(self) -> int:
        """Number of edge slots E."""
        return self.index.shape[-1]

    @property
    def num_features(self) -> int:
        """Number of edge features D; zero without."""
        return 0 if self.attr is None else self.attr.shape[-1]

    def on(self, device: torch.device) -> TopologyBank:
        """Return the bank on `device`; the copy is cached."""
        if device == self.index.device:
            return self
        found = self._copies.get(device)
        if found is None:
            found = copy(self)
            found._copies = {}
            with torch.inference_mode(False):  # the cached tensors must be usable in a later backward pass
                found.index, found.mask = self.index.to(device), self.mask.to(device)
                found.attr = None if self.attr is None else self.attr.to(device)
            if not isinstance(found.index, FakeTensor):  # fake tensors must not be cached
                self._copies[device] = found
        return found


@dataclass(frozen=True)
class Topology(EdgeSource):
    """Edges that are looked up in a bank by `topology` `[*B]`; edges of absent nodes are absent.

    Args:
        bank: the topologies.
    """

    bank: TopologyBank

    def __call__(self, graph: TensorDict) -> Edges:
        """Look up the edges."""
        number, node_mask = graph["topology"], graph["node_mask"]
        bank = self.bank.on(number.device)
        index = bank.index[number]
        mask = bank.mask[number] & ends_exist(index, node_mask)
        return Edges(index, mask, None if bank.attr is None else bank.attr[number])

    def width(self, position_dim: int) -> int:  # noqa: ARG002
        """Return the number of edge features in the bank."""
        return self.bank.num_features

    def entries(self, lead: Lead, num_nodes: int, device: Device) -> dict[str, TensorSpec]:  # noqa: ARG002
        """Return the spec of the topology id."""
        return {"topology": Bounded(0, len(self.bank) - 1, shape=lead, dtype=torch.int64, device=device)}

    def check(self, num_nodes: int) -> None:
        """Raise ValueError if the bank has an edge at a node slot beyond `num_nodes`."""
        index = self.bank.index
        if not _has_values(index) or index.numel() == 0:
            return
        highest, number = index.flatten(1).amax(1).max(0)
        if int(highest) >= num_nodes:
            raise ValueError(
                f"topology {int(number)} has an edge at node {int(highest)} but the graph has only "
                f"{num_nodes} nodes: raise GraphSpec.num_nodes"
            )


def _as_index(edges: EdgeList, number: int) -> Tensor:
    """Convert one edge list to `[2, E]` int64."""
    if isinstance(edges, Tensor):
        index = edges
    else:
        index = torch.tensor(edges, dtype=torch.int64).reshape(len(edges), 2).T
    if index.dim() != 2 or index.shape[0] != 2 or index.is_floating_point():
        raise ValueError(
            f"edge list {number} must be pairs or [2, E] integers, got {list(index.shape)} {index.dtype}"
        )
    if _has_values(index) and index.numel() and int(index.min()) < 0:
        raise ValueError(f"edge list {number} has the node {int(index.min())}: nodes count from zero")
    return index.long()


def _has_values(tensor: Tensor) -> bool:
    """Return whether a tensor has values, which fake and meta tensors do not."""
    return type(tensor) is Tensor and not tensor.is_meta
