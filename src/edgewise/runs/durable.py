"""Write files that are either complete or absent after a crash: fsync, rename, fsync of the folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgewise.config import files as run_files
from edgewise.runs import digests


def sync_folder(folder: Path) -> None:
    """Flush the entries of `folder` to disk."""
    descriptor = run_files.open_folder(folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Create the file `path`, which must not exist, and flush `content` to disk."""
    with open(path, "xb", buffering=0) as file:
        write_fully(file.fileno(), content)
        os.fsync(file.fileno())


def create_folder(path: Path, *, folders: Sequence[str], files: Mapping[str, bytes]) -> None:
    """Create a folder with its subfolders and files, completely or not at all.

    Raises:
        OSError: it cannot be created, or exists already.
    """
    staging = path.with_name(f".{path.name}.{os.getpid()}.stage")
    try:
        staging.mkdir(parents=True)
        for name in folders:
            (staging / name).mkdir()
        for name, content in files.items():
            write_whole(staging / name, content)
        sync_folder(staging)
        os.rename(staging, path)
        sync_folder(path.parent)
    except OSError:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def replace_whole(path: Path, content: bytes) -> None:
    """Replace the content of `path` atomically; a reader gets the old or the new content, never a part."""
    run_files.check_place(path.parent)
    staging = path.with_name(f".{path.name}.stage")
    staging.unlink(missing_ok=True)
    try:
        write_whole(staging, content)
        with digests.recorded(path, content):
            os.rename(staging, path)
    except BaseException:
        staging.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_fully(descriptor: int, content: bytes | memoryview) -> None:
    """Write all of `content`, with as many system calls as needed."""
    rest = memoryview(content).cast("B") if len(content) else memoryview(b"")
    while rest:
        rest = rest[os.write(descriptor, rest) :]
