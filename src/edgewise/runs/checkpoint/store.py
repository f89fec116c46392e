"""Save and load checkpoints; a process may be killed at any time without damage, and nothing is pickled.

A checkpoint is a folder `step-000000012288` with one safetensors file per part of the state, the nesting of
the state as `state.json`, segments of large tensors (see `segments`), and a manifest with the size and
SHA-256 of every file. It is written to a staging folder and renamed when all of it is on disk, so a folder
with a final name is complete. Loading checks every file before it is used, and executes no code.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from edgewise.config import files
from edgewise.config.errors import CheckpointError
from edgewise.runs import digests, durable
from edgewise.runs.checkpoint import contents, manifest
from edgewise.runs.checkpoint.manifest import Unusable
from edgewise.runs.checkpoint.segments import Sources
from edgewise.runs.checkpoint.serialise import State
from edgewise.scale.processes.group import ALONE, Group

BEST = "best.json"
STAGING = ".stage-"
NAME = re.compile(r"step-(\d{12,18})")

log = logging.getLogger(__name__)


def save(
    folder: Path,
    state: Mapping[str, State],
    *,
    step: int,
    keep_last: int = 3,
    keep: Collection[int] = (),
    group: Group = ALONE,
) -> Path:
    """Save `state` as the checkpoint of `step`, then delete old ones.

    Args:
        folder: folder of the checkpoints; created if absent. Only one process at a time may save into it.
        state: parts by name; each is a file of its own, so that one part can be loaded without the others.
        step: step of the run; newer checkpoints have larger steps. A valid checkpoint of the same step is
            kept, since a run has one state at one step.
        keep_last: number of newest checkpoints to keep.
        keep: further steps to keep, such as the best.
        group: processes that save together, each the parts in its own `state`; they must see the same folder.

    Returns:
        The folder of the checkpoint.

    Raises:
        CheckpointError: it cannot be written, as without space or permission; older ones are unchanged.
    """
    final = folder / f"step-{step:012d}"
    if group.broadcast(contents.fault(final) is not None if group.first else None):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if group.first:
                clean(folder)
            sources = _sources(folder, keep_last=keep_last, keep=keep)
            _create(final, state, step=step, sources=sources, group=group)
        except OSError as error:
            raise CheckpointError(_cannot_save(final, error)) from error
    if group.first:
        _prune(folder, keep_last=keep_last, keep=keep)
    return final


def load(path: Path, *, parts: Collection[str] | None = None) -> dict[str, State]:
    """Load the state of the checkpoint `path`.

    Args:
        path: folder of a checkpoint.
        parts: names of the parts to load; all if not given. Files of other parts are not read.

    Returns:
        The parts by name, tensors on the CPU. Large tensors are memory-mapped from an unnamed file.

    Raises:
        CheckpointError: it is damaged, of another format or missing; the message names a valid one.
    """
    try:
        return contents.read(path, parts)
    except Unusable as cause:
        raise CheckpointError(_refusal(path, cause)) from cause


def latest(folder: Path, *, parts: Collection[str] | None = None) -> Path:
    """Return the newest valid checkpoint in `folder`; damaged ones are skipped with a warning.

    Args:
        folder: folder of the checkpoints.
        parts: names of the parts that must be valid; all if not given. Files of other parts are not read.

    Raises:
        CheckpointError: there is none.
    """
    causes = []
    for path in reversed(saved(folder)):
        cause = contents.fault(path, parts)
        if cause is None:
            return path
        log.warning("checkpoint %s cannot be used: %s", path, cause)
        causes.append(f"{path.name}: {cause}")
    raise CheckpointError(f"no usable checkpoint in {folder}" + (f" ({'; '.join(causes)})" if causes else ""))


def best(folder: Path, *, parts: Collection[str] | None = None) -> Path:
    """Return the checkpoint with the best evaluation; the latest if none is marked or it no longer exists.

    Args:
        folder: folder of the checkpoints.
        parts: as in `latest`.
    """
    for name, fault in digests.damaged_files(folder.parent, f"{folder.name}/{BEST}"):
        log.warning("%s %s", folder.parent / name, fault)
    if not os.path.lexists(folder / BEST):
        return latest(folder, parts=parts)
    try:
        name = files.parse_json(manifest.read_small(folder / BEST).decode())["checkpoint"]
    except (Unusable, ValueError, KeyError, TypeError) as error:
        log.warning("%s cannot be read, using the latest checkpoint: %s", folder / BEST, error)
        return latest(folder, parts=parts)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise CheckpointError(f"{folder / BEST} names no checkpoint: {str(name)[:100]!r}")
    if not (folder / name).exists():
        log.warning("the best checkpoint %s no longer exists: using the latest", folder / name)
        return latest(folder, parts=parts)
    return folder / name


def mark_best(folder: Path, step: int, *, metric: str, value: float) -> bool:
    """Mark the checkpoint of `step` as the best so far; returns whether the mark changed."""
    note = json.dumps({"checkpoint": f"step-{step:012d}", "metric": metric, "value": value}).encode()
    path = folder / BEST
    try:
        with suppress(Unusable):  # what cannot be read is replaced
            if manifest.read_small(path) == note:
                return False
        durable.replace_whole(path, note)
    except OSError as error:
        raise CheckpointError(_cannot_save(path, error)) from error
    return True


def saved(folder: Path) -> list[Path]:
    """Return the checkpoints in `folder`, oldest first, valid or not."""
    try:
        return sorted((path for path in folder.iterdir() if NAME.fullmatch(path.name)), key=step_of)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CheckpointError(f"the checkpoints in {folder} cannot be listed: {error.strerror}") from error


def step_of(path: Path) -> int:
    """Return the step in the name of a checkpoint."""
    found = NAME.fullmatch(path.name)
    if found is None:
        raise CheckpointError(f"{path} is not named like a checkpoint, such as step-000000012288")
    return int(found[1])


def clean(folder: Path) -> None:
    """Remove leftovers of interrupted saves and deletions."""
    for path in folder.iterdir():
        if path.name.startswith(STAGING):
            _remove(path)


def set_aside(folder: Path, *, newer_than: int) -> list[Path]:
    """Rename the checkpoints newer than a step, so that a run that went back to it ignores them."""
    moved = []
    for path in saved(folder):
        if step_of(path) > newer_than:
            name = f"aside-{path.name}"
            taken = sum(other.name.startswith(name) for other in folder.iterdir())
            moved.append(path.rename(folder / f"{name}-{taken}"))
    durable.sync_folder(folder)
    return moved


def _create(final: Path, state: Mapping[str, State], *, step: int, sources: Sources, group: Group) -> None:
    """Write the checkpoint `final` in a staging folder, which is removed on any error."""
    staging = final.with_name(f"{STAGING}{final.name}")
    try:
        if group.first:
            staging.mkdir()
        group.broadcast("created")
        written = group.gather(contents.write(staging, state, sources=sources))
        if group.first:
            contents.seal(staging, written, step=step)
            durable.sync_folder(staging)
            _discard(final)
            os.rename(staging, final)
            durable.sync_folder(final.parent)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _sources(folder: Path, *, keep_last: int, keep: Collection[int]) -> Sources:
    """Return the older checkpoints; the best and the newest of several are kept apart from the next."""
    older = list(reversed(saved(folder)))
    apart = [path for path in older if step_of(path) in keep]
    return Sources(older, apart=apart + (older[:1] if keep_last > 1 else []))


def _prune(folder: Path, *, keep_last: int, keep: Collection[int]) -> None:
    for old in saved(folder)[:-keep_last]:
        if step_of(old) not in keep:
            try:
                _discard(old)
            except OSError as error:
                log.warning("the old checkpoint %s cannot be deleted: %s", old, error.strerror or error)


def _refusal(path: Path, cause: Unusable) -> str:
    others = [other for other in reversed(saved(path.parent)) if other.name != path.name]
    valid = next((other for other in others if contents.fault(other) is None), None)
    advice = "there is no other in its folder" if valid is None else f"the newest valid one is {valid}"
    return f"checkpoint {path} cannot be used: {cause}; {advice}"


def _discard(path: Path) -> None:
    """Delete a checkpoint; it is renamed first, so that no incomplete checkpoint has a final name."""
    trash = path.with_name(f"{STAGING}old-{path.name}")
    if path.is_symlink() or path.exists():
        os.rename(path, trash)
        _remove(trash)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _cannot_save(path: Path, error: OSError) -> str:
    older = [other for other in reversed(saved(path.parent)) if other.name != path.name]
    state = f"{older[0].name} is unchanged" if older else "there is no older one"
    remedy = {
        errno.ENOSPC: "free some space on this disk and resume",
        errno.EDQUOT: "free some of your quota and resume",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "this user has no permission to write there",
    }.get(error.errno or 0, "resume from it" if older else "choose another folder")
    return f"cannot save {path}: {error.strerror or error}; {state}; {remedy}"
