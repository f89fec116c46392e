"""The digests of the instances of this version, so that results say whether theirs are the same.

`published.json` has the instances of whole and of smoke runs, made with torch 2.13 and networkx 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewise.config import files

FILE = Path(__file__).with_name("published.json")

Record = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Number and digest of instances by task and split."""


def other_instances(instances: Record, *, smoke: bool) -> list[str]:
    """Return the tasks and splits whose instances are not those that were published."""
    known = files.read_json(FILE)["smoke" if smoke else "whole"]
    return [
        f"{task}, {split}"
        for task, splits in instances.items()
        for split, found in splits.items()
        if known.get(task, {}).get(split) != found["sha256"]
    ]
