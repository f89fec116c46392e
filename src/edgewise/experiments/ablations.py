"""Results of ablations as rows, kept in the run folder for its report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from edgewise.evaluation.paired import Row, paired_rows
from edgewise.evaluation.result import Evaluation
from edgewise.experiments.evaluate import Ablated
from edgewise.report.ablations import FILE, FORMAT, read_ablations
from edgewise.runs import digests
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.zoo import is_in_zoo


def ablation_rows(whole: Evaluation, ablated: Ablated) -> list[Row]:
    """Return a row for every measure: the policy as it is against the same policy without something."""
    return [
        {
            **row,
            "without": ablated.what,
            "seed": whole.seed,
            "frames": whole.frames,
            "changed_actions": ablated.changed_actions,
        }
        for row in paired_rows(whole, ablated.result)
    ]


def save_ablations(run: Path, rows: Sequence[Row]) -> None:
    """Add rows to those in the run folder; newer ones replace those of the same instances.

    Policies that come with edgewise are left as they are.

    Args:
        run: a run folder, or a checkpoint's folder within one.
        rows: from `ablation_rows`.
    """
    folder = run.resolve().parents[1] if checkpoint.NAME.fullmatch(run.name) else run
    if is_in_zoo(folder):
        return
    path = folder / FILE
    kept = {_key(row): row for row in (*(read_ablations(path) if path.exists() else ()), *rows)}
    content = {"format": FORMAT, "rows": list(kept.values())}
    digests.replace(path, (json.dumps(content, allow_nan=False, default=str) + "\n").encode())


def _key(row: Row) -> str:
    return json.dumps([row["without"], row["measure"], row["settings"], row["seed"]], default=str)
