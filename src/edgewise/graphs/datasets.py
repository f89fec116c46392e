"""Sets of graphs as instances: read from files or objects, split into train, valid and test, never mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config import files
from edgewise.config.errors import ConfigError, DataError
from edgewise.graphs import in_memory as given
from edgewise.graphs.convert import from_pyg
from edgewise.graphs.graph_files import HINT, READERS, read_graph_file
from edgewise.graphs.graph_objects import from_objects
from edgewise.graphs.graph_set import ALL, SPLITS, GraphSet
from edgewise.graphs.graph_store import load_graph_set
from edgewise.graphs.raw_graph import Names, to_data
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class GraphInstances:
    """The graphs of one split as padded tensors, of which an environment draws one per world.

    Args:
        graphs: `[K]`, in the layout of `spec`.
        spec: shape of the graphs, with explicit edges.
        split: name of the split.
        fingerprint: SHA-256 of the split.
        labels: name of each graph.
        names: what the columns and types mean.

    Example:
        >>> from torch_geometric.data import Data
        >>> path = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> instances = load_graphs([path], split="all")
        >>> instances[instances.sample(4, torch.Generator().manual_seed(0))]["node_mask"].shape
        torch.Size([4, 3])
    """

    graphs: TensorDict
    spec: GraphSpec
    split: str
    fingerprint: str
    labels: tuple[str, ...]
    names: Names

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: Tensor) -> TensorDict:
        """Return the graphs of the given indices `[*B]`, batch size `[*B]`."""
        return self.graphs[index]

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Sample the index of a graph for each of `count` worlds, `[count]` int64."""
        shape = (count,)
        return torch.randint(len(self), shape, generator=generator, device=self.graphs["node_mask"].device)

    def to(self, device: torch.device | str) -> GraphInstances:
        """Return the same on another device."""
        return replace(self, graphs=self.graphs.to(device))


def load_graphs(
    source: Any, *, split: str = "train", seed: int = 0, device: torch.device | str = "cpu"
) -> GraphInstances:
    """Return the graphs of one split as padded tensors; `source` and `seed` are as in `read_graphs`.

    Raises:
        ConfigError: no source is given.
        DataError: a graph cannot be read, splits share a graph, or the split is empty.
    """
    found = read_graphs(source, seed=seed)
    members, spec = found.members(split), found.spec(split)
    graphs = from_pyg([found.graphs[number] for number in members], spec)
    return GraphInstances(
        graphs.to(device),
        spec,
        split,
        found.fingerprint(split),
        tuple(found.labels[number] for number in members),
        found.names,
    )


def read_graphs(source: Any, *, seed: int = 0) -> GraphSet:
    """Read graphs and split them.

    Subfolders `train`, `valid` and `test`, or a mapping with these keys, are the splits. Otherwise graphs are
    split by the hash of their content: about a tenth each for `valid` and `test`, equal graphs together.

    Args:
        source: a folder of files, one file, a sequence or PyG Dataset of `Data`, `HeteroData` or networkx
            graphs, a mapping from splits to such sequences, or a GraphSet.
        seed: of the split by content.

    Raises:
        ConfigError: no source is given.
        DataError: a graph cannot be read, or two splits share a graph.
    """
    if source is None:
        raise ConfigError("graphs: not set", hint="give a folder of graphs, such as --graphs my_graphs/")
    if isinstance(source, GraphSet):
        return source
    if isinstance(source, str | PathLike):
        return _from_text(fspath(source), seed)
    if isinstance(source, Mapping):
        return _from_parts(source, seed)
    graphs, labels, names = from_objects(source)
    return GraphSet("the given graphs", tuple(graphs), tuple(labels), {}, names).split_by_content(seed)


def with_named_graphs(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Replace graphs that are given as objects under `graphs` by a name that a config can hold."""
    named = dict(settings)
    for prefix in ("", "env."):
        source = named.get(f"{prefix}graphs")
        if isinstance(source, PathLike):
            named[f"{prefix}graphs"] = fspath(source)
        elif not _is_plain(source):
            seed = named.get(f"{prefix}split_seed", 0)
            found = read_graphs(source, seed=seed if isinstance(seed, int) else 0)
            named[f"{prefix}graphs"] = given.remember(found.name, found)
    if isinstance(named.get("env"), Mapping):
        named["env"] = with_named_graphs(named["env"])
    return named


def _is_plain(source: Any) -> bool:
    """Return whether a setting holds names and numbers only, as an environment's own field `graphs` may."""
    if isinstance(source, Mapping):
        return all(_is_plain(each) for each in source.values())
    if isinstance(source, list | tuple):
        return all(_is_plain(each) for each in source)
    return source is None or isinstance(source, str | int | float)


def _from_text(source: str, seed: int) -> GraphSet:
    if given.is_given(source):
        known = given.recall(source)
        if isinstance(known, GraphSet):
            return known
        found = load_graph_set(known)
        if found.name != source:
            raise DataError(
                f"{known} holds other graphs than the run was trained on", hint="restore the file"
            )
        return found
    path = _place_of(source)
    if not path.exists():
        raise DataError(
            f"{source}: there is no such folder or file", hint="give the path of a folder of graphs"
        )
    if path.is_dir():
        return _read_folder(path, _state_of(path), seed)
    if path.suffix == ".safetensors":
        return load_graph_set(path)
    return _from_files(source, {ALL: [path]}, seed)


def _place_of(source: str) -> Path:
    """Return the path of a folder or file, without following a link in a run folder."""
    try:
        path = Path(source).expanduser()
        files.check_place(path)
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{source}: {reason}", hint="give the path of a folder of graphs") from error
    return path


def _state_of(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return names, sizes and times of the graphs of a folder, so that a changed folder is read anew."""
    folders = [folder, *(folder / split for split in SPLITS if (folder / split).is_dir())]
    found = [path for each in folders for path in _files_in(each)]
    states = [(path, path.lstat() if path.is_symlink() else path.stat()) for path in found]
    return tuple((str(path), state.st_size, state.st_mtime_ns) for path, state in states)


@lru_cache(maxsize=4)
def _read_folder(folder: Path, state: object, seed: int) -> GraphSet:  # noqa: ARG001
    parts = {split: _files_in(folder / split) for split in SPLITS if (folder / split).is_dir()}
    loose = _files_in(folder)
    if not parts:
        others = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")
        if not loose:
            also = f"; it has subfolders {', '.join(others)}" if others else ""
            raise DataError(
                f"{folder}: holds no graph{also}", hint=f"{HINT}; subfolders are train, valid and test"
            )
        return _from_files(str(folder), {ALL: loose}, seed)
    if loose:
        raise DataError(
            f"{folder}: {loose[0].name} is beside the folders {', '.join(parts)}, so it is in no split",
            hint="move it into one of them",
        )
    return _from_files(str(folder), parts, seed)


def _files_in(folder: Path) -> list[Path]:
    """Return the files that are graphs by their names; what is no regular file is refused when it is read."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.name[0] != "." and path.suffix.lower() in READERS and not path.is_dir()
    )


def _from_files(source: str, parts: Mapping[str, Sequence[Path]], seed: int) -> GraphSet:
    paths = [path for members in parts.values() for path in members]
    graphs, names = to_data([read_graph_file(path) for path in paths])
    found = GraphSet(source, tuple(graphs), tuple(map(str, paths)), {}, names)
    return _with_parts(found, {split: len(members) for split, members in parts.items()}, seed)


def _from_parts(source: Mapping[Any, Any], seed: int) -> GraphSet:
    foreign = sorted(str(split) for split in source if split not in SPLITS)
    if foreign:
        raise DataError(f"the given graphs have a split {foreign[0]}", hint=f"splits are {', '.join(SPLITS)}")
    lists = {split: list(_items(source[split])) for split in SPLITS if split in source}
    graphs, _, names = from_objects([graph for items in lists.values() for graph in items])
    labels = [
        f"graphs[{split!r}][{number}]" for split, items in lists.items() for number in range(len(items))
    ]
    found = GraphSet("the given graphs", tuple(graphs), tuple(labels), {}, names)
    return _with_parts(found, {split: len(items) for split, items in lists.items()}, seed)


def _items(graphs: Any) -> list[Any]:
    return [graphs[number] for number in range(len(graphs))]


def _with_parts(found: GraphSet, sizes: Mapping[str, int], seed: int) -> GraphSet:
    """Return the set with splits of the given sizes, in this order; `all` is split by content."""
    if ALL in sizes:
        return found.split_by_content(seed)
    splits, begin = {}, 0
    for split, size in sizes.items():
        splits[split] = tuple(range(begin, begin + size))
        begin += size
    return replace(found, splits=splits)
