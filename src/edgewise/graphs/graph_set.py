"""A set of graphs with a content hash each, in splits that share no graph."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch_geometric.data import Data

from edgewise.config.errors import ConfigError, DataError
from edgewise.graphs import in_memory as given
from edgewise.graphs.edges import Explicit
from edgewise.graphs.raw_graph import Names
from edgewise.graphs.spec import GraphSpec

SPLITS = ("train", "valid", "test")
ALL = "all"
VALID_SHARE = TEST_SHARE = 0.1
"""Share of graphs in a split, where they are split by their content."""
KEYS = ("x", "pos", "node_type", "edge_attr", "u")
"""Entries of a graph besides its edges."""


@dataclass(frozen=True)
class GraphSet:
    """Graphs with a content hash each, in splits that share no graph.

    Args:
        source: where they come from, for messages and records.
        graphs: PyG Data with the same columns in all of them.
        labels: name of each graph: its file, or `graphs[3]`.
        splits: indices of the graphs of each split; empty if there is one graph only, which cannot be split.
        names: what the columns and types mean.
    """

    source: str
    graphs: tuple[Data, ...]
    labels: tuple[str, ...]
    splits: Mapping[str, tuple[int, ...]]
    names: Names = field(default_factory=Names)

    def __post_init__(self) -> None:
        _check_columns(self.graphs, self.labels)
        _check_types(self)
        _check_apart(self)

    def __len__(self) -> int:
        return len(self.graphs)

    def members(self, split: str) -> tuple[int, ...]:
        """Return the indices of the graphs of a split, or of all.

        Raises:
            DataError: the split is empty.
        """
        if split == ALL:
            return tuple(range(len(self)))
        if split not in SPLITS:
            raise ConfigError(f"split: got {split}, expected {', '.join(SPLITS)} or {ALL}")
        if not self.splits.get(split):
            raise DataError(
                f"{self.source}: the split {split} has no graph",
                hint="put graphs into subfolders train, valid and test, or use all of them by split=all",
            )
        return self.splits[split]

    @cached_property
    def hashes(self) -> tuple[str, ...]:
        """SHA-256 of the content of each graph; the order of edges does not matter."""
        return tuple(content_hash(graph, self.names) for graph in self.graphs)

    def fingerprint(self, split: str) -> str:
        """Return the SHA-256 of a split; the order of graphs does not matter."""
        hashes = self.hashes
        return _digest(*sorted(hashes[number] for number in self.members(split)))

    @cached_property
    def name(self) -> str:
        """A name made from the contents: the SHA-256 of all splits after `given:`."""
        parts = [f"{split}:{self.fingerprint(split)}" for split in SPLITS if self.splits.get(split)]
        return given.PREFIX + _digest(self.fingerprint(ALL), *parts)

    def spec(self, split: str) -> GraphSpec:
        """Return the smallest spec that holds the graphs of a split, with the columns of the whole set."""
        chosen, first = [self.graphs[number] for number in self.members(split)], self.graphs[0]
        types = [
            int(graph.node_type.max()) + 1 for graph in self.graphs if graph.get("node_type") is not None
        ]
        return GraphSpec(
            max(int(graph.num_nodes) for graph in chosen),
            _width(first, "x"),
            edges=Explicit(max(int(graph.num_edges) for graph in chosen), _width(first, "edge_attr")),
            position_dim=_width(first, "pos"),
            node_types=len(self.names.node_types) or max(types, default=0),
            graph_features=_width(first, "u"),
        )

    def split_by_content(self, seed: int) -> GraphSet:
        """Return the set split by the rank of each different graph's seeded hash, equal graphs together.

        Fewer different graphs than splits stay without splits.
        """
        hashes = self.hashes
        ranked = sorted(set(hashes), key=lambda digest: _digest(str(seed), digest))
        if len(ranked) < len(SPLITS):
            return self
        valid, test = (max(1, round(share * len(ranked))) for share in (VALID_SHARE, TEST_SHARE))
        parts = {"test": ranked[:test], "valid": ranked[test : test + valid], "train": ranked[test + valid :]}
        owner = {digest: split for split, digests in parts.items() for digest in digests}
        splits = {
            split: tuple(number for number, digest in enumerate(hashes) if owner[digest] == split)
            for split in SPLITS
        }
        return replace(self, splits=splits)


def content_hash(graph: Data, names: Names) -> str:
    """Return the SHA-256 of a graph: nodes in their order, edges in any order."""
    edges = graph.edge_index
    order = torch.argsort(edges[0] * int(graph.num_nodes) + edges[1], stable=True)
    sha = hashlib.sha256(f"{int(graph.num_nodes)} {int(graph.num_edges)}".encode())
    sha.update(edges[:, order].contiguous().numpy().tobytes())
    for key in KEYS:
        values = graph.get(key)
        if values is None:
            continue
        if key == "node_type" and names.node_types:
            sha.update("\0".join(names.node_types[kind] for kind in values.tolist()).encode())
            continue
        values = values[order] if key == "edge_attr" else values
        sha.update(f"{key} {list(values.shape)}".encode())
        sha.update(values.contiguous().numpy().tobytes())
    return sha.hexdigest()


def _check_columns(graphs: Sequence[Data], labels: Sequence[str]) -> None:
    """Raise DataError unless all graphs have nodes, and the same columns."""
    if not graphs:
        raise DataError("the given graphs are empty", hint="give at least one graph")
    for graph, label in zip(graphs, labels, strict=True):
        if not graph.num_nodes:
            raise DataError(f"{label}: has no node")
        for key in KEYS:
            if (graph.get(key) is None) != (graphs[0].get(key) is None):
                one, other = (label, labels[0]) if graph.get(key) is None else (labels[0], label)
                raise DataError(
                    f"{one}: has no {key}, but {other} has", hint="give all graphs the same features"
                )
            if _width(graph, key) != _width(graphs[0], key):
                got, expected = _width(graph, key), _width(graphs[0], key)
                raise DataError(
                    f"{label}: {got} columns of {key}, but {expected} in {labels[0]}",
                    hint="give all graphs the same features",
                )


def _check_types(found: GraphSet) -> None:
    """Raise DataError unless node types are ids from zero, and named ones if types have names."""
    for graph, label in zip(found.graphs, found.labels, strict=True):
        types = graph.get("node_type")
        known = len(found.names.node_types)
        if types is not None and (int(types.min()) < 0 or (known and int(types.max()) >= known)):
            raise DataError(
                f"{label}: node types from {int(types.min())} to {int(types.max())}, {known} have names"
            )


def _check_apart(found: GraphSet) -> None:
    """Raise DataError if the same graph is in two splits."""
    if len(found.splits) < 2:
        return
    hashes = found.hashes
    owner: dict[str, tuple[str, int]] = {}
    for split, members in found.splits.items():
        for number in members:
            first = owner.setdefault(hashes[number], (split, number))
            if first[0] != split:
                raise DataError(
                    f"{found.source}: {found.labels[number]} of the split {split} is the same graph as "
                    f"{found.labels[first[1]]} of the split {first[0]}",
                    hint="keep it in one split: results on graphs that were trained on mean nothing",
                )


def _width(graph: Data, key: str) -> int:
    values = graph.get(key)
    if values is None:
        return 0
    return 1 if values.dim() == 1 else int(values.shape[-1])


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
