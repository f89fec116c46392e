"""Markdown tables in docstrings become tables of reStructuredText."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sphinx.application import Sphinx


def convert(lines: Sequence[str]) -> list[str]:
    """Return the lines of a docstring with every Markdown table as a `list-table`."""
    converted: list[str] = []
    rows: list[list[str]] = []
    indent = ""
    for line in [*lines, ""]:
        text = line.strip()
        if text.startswith("|") and text.endswith("|"):
            indent = line[: len(line) - len(line.lstrip())]
            rows.append([cell.strip() for cell in text.strip("|").split("|")])
            continue
        if rows:
            converted += [indent + part if part else "" for part in _list_table(rows)]
            rows = []
        converted.append(line)
    return converted[:-1]


def _list_table(rows: list[list[str]]) -> list[str]:
    header, *body = [row for row in rows if not all(cell.strip("-: ") == "" for cell in row)]
    lines = ["", ".. list-table::", "   :header-rows: 1", ""]
    for row in (header, *body):
        lines += [f"   {'* -' if place == 0 else '  -'} {cell}" for place, cell in enumerate(row)]
    return [*lines, ""]


def _process(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    lines[:] = convert(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to every docstring."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
