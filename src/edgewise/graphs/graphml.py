"""Read GraphML; errors carry the file and the line. Document type declarations are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.parsers import expat

from edgewise.graphs.raw_graph import RawGraph, fail

_NUMBERS = {"int": int, "long": int, "float": float, "double": float}
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
    except LookupError as error:
        fail(str(path), f"{error}", hint=_HINT)
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
                    fail(f"{self.path}:{line}", f"an edge ends at {end!r}, which is no node", hint=_HINT)
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
        self._open.append(tag)
        self._text = []
        if tag == "key":
            self._key = self._needed(given, "id", tag)
            name = given.get("attr.name", self._key)
            self._keys[self._key] = (given.get("for", "all"), name, given.get("attr.type", "string"))
        elif tag == "graph":
            if self._directed is not None:
                self._fail("a second graph, or a graph within a graph")
            self._directed = given.get("edgedefault", "directed") == "directed"
        elif tag == "node":
            label = self._needed(given, "id", tag)
            if label in self._index:
                self._fail(f"a second node {label!r}")
            self._index[label] = len(self._nodes)
            self._current = {}
            self._nodes.append(self._current)
        elif tag == "edge":
            self._current = {}
            ends = self._needed(given, "source", tag), self._needed(given, "target", tag)
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
                self._fail(f"data of key {self._key!r}, which is not declared")
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
            return text.lower() in ("true", "1")
        if kind not in _NUMBERS:
            return text
        try:
            return _NUMBERS[kind](text)
        except ValueError:
            self._fail(f"{name} is {text!r}, declared as {kind}")

    def _needed(self, given: dict[str, str], name: str, tag: str) -> str:
        if name not in given:
            self._fail(f"<{tag}> without {name}")
        return given[name]

    def _fail(self, message: str) -> Any:
        fail(f"{self.path}:{self.parser.CurrentLineNumber}", message, hint=_HINT)
