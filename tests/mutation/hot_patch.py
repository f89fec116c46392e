"""Plant a fault in modules that are imported already, by replacing the code of functions in place."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

Place = tuple[str, str, int]
"""File, qualified name and first line of a function."""


@dataclass(frozen=True)
class Patch:
    """New code for some functions of a file, by their places before the change."""

    code: dict[Place, CodeType]


class Functions:
    """All functions of a package that exist in this process, by their places.

    Args:
        package: folder of the package.
    """

    def __init__(self, package: Path) -> None:
        self._known: dict[Place, list[FunctionType]] = {}
        for found in gc.get_objects():
            if type(found) is FunctionType and found.__code__.co_filename.startswith(str(package)):
                self._known.setdefault(_place(found.__code__), []).append(found)

    def apply(self, patch: Patch) -> bool:
        """Replace the code of all functions of a patch; return false if one of them does not exist here."""
        targets = [(self._known.get(place, []), code) for place, code in patch.code.items()]
        if not all(functions for functions, _ in targets):
            return False
        for functions, code in targets:
            for function in functions:
                if len(code.co_freevars) != len(function.__code__.co_freevars):
                    return False
                function.__code__ = code
        return True


def make_patch(file: Path, before: str, after: str) -> Patch | None:
    """Return what turns the functions of `before` into those of `after`; None if anything else differs."""
    old, new = _Outline(before), _Outline(after)
    if old.skeleton != new.skeleton:
        return None
    compiled = {_place(code): code for code in _codes(compile(after, str(file), "exec", dont_inherit=True))}
    changed = {}
    for (name, line, body), (_, new_line, new_body) in zip(old.functions, new.functions, strict=True):
        if body != new_body:
            changed[str(file), name, line] = compiled[str(file), name, new_line]
    return Patch(changed)


class _Outline(ast.NodeTransformer):
    """The outermost functions of a source text, and everything else as text without them.

    Attributes:
        functions: qualified name, first line and text of the body of each.
        skeleton: the rest.
    """

    def __init__(self, source: str) -> None:
        self.functions: list[tuple[str, int, str]] = []
        self._classes: list[str] = []
        self.skeleton = ast.dump(self.visit(ast.parse(source)))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._classes.append(node.name)
        self.generic_visit(node)
        self._classes.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        body = "".join(ast.dump(statement) for statement in node.body)
        self.functions.append((".".join((*self._classes, node.name)), line, body))
        node.body = []
        return node


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno
