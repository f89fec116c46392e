"""Make faults at random: every place of the package where a small slip is possible, and a sample of them.

The places follow from the syntax tree alone, so that nobody who writes a test has chosen the faults that it
must find. Text that only people read (messages, docstrings, annotations) is left out.
"""

from __future__ import annotations

import ast
import random
import re
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.mutation.faults import PACKAGE, Fault

LISTED_IN = "random"
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
DROPPED = frozenset(
    ("detach", "clamp", "clamp_min", "clamp_max", "masked_fill", "masked_fill_", "clip", "nan_to_num", "abs")
)
"""Methods whose call is left out, so that their object is used as it is."""
# fmt: off
DIMENSIONS = frozenset((
    "all", "amax", "amin", "any", "argmax", "argmin", "cumsum", "flatten", "flip", "gather", "index_select",
    "log_softmax", "logsumexp", "mean", "scatter", "size", "softmax", "squeeze", "sum", "unflatten",
    "unsqueeze",
))
# fmt: on
"""Methods whose first argument is a dimension."""
SPOKEN = frozenset(
    ("_fail", "debug", "error", "exception", "fail", "info", "note", "show", "warning", "write")
)
"""Calls whose arguments are for people to read."""


KINDS = {
    "comparison": ("compare", "negation left out"),
    "arithmetic": ("operator",),
    "slice": ("slice", "index"),
    "argument order": ("arguments swapped",),
    "left out": ("mask left out", *(f"{name} left out" for name in sorted(DROPPED))),
    "dimension": ("dimension",),
    "key or flag": ("key", "flag"),
}
"""Kinds of slips. A sample draws a kind first, since a third of all places are pairs of arguments."""


@dataclass(frozen=True)
class Place:
    """A range of a source text and what replaces it."""

    start: int
    end: int
    new: str
    what: str


def sample(root: Path, count: int, seed: int, *, only: str = "") -> list[Fault]:
    """Return faults drawn without replacement: first a kind, then a place of that kind, each equally likely.

    A longer sample of one seed begins with the shorter one.

    Args:
        root: of the project.
        count: of faults; fewer are returned if there are not as many.
        seed: of the draws.
        only: regular expression that the name of a file must match.
    """
    draws = random.Random(seed)
    sources = {
        str(file.relative_to(root / PACKAGE)): file.read_text()
        for file in sorted((root / PACKAGE).rglob("*.py"))
    }
    kind_of = {what: kind for kind, group in KINDS.items() for what in group}
    waiting: dict[str, list[tuple[str, Place]]] = {kind: [] for kind in KINDS}
    for name, source in sources.items():
        for place in places(source) if re.search(only, name) else ():
            waiting[kind_of[place.what.partition(":")[0]]].append((name, place))
    for each in waiting.values():
        draws.shuffle(each)
    found: dict[str, Fault] = {}
    while len(found) < count and (left := [kind for kind in KINDS if waiting[kind]]):
        name, place = waiting[draws.choice(left)].pop()
        fault = as_fault(name, sources[name], place)
        found.setdefault(fault.name, fault)
    return list(found.values())


def as_fault(file: str, source: str, place: Place) -> Fault:
    """Return a place as a fault: whole lines around it, as many as make the text unique."""
    start = source.rfind("\n", 0, place.start) + 1
    end = source.find("\n", place.end)
    end = len(source) if end < 0 else end
    while source.count(source[start:end]) != 1:
        if start > 0:
            start = source.rfind("\n", 0, start - 1) + 1
        else:
            end = source.find("\n", end + 1)
    old = source[start:end]
    new = source[start : place.start] + place.new + source[place.end : end]
    line = source.count("\n", 0, place.start) + 1
    return Fault(file, f"line {line}: {place.what}", old, new, LISTED_IN)


def places(source: str) -> list[Place]:
    """Return every slip that is possible in a source text, in its order."""
    found = sorted(set(_Slips(source).found), key=lambda place: (place.start, place.end, place.new))
    return [place for place in found if _is_python(source, place)]


def _is_python(source: str, place: Place) -> bool:
    """Return whether the statement with the slip can be parsed; only the replaced text can break it."""
    try:
        ast.parse(place.new if place.new.strip() else "0", mode="eval")
    except SyntaxError:
        return place.what.startswith(("compare", "operator", "slice"))
    return True


class _Slips(ast.NodeVisitor):
    """Collects the places of a file."""

    def __init__(self, source: str) -> None:
        self.source, self.found = source, list[Place]()
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        tree = ast.parse(source)
        self._keys = sorted(
            {
                node.slice.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Subscript)
                and isinstance(node.slice, ast.Constant)
                and isinstance(node.slice.value, str)
            }
        )
        self.visit(tree)

    # What only people or type checkers read is left out.
    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave out messages."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave out truths for type checkers."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave out messages."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Look at the value, not at the type."""
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Look at defaults and the body, not at types and decorators."""
        if node.name == "__repr__" or any("overload" in ast.dump(each) for each in node.decorator_list):
            return
        for default in (*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the body, not at flags of the class."""
        for statement in node.body:
            self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        """Leave out imports for type checkers."""
        if "TYPE_CHECKING" not in ast.dump(node.test):
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Replace a comparison by its neighbour."""
        before = node.left
        for operator, after in zip(node.ops, node.comparators, strict=True):
            old, new = COMPARISONS[type(operator)]
            self._between(before, after, old, new, "compare")
            before = after
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Replace an operator; leave out one side of a mask."""
        if type(node.op) in OPERATORS and not _is_text(node.left) and not _is_text(node.right):
            old, new = OPERATORS[type(node.op)]
            self._between(node.left, node.right, old, new, "operator")
            if isinstance(node.op, ast.BitAnd):
                self._replace(node, self._text(node.left), "mask left out")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Replace `and` by `or`, or the reverse."""
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for before, after in pairwise(node.values):
            self._between(before, after, old, new, "operator")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave out a negation."""
        if isinstance(node.op, ast.Not | ast.Invert | ast.USub) and not isinstance(
            node.operand, ast.Constant
        ):
            self._replace(node, self._text(node.operand), "negation left out")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Flip a flag."""
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value), "flag")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Move a slice by one, take another index or another key of the file."""
        index = node.slice
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(part, ast.Slice):
                for end in (part.lower, part.upper):
                    if end is not None:
                        self._replace(end, f"{self._bracketed(end)} + 1", "slice")
                        self._replace(end, f"{self._bracketed(end)} - 1", "slice")
        if isinstance(index, ast.Constant) and isinstance(index.value, str):
            near = [key for key in self._keys if key != index.value]
            if near:
                other = near[sum(map(ord, index.value)) % len(near)]
                self._replace(index, repr(other), "key")
        elif isinstance(index, ast.Constant) and isinstance(index.value, int):
            self._replace(index, str(1 if index.value == 0 else 0), "index")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Swap arguments, leave out a call, take another dimension."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in SPOKEN or name.endswith("Error") or name in ("TypeVar", "getLogger", "cast"):
            return
        plain = [each for each in node.args if not isinstance(each, ast.Starred)]
        if len(plain) == len(node.args):
            for first, second in pairwise(plain):
                one, other = self._text(first), self._text(second)
                if one != other:
                    between = self.source[self._at_end(first) : self._at(second)]
                    swapped = f"{other}{between}{one}"
                    self._add(self._at(first), self._at_end(second), swapped, "arguments swapped")
        if isinstance(node.func, ast.Attribute) and name in DROPPED:
            self._replace(node, self._text(node.func.value), f"{name} left out")
        if isinstance(node.func, ast.Attribute) and name in DIMENSIONS and node.args:
            self._dimension(node.args[0])
        for keyword in node.keywords:
            if keyword.arg == "dim":
                self._dimension(keyword.value)
        self.generic_visit(node)

    def _dimension(self, node: ast.expr) -> None:
        try:
            value = ast.literal_eval(node)
        except ValueError:
            return
        if isinstance(value, int) and not isinstance(value, bool):
            self._replace(node, str(value - 1 if value else 1), "dimension")

    def _replace(self, node: ast.expr, new: str, what: str) -> None:
        self._add(self._at(node), self._at_end(node), new, what)

    def _between(self, before: ast.expr, after: ast.expr, old: str, new: str, what: str) -> None:
        """Replace the operator between two operands."""
        start, end = self._at_end(before), self._at(after)
        place = self.source.find(old, start, end)
        if place >= 0:
            self._add(place, place + len(old), new, what)

    def _add(self, start: int, end: int, new: str, what: str) -> None:
        old = " ".join(self.source[start:end].split())
        said = f"{what}: {old} -> {' '.join(new.split())}"
        self.found.append(Place(start, end, new, textwrap.shorten(said, 90)))

    def _bracketed(self, node: ast.expr) -> str:
        text = self._text(node)
        return text if isinstance(node, ast.Name | ast.Constant | ast.Attribute | ast.Call) else f"({text})"

    def _text(self, node: ast.expr) -> str:
        return self.source[self._at(node) : self._at_end(node)]

    def _at(self, node: ast.expr) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _at_end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """Return the place in the text; columns of a syntax tree count bytes."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + len(text.encode()[:column].decode())


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
