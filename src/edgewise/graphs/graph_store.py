"""A set of graphs as one file without pickle: safetensors, with splits and names as JSON in its header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch_geometric.data import Data

from edgewise.config import files, sources
from edgewise.config.errors import DataError
from edgewise.graphs.graph_objects import checked_data
from edgewise.graphs.graph_set import KEYS, GraphSet
from edgewise.graphs.raw_graph import Names

FORMAT = "edgewise-graphs/1"
"""Largest accepted size of a file, in bytes."""


def dump_graph_set(graphs: GraphSet) -> bytes:
    """Return the content of a file that `load_graph_set` reads."""
    tensors = {
        "num_nodes": torch.tensor([int(graph.num_nodes) for graph in graphs.graphs]),
        "num_edges": torch.tensor([int(graph.num_edges) for graph in graphs.graphs]),
        "edge_index": torch.cat([graph.edge_index for graph in graphs.graphs], 1).contiguous(),
    }
    for key in KEYS:
        if graphs.graphs[0].get(key) is not None:
            tensors[key] = torch.cat([graph[key] for graph in graphs.graphs]).contiguous()
    names = graphs.names
    header = {
        "format": FORMAT,
        "source": graphs.source,
        "labels": graphs.labels,
        "splits": {split: list(members) for split, members in graphs.splits.items()},
        "node_features": names.node_features,
        "edge_features": names.edge_features,
        "node_types": names.node_types,
        "graph_features": names.graph_features,
    }
    return save(tensors, metadata={"graphs": json.dumps(header)})


def load_graph_set(path: Path) -> GraphSet:
    """Read a file of `dump_graph_set`.

    Raises:
        DataError: the file is damaged or something else.
    """
    try:
        with safe_open(sources.check(path), framework="pt") as file:
            header = files.parse_json((file.metadata() or {})["graphs"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return _graph_set(header, tensors)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
        raise DataError(f"{path} is not a set of graphs: {error!r}") from error


def _graph_set(header: dict[str, Any], tensors: dict[str, Tensor]) -> GraphSet:
    if header["format"] != FORMAT:
        raise ValueError(f"format {header['format']!r} is not {FORMAT!r}")
    nodes, edges = tensors["num_nodes"].tolist(), tensors["num_edges"].tolist()
    parts: dict[str, list[Tensor]] = {"edge_index": list(tensors["edge_index"].split(edges, 1))}
    for key in KEYS:
        if key in tensors:
            rows = {"edge_attr": edges, "u": [1] * len(nodes)}.get(key, nodes)
            parts[key] = list(tensors[key].split(rows))
    graphs = tuple(
        checked_data(Data(num_nodes=count, **{key: values[number] for key, values in parts.items()}), label)
        for number, (count, label) in enumerate(zip(nodes, header["labels"], strict=True))
    )
    named = ("node_features", "edge_features", "node_types", "graph_features")
    names = Names(*(tuple(header.get(key, ())) for key in named))
    splits = {split: tuple(members) for split, members in header["splits"].items()}
    if not all(number in range(len(graphs)) for members in splits.values() for number in members):
        raise ValueError("a split has a graph that is not there")
    return GraphSet(str(header["source"]), graphs, tuple(header["labels"]), splits, names)
