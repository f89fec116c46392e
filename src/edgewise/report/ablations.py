"""The section "what the policy uses": ablations that `edgewise eval --ablate` left in the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import DataError

FILE = "ablations.json"
FORMAT = "edgewise-ablations/1"
NUMBERS = ("mean", "other_mean", "difference", "changed_actions")
BOUNDS = ("difference_low", "difference_high")


def read_ablations(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a run's ablations.

    Raises:
        DataError: the file is damaged or of another format.
    """
    content = files.read_json(path)
    rows = content.get("rows") if isinstance(content, Mapping) else None
    if not isinstance(rows, list) or content.get("format") != FORMAT:
        raise DataError(f"{path.name}: expected {FORMAT}")
    for row in rows:
        if not (isinstance(row, dict) and _is_whole(row)):
            raise DataError(f"{path.name}: a row is not the result of an ablation: {str(row)[:80]}")
    return rows


def _is_whole(row: Mapping[str, Any]) -> bool:
    numbers = [isinstance(row.get(name), int | float) for name in NUMBERS]
    numbers += [name in row and isinstance(row[name], int | float | None) for name in BOUNDS]
    texts = (isinstance(row.get(name), str) for name in ("without", "measure"))
    return all((*numbers, *texts)) and isinstance(row.get("settings"), dict)


def used(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the page: what was removed, and how the policy does with and without it."""
    return [
        {
            "without": row["without"],
            "settings": ", ".join(f"{name} = {value}" for name, value in row["settings"].items()),
            "measure": row["measure"],
            "episodes": row.get("episodes"),
            "mean": row["mean"],
            "ablated": row["other_mean"],
            "difference": {
                "estimate": row["difference"],
                "low": row["difference_low"],
                "high": row["difference_high"],
                "n": row.get("n", row.get("episodes")),
            },
            "changed": row["changed_actions"],
        }
        for row in rows
    ]
