"""The lock of a run or study folder: one process writes at a time, and the others can name it.

What is locked is the folder itself, so that nobody gets the lock by deleting a file. The file `lock`
names the process. It is locked too: some file systems of a network lock no folders.
"""

from __future__ import annotations

import fcntl
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from edgewise.config import files
from edgewise.config.errors import ConfigError
from edgewise.runs import durable

FILE = "lock"
PATIENCE = 0.2
"""Seconds to wait for the lock, since `writer_of` holds it for a moment too."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; the lock is released when the process ends, however it ends.

    Raises:
        ConfigError: another process has the lock; the message names it.
        OSError: the file of the lock cannot be written, or is a link.
    """
    descriptor = files.open_to_append(folder / FILE)
    own, lock = files.open_folder(folder), FileLock(folder / FILE)
    try:
        lock.acquire(timeout=PATIENCE)
        _lock_folder(own, lock.lock_file)
    except Timeout as error:
        raise ConfigError(
            f"{folder} is being written to by {_named(descriptor)}",
            hint="stop that process first, or wait until it is done",
        ) from error
    else:
        os.ftruncate(descriptor, 0)
        durable.write_fully(descriptor, f"process {os.getpid()} on {platform.node()}\n".encode())
        yield
    finally:
        lock.release()
        os.close(own)
        os.close(descriptor)


def _lock_folder(descriptor: int, name: str) -> None:
    """Lock a folder until its descriptor is closed; raises Timeout if another process has it."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise Timeout(name) from None
            time.sleep(PATIENCE / 20)
        except OSError:  # no locks of folders here
            return None


def writer_of(folder: Path) -> str | None:
    """Return the process that is writing to a folder, as it named itself; None if there is none."""
    try:
        descriptor = files.open_to_read(folder / FILE)
    except OSError:
        return None
    own = files.open_folder(folder)
    try:
        with FileLock(folder / FILE, timeout=0):
            _lock_folder(own, FILE)
            return None
    except Timeout:
        return _named(descriptor)
    finally:
        os.close(own)
        os.close(descriptor)


def _named(descriptor: int) -> str:
    return os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
