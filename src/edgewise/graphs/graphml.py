"""Read GraphML; errors carry the file and the line. Document type declarations are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.parsers import expat

from edgewise.config.sources import shown
from edgewise.graphs.raw_graph import RawGraph, fail

_NUMBERS = {"int": int, "long": int, "float": float, "double": float}
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_WITHIN = {
    "graph": ("graphml", "node", "edge"),
    "key": ("graphml",),
    "default": ("key",),
    "node": ("graph",),
    "edge": ("graph",),
}
"""Where elements may stand; a graph within a node or an edge gets an error of its own."""
_HINT = "give a GraphML file with one graph of nodes and edges"


def read_graphml(path: Path, content: bytes) -> RawGraph:
    """Read the only graph of a GraphML file.

    Raises:
        DataError: naming the file and the line.
    """
    reader = _Reader(path)
    try:
        reader.parser.Parse(content, True)
    except expat.ExpatError as error:
        fail(f"{path}:{error.lineno}", f"not XML: {expat.ErrorString(error.code)}", hint=_HINT)
    except (LookupError, ValueError) as error:  # a declared encoding that does not exist, or does not fit
        fail(str(path), f"{error}", hint="save the file as UTF-8")
    return reader.graph()


class _Reader:
    """Collects nodes and edges while expat parses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype
        self._keys: dict[str, tuple[str, str, str]] = {}
        self._defaults: dict[str, str] = {}
        self._open: list[str] = []
        self._text: list[str] = []
        self._key = ""
        self._index: dict[str, int] = {}
        self._nodes: list[dict[str, Any]] = []
        self._edges: list[tuple[str, str, dict[str, Any], int]] = []
        self._current: dict[str, Any] | None = None
        self._directed: bool | None = None
        self._own: dict[str, Any] = {}

    def graph(self) -> RawGraph:
        """Return the graph, after its ends and defaults are filled in."""
        if self._directed is None:
            fail(str(self.path), "holds no graph", hint=_HINT)
        edges = []
        for source, target, attributes, line in self._edges:
            for end in (source, target):
                if end not in self._index:
                    fail(f"{self.path}:{line}", f"an edge ends at {shown(end)}, which is no node", hint=_HINT)
            edges.append((self._index[source], self._index[target], attributes))
        owned = (("node", self._nodes), ("edge", [item[2] for item in edges]), ("graph", [self._own]))
        for owner, items in owned:
            for identity, text in self._defaults.items():
                of, name, kind = self._keys[identity]
                if of == owner or (of == "all" and owner != "graph"):
                    for attributes in items:
                        attributes.setdefault(name, self._value(name, kind, text))
        return RawGraph(str(self.path), list(self._index), self._nodes, edges, self._directed, self._own)

    def _start(self, tag: str, given: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        within = self._open[-1] if self._open else ""
        self._open.append(tag)
        self._text = []
        if within not in _WITHIN.get(tag, (within,)):
            self._fail(f"<{tag}> within <{within}>" if within else f"<{tag}> as the root")
        if tag == "key":
            self._key = self._needed(given, "id", tag)
            if self._key in self._keys:
                self._fail(f"a second key {shown(self._key)}")
            name = given.get("attr.name", self._key)
            self._keys[self._key] = (given.get("for", "all"), name, given.get("attr.type", "string"))
        elif tag == "graph":
            if self._directed is not None:
                self._fail("a second graph, or a graph within a graph")
            default = given.get("edgedefault", "directed")
            if default not in ("directed", "undirected"):
                self._fail(f"edgedefault is {shown(default)}, expected directed or undirected")
            self._directed = default == "directed"
        elif tag == "node":
            label = self._needed(given, "id", tag)
            if label in self._index:
                self._fail(f"a second node {shown(label)}")
            self._index[label] = len(self._nodes)
            self._current = {}
            self._nodes.append(self._current)
        elif tag == "edge":
            self._current = {}
            ends = self._needed(given, "source", tag), self._needed(given, "target", tag)
            if self._directed != self._truth("directed", given.get("directed", str(self._directed))):
                self._fail("directed and undirected edges in one graph cannot be read")
            self._edges.append((*ends, self._current, self.parser.CurrentLineNumber))
        elif tag == "hyperedge":
            self._fail("hyperedges cannot be read")
        elif tag == "data":
            self._key = self._needed(given, "key", tag)

    def _end(self, tag: str) -> None:
        tag, text = tag.rpartition(" ")[2], "".join(self._text).strip()
        self._open.pop()
        if tag == "default":
            self._defaults[self._key] = text
        elif tag == "data" and self._open[-1:] in (["node"], ["edge"], ["graph"]):
            if self._key not in self._keys:
                self._fail(f"data of key {shown(self._key)}, which is not declared")
            _, name, kind = self._keys[self._key]
            item = self._own if self._open[-1] == "graph" else self._current
            assert item is not None
            item[name] = self._value(name, kind, text)
        self._text = []

    def _characters(self, text: str) -> None:
        self._text.append(text)

    def _doctype(self, *_: Any) -> None:
        self._fail("a document type declaration, which is refused")

    def _value(self, name: str, kind: str, text: str) -> Any:
        if kind == "boolean":
            return self._truth(name, text)
        if kind not in _NUMBERS:
            return text
        try:
            return _NUMBERS[kind](text)
        except ValueError:
            self._fail(f"{name} is {shown(text)}, declared as {kind}")

    def _truth(self, name: str, text: str) -> bool:
        if text.lower() not in _TRUTHS:
            self._fail(f"{name} is {shown(text)}, expected true or false")
        return _TRUTHS[text.lower()]

    def _needed(self, given: dict[str, str], name: str, tag: str) -> str:
        if name not in given:
            self._fail(f"<{tag}> without {name}")
        return given[name]

    def _fail(self, message: str) -> Any:
        fail(f"{self.path}:{self.parser.CurrentLineNumber}", message, hint=_HINT)
