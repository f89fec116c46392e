"""Checkpoints that survive a kill at any moment: staged, synced and renamed; hashed, and never pickled.

A checkpoint is a folder `step-000000012288` that holds one safetensors file per part of the state, the
nesting of the state as `state.json`, segments of large tensors (see `segments`), and a manifest with the size
and SHA-256 of every file. It is made in a stage folder beside it and renamed when all of it is on disk, so a
folder with a final name is whole. Loading believes nothing before it is checked, and runs no code.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from edgewise.config.errors import CheckpointError
from edgewise.training import durable
from edgewise.training.checkpoint import contents, manifest
from edgewise.training.checkpoint.manifest import Unusable
from edgewise.training.checkpoint.serialise import State

BEST = "best.json"
STAGE = ".stage-"
NAME = re.compile(r"step-(\d{12,18})")

log = logging.getLogger(__name__)


def save(
    folder: Path, state: Mapping[str, State], *, step: int, keep_last: int = 3, keep: Collection[int] = ()
) -> Path:
    """Save `state` as the checkpoint of `step`, and delete old ones once it is safe.

    Args:
        folder: where a run keeps its checkpoints; made if absent. One process at a time may save into it.
        state: parts by name; each becomes a file, so that one part can be loaded without the others.
        step: how far the run is; newer checkpoints have larger steps. Where this step has been saved before,
            the older checkpoint stays if it is whole, since a run has one state at one step.
        keep_last: how many of the newest stay.
        keep: steps that stay besides, such as the best.

    Returns:
        The checkpoint's folder.

    Raises:
        CheckpointError: it cannot be written, for want of space or permission; the older ones are untouched.
    """
    final = folder / f"step-{step:012d}"
    if contents.fault(final) is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            clean(folder)
            _create(final, state, step=step)
        except OSError as error:
            raise CheckpointError(_cannot_save(final, error)) from error
    _prune(folder, keep_last=keep_last, keep=keep)
    return final


def load(path: Path, *, parts: Collection[str] | None = None) -> dict[str, State]:
    """The state saved in the checkpoint `path`.

    Args:
        path: a checkpoint's folder.
        parts: names of the parts wanted; all of them if not given. Files of other parts are not read.

    Returns:
        The parts by name, tensors on the CPU. Large tensors are mapped from an unnamed file.

    Raises:
        CheckpointError: it is damaged, foreign or not there; one line gives the cause and names a valid one.
    """
    try:
        return contents.read(path, parts)
    except Unusable as cause:
        raise CheckpointError(_refusal(path, cause)) from cause


def latest(folder: Path) -> Path:
    """The newest checkpoint in `folder` that is whole; damaged ones are passed over with a warning.

    Raises:
        CheckpointError: there is none.
    """
    causes = []
    for path in reversed(saved(folder)):
        cause = contents.fault(path)
        if cause is None:
            return path
        log.warning("checkpoint %s cannot be used: %s", path, cause)
        causes.append(f"{path.name}: {cause}")
    raise CheckpointError(f"no usable checkpoint in {folder}" + (f" ({'; '.join(causes)})" if causes else ""))


def best(folder: Path) -> Path:
    """The checkpoint that evaluated best, or the latest where none is marked, or the marked one is gone."""
    try:
        name = json.loads(manifest.read_small(folder / BEST))["checkpoint"]
    except (Unusable, ValueError, KeyError, TypeError):
        return latest(folder)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise CheckpointError(f"{folder / BEST} names no checkpoint: {name!r}")
    if not (folder / name).exists():
        log.warning("the best checkpoint %s is gone: the latest takes its place", folder / name)
        return latest(folder)
    return folder / name


def mark_best(folder: Path, step: int, *, metric: str, value: float) -> bool:
    """Remember the checkpoint of `step` as the best so far; returns whether that is news."""
    note = json.dumps({"checkpoint": f"step-{step:012d}", "metric": metric, "value": value}).encode()
    path = folder / BEST
    try:
        if path.exists() and path.read_bytes() == note:
            return False
        durable.replace_whole(path, note)
    except OSError as error:
        raise CheckpointError(_cannot_save(path, error)) from error
    return True


def saved(folder: Path) -> list[Path]:
    """The checkpoints in `folder`, oldest first, whole or not."""
    try:
        return sorted((path for path in folder.iterdir() if NAME.fullmatch(path.name)), key=step_of)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CheckpointError(f"the checkpoints in {folder} cannot be listed: {error.strerror}") from error


def step_of(path: Path) -> int:
    """The step in a checkpoint's name."""
    found = NAME.fullmatch(path.name)
    if found is None:
        raise CheckpointError(f"{path} is not named like a checkpoint, such as step-000000012288")
    return int(found[1])


def clean(folder: Path) -> None:
    """Remove what an interrupted save or deletion left behind."""
    for path in folder.iterdir():
        if path.name.startswith(STAGE):
            _remove(path)


def set_aside(folder: Path, *, newer_than: int) -> list[Path]:
    """Rename the checkpoints after a step, so that a run which goes back to it does not find them again."""
    moved = []
    for path in saved(folder):
        if step_of(path) > newer_than:
            name = f"aside-{path.name}"
            taken = sum(other.name.startswith(name) for other in folder.iterdir())
            moved.append(path.rename(folder / f"{name}-{taken}"))
    durable.sync_folder(folder)
    return moved


def _create(final: Path, state: Mapping[str, State], *, step: int) -> None:
    """Make the checkpoint `final` in a stage folder, which is removed if anything goes wrong."""
    stage = final.with_name(f"{STAGE}{final.name}")
    try:
        stage.mkdir()
        contents.write(stage, state, step=step, sources=list(reversed(saved(final.parent))))
        durable.sync_folder(stage)
        _discard(final)
        os.rename(stage, final)
        durable.sync_folder(final.parent)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise


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
    """Delete a checkpoint so that it is never seen in part."""
    trash = path.with_name(f"{STAGE}old-{path.name}")
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
    fate = f"{older[0].name} is untouched" if older else "no older one exists"
    remedy = {
        errno.ENOSPC: "free some space on this disk and resume",
        errno.EDQUOT: "free some of your quota and resume",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "this user may not write there",
    }.get(error.errno or 0, "it can be resumed from" if older else "choose another folder")
    return f"cannot save {path}: {error.strerror or error}; {fate}; {remedy}"
