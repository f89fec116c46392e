"""The files of a packed run: one checkpoint without the state of training, and the history cut short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from edgewise.config import files as run_files
from edgewise.runs import digests, durable
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder

COPIED = ("config.json", "versions.json", "code.json", "graphs.json", "graphs.safetensors", "events.jsonl")
TABLES = ("metrics.csv", "timing.csv")
ROWS = 200
"""Largest number of rows of a table that are kept."""
EVALUATIONS = 8
"""Largest number of evaluations that are kept, from the first to the last."""
REPLAY_BYTES = 120_000
"""Largest size of all replays that are kept."""

T = TypeVar("T")


def write_packed(run: Path, stage: Path, state: Mapping[str, Any], *, saved: Path) -> None:
    """Write everything of a packed run but its card.

    Args:
        run: the run folder.
        stage: an empty folder, to fill.
        state: of the one checkpoint that it gets.
        saved: the checkpoint of the run that the state is from.
    """
    for name in COPIED:
        if (run / name).is_file():
            write_recorded(stage, name, run_files.read_bytes(run / name, largest=run_files.LARGEST_TABLE))
    for name in TABLES:
        if (run / name).is_file():
            write_recorded(stage, name, _thinned(run_files.read_bytes(run / name)))
    for path in (*_kept_evaluations(run), *_kept_replays(run)):
        (stage / path.parent.name).mkdir(exist_ok=True)
        write_recorded(stage, f"{path.parent.name}/{path.name}", run_files.read_bytes(path))
    folder = RunFolder(stage).checkpoints
    checkpoint.save(folder, state, step=checkpoint.step_of(saved))
    best = run / "checkpoints" / checkpoint.BEST
    if best.is_file() and run_files.read_json(best).get("checkpoint") == saved.name:
        write_recorded(stage, f"checkpoints/{checkpoint.BEST}", run_files.read_bytes(best))


def write_recorded(stage: Path, name: str, content: bytes) -> None:
    """Write a new file of a run, and record its digest."""
    durable.write_whole(stage / name, content)
    if digests.is_recorded(name):
        digests.record(stage, name, content)


def _thinned(table: bytes) -> bytes:
    """Return a table with at most `ROWS` rows, the last one included."""
    header, *rows = table.splitlines(keepends=True)
    return b"".join([header, *_spread(rows, ROWS)])


def _kept_evaluations(run: Path) -> Iterator[Path]:
    """Yield evaluations of baselines, and some of the policy from the first to the last."""
    files = sorted((run / "evaluations").glob("*.json"))
    baselines = [path for path in files if path.name.startswith("baseline")]
    yield from baselines
    yield from _spread([path for path in files if path not in baselines], EVALUATIONS)


def _kept_replays(run: Path) -> Iterator[Path]:
    """Yield the newest and the first episode, then others from the newest on, as far as there is room."""
    files = sorted((run / "replays").glob("*.json"), reverse=True)
    room = REPLAY_BYTES
    for path in dict.fromkeys([*files[:1], *files[-1:], *files]):
        if path.stat().st_size <= room:
            room -= path.stat().st_size
            yield path


def _spread(items: Sequence[T], count: int) -> list[T]:
    """Return at most `count` items at equal distances, the first and the last included."""
    if len(items) <= count:
        return list(items)
    return [items[round(index * (len(items) - 1) / (count - 1))] for index in range(count)]
