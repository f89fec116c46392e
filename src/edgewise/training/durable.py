"""Files that are either whole or absent after a crash: fsync, then rename, then fsync of the folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make the names inside `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Create the file `path`, which must not exist, with `content` safely on disk."""
    with open(path, "xb", buffering=0) as file:
        write_fully(file.fileno(), content)
        os.fsync(file.fileno())


def replace_whole(path: Path, content: bytes) -> None:
    """Put `content` in place of whatever `path` held; a reader sees the old or the new, never a part."""
    stage = path.with_name(f".{path.name}.stage")
    stage.unlink(missing_ok=True)
    try:
        write_whole(stage, content)
        os.rename(stage, path)
    except BaseException:
        stage.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_fully(descriptor: int, content: bytes | memoryview) -> None:
    """Write all of `content`, in as many calls as the system wants."""
    rest = memoryview(content).cast("B") if len(content) else memoryview(b"")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def open_plain(path: Path) -> int:
    """A descriptor for reading a regular file; a symbolic link or anything else raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path.name} is not a regular file")
    return descriptor
