"""Names for graphs that are given in Python instead of as a path. Never imports torch.

A config holds text alone, so that a set of graphs in memory is called `given:SHA256`. A run that was trained
on such graphs keeps them in a file of its folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edgewise.config.errors import DataError

if TYPE_CHECKING:
    from edgewise.graphs.graph_set import GraphSet

PREFIX = "given:"
FILE = "graphs.safetensors"
"""File of a run folder with the graphs that were given in Python."""

_known: dict[str, GraphSet | Path] = {}


def is_given(source: str) -> bool:
    """Return whether a source is the name of graphs that were given in Python."""
    return source.startswith(PREFIX)


def remember(name: str, graphs: GraphSet | Path) -> str:
    """Remember what a name stands for, graphs or the file of a run folder, and return the name."""
    _known[name] = graphs
    return name


def remember_run(source: object, folder: Path) -> None:
    """Remember the file of a run folder, if the run was trained on graphs given in Python."""
    if isinstance(source, str) and is_given(source) and (folder / FILE).is_file() and source not in _known:
        remember(source, folder / FILE)


def recall(name: str) -> GraphSet | Path:
    """Return what a name stands for.

    Raises:
        DataError: nothing in this process has that name.
    """
    if name not in _known:
        raise DataError(
            f"the graphs {name[: len(PREFIX) + 12]}… were given in Python and are not here",
            hint=f"open their run, whose folder holds {FILE}, or give the graphs again",
        )
    return _known[name]
