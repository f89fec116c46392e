"""Read one graph from a file: GraphML, an edge list, a CSV of edges, or node-link JSON.

Every problem is a DataError that names the file and, where there is one, the line.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from edgewise.config import sources
from edgewise.config.sources import shown
from edgewise.graphs.graphml import read_graphml
from edgewise.graphs.raw_graph import RawGraph, fail

SOURCES = ("source", "src", "from", "u")
TARGETS = ("target", "dst", "to", "v")
COMMENTS = ("#", "%")

NUMBER = re.compile(r"-?[0-9]{1,18}")
"""A node that is ordered as a number."""

Row = tuple[int, list[str]]
"""Line number and cells."""


def read_graph_file(path: Path) -> RawGraph:
    """Read one graph; the suffix says in which format.

    Edge lists have a line `SOURCE TARGET [NUMBER ...]` per edge. A CSV may have a header, whose names become
    those of the edge features. Both are undirected unless a comment line `# directed` says otherwise.

    Raises:
        DataError: naming the file and the line.
    """
    if path.suffix.lower() not in READERS:
        fail(str(path), f"files {path.suffix or 'without a suffix'} cannot be read", hint=HINT)
    return READERS[path.suffix.lower()](path, sources.read(path, hint=HINT))


def read_edge_list(path: Path, content: bytes) -> RawGraph:
    """Read lines of two nodes and numbers, separated by blanks."""
    rows, directed = _lines(path, content)
    return _from_rows(path, [(number, text.split()) for number, text in rows], [], directed=directed)


def read_csv(path: Path, content: bytes) -> RawGraph:
    """Read lines of two nodes and numbers, separated by commas, with or without a header."""
    lines, directed = _lines(path, content)
    try:
        parsed = list(csv.reader((text for _, text in lines), strict=True))
    except csv.Error as error:
        fail(str(path), f"not a CSV of one edge per line: {error}")
    if len(parsed) != len(lines):
        fail(str(path), "a quotation mark that is not closed in its line")
    rows = [
        (number, [cell.strip() for cell in cells]) for (number, _), cells in zip(lines, parsed, strict=True)
    ]
    header: list[str] = []
    if rows and len(rows[0][1]) >= 2:
        first, second = (cell.lower() for cell in rows[0][1][:2])
        if first in SOURCES and second in TARGETS:
            header = rows.pop(0)[1]
    return _from_rows(path, rows, header[2:], directed=directed)


def read_node_link(path: Path, content: bytes) -> RawGraph:
    """Read `{"directed": false, "nodes": [{"id": 0, ...}], "links": [{"source": 0, "target": 1, ...}]}`."""
    plain = sources.parse_json(sources.decode(content, path), path)
    if not isinstance(plain, dict):
        fail(str(path), "an object with nodes and links is needed", hint=HINT)
    nodes, links = plain.get("nodes"), plain.get("links", plain.get("edges"))
    if not isinstance(nodes, list) or not isinstance(links, list):
        fail(str(path), "`nodes` and `links` must be lists", hint=HINT)
    index: dict[str, int] = {}
    for number, node in enumerate(nodes):
        if not isinstance(node, dict) or "id" not in node:
            fail(str(path), f"nodes[{number}] has no id")
        if index.setdefault(json.dumps(node["id"]), number) != number:
            fail(str(path), f"nodes[{number}]: a second node {shown(node['id'])}")
    edges = []
    for number, link in enumerate(links):
        if not isinstance(link, dict):
            fail(str(path), f"links[{number}] is no object with source and target")
        ends = [json.dumps(link.get(end)) for end in ("source", "target")]
        for name, end in zip(("source", "target"), ends, strict=True):
            if end not in index:
                fail(str(path), f"links[{number}] ends at {shown(link.get(name))}, which is no node")
        edges.append((index[ends[0]], index[ends[1]], _rest(link, "source", "target", "key")))
    attributes = [_rest(node, "id") for node in nodes]
    own = plain.get("graph", {})
    if not isinstance(own, dict):
        fail(str(path), "`graph` must be an object with the attributes of the graph", hint=HINT)
    directed = plain.get("directed", False)
    if not isinstance(directed, bool):
        fail(str(path), f"`directed` is {shown(directed)}, expected true or false")
    return RawGraph(str(path), list(index), attributes, edges, directed, own)


READERS: dict[str, Callable[[Path, bytes], RawGraph]] = {
    ".graphml": read_graphml,
    ".edgelist": read_edge_list,
    ".txt": read_edge_list,
    ".csv": read_csv,
    ".json": read_node_link,
}
"""Reader of each suffix."""

HINT = f"graphs are read from {', '.join(READERS)} files"


def _rest(item: dict[str, Any], *without: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in without}


def _from_rows(path: Path, rows: Sequence[Row], names: Sequence[str], *, directed: bool) -> RawGraph:
    """Return the graph of rows `SOURCE TARGET [NUMBER ...]`; nodes in numerical order if all are integers."""
    if not rows:
        fail(str(path), "holds no edge", hint=HINT)
    width = len(rows[0][1])
    for number, cells in rows:
        if len(cells) < 2:
            fail(f"{path}:{number}", f"{len(cells)} column where at least 2 are needed: SOURCE TARGET")
        if len(cells) != width:
            fail(f"{path}:{number}", f"{len(cells)} columns, but {width} in line {rows[0][0]}")
        if "" in cells[:2]:
            fail(f"{path}:{number}", "an empty name of a node")
    columns = names or (["weight"] if width == 3 else [f"weight{column}" for column in range(width - 2)])
    if len(columns) != width - 2:
        fail(f"{path}:{rows[0][0]}", f"{width} columns, but {len(columns) + 2} in the header")
    repeated = [name for number, name in enumerate(columns) if name in columns[:number]]
    if repeated:
        fail(f"{path}:1", f"two columns are called {shown(repeated[0])}")
    labels = list(dict.fromkeys(cell for _, cells in rows for cell in cells[:2]))
    if all(map(NUMBER.fullmatch, labels)):
        labels.sort(key=int)
    index = {label: number for number, label in enumerate(labels)}
    edges = [
        (index[cells[0]], index[cells[1]], _attributes(path, number, columns, cells[2:]))
        for number, cells in rows
    ]
    return RawGraph(str(path), labels, [{} for _ in labels], edges, directed)


def _attributes(path: Path, number: int, columns: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for name, cell in zip(columns, cells, strict=True):
        if name in ("type", "edge_type"):
            attributes[name] = cell
            continue
        try:
            attributes[name] = float(cell)
        except ValueError:
            fail(f"{path}:{number}", f"{name} is {shown(cell)}, not a number")
    return attributes


def _lines(path: Path, content: bytes) -> tuple[list[tuple[int, str]], bool]:
    """Return the lines that are neither blank nor comments, and whether a comment says `directed`."""
    lines, directed = [], False
    for number, line in enumerate(sources.decode(content, path).splitlines(), 1):
        text = line.strip()
        if text.startswith(COMMENTS):
            directed = directed or text.lstrip("#% ").lower() == "directed"
        elif text:
            lines.append((number, text))
    return lines, directed
