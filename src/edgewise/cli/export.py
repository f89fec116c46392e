"""`edgewise export`: write the policy of a run for other programs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser

if TYPE_CHECKING:
    from edgewise.experiments.export import Exported


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("run", metavar="RUN", type=run_path, help="run folder or zoo:NAME")
    parser.add_argument(
        "--to",
        choices=["onnx", "pt2"],
        default="onnx",
        help="format: onnx for ONNX Runtime, pt2 for torch.export (onnx)",
    )
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="output folder, which must not exist (the run's name)"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="NAME",
        default="best",
        help="checkpoint to load: best, latest, or the name of one (best)",
    )
    parser.examples(
        "edgewise export RUN",
        "edgewise export RUN --to pt2 --out policy",
        "edgewise export RUN --checkpoint latest --json",
    )


def run(options: Namespace, console: Console) -> int:
    """Export the policy, compare the program with it, and show both with their latencies."""
    prepare(threads=1)
    from edgewise.experiments.export import export

    out = options.out or Path(f"{options.run.resolve().name}-{options.to}")
    console.note("tracing the policy and comparing the program with it; this takes up to a minute")
    found = export(options.run, out, format=options.to, which=options.checkpoint)
    console.show(_data(found, options.to), _text(found, options.to))
    return 0


def _data(found: Exported, format: str) -> dict[str, Any]:
    return {
        "folder": str(found.folder),
        "files": list(found.files),
        "format": format,
        "traced_sizes": found.traced,
        "tried": [
            {"sizes": dict(each.sizes), "largest_difference": each.difference} for each in found.checked.tried
        ],
        "largest_difference": found.checked.largest_difference,
        "actions": found.checked.actions,
        "differing_actions": found.checked.differing_actions,
        "microseconds_per_decision": {"eager": found.latency.eager, format: found.latency.program},
    }


def _text(found: Exported, format: str) -> str:
    rows = [["traced", _sizes(found.traced), ""]]
    rows += [
        ["tried", _sizes(each.sizes), f"{each.difference:.1e}"]
        for each in {_sizes(each.sizes): each for each in found.checked.tried}.values()
    ]
    lines = [str(found.folder / name) for name in found.files]
    lines += ["", table(["", "sizes", "largest difference"], rows), ""]
    lines.append(f"actions equal to the policy's: {found.checked.actions} of {found.checked.actions}")
    faster = found.latency.eager / found.latency.program
    lines.append(
        f"one decision: {found.latency.eager:.0f} us eager, {found.latency.program:.0f} us {format} "
        f"({faster:.1f} times as fast)"
    )
    return "\n".join(lines)


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{size} {name}" for name, size in sizes.items())
