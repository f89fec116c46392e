"""What the processes of a run on one machine share: a piece of memory, and sockets by which they wait.

The command that starts the processes makes both and passes them on as file descriptors, so nothing has a name
that others could open or that a killed process leaves behind. Never imports torch.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgewise.config.errors import ProcessLost

DESCRIPTORS = "EDGEWISE_DESCRIPTORS"
"""Environment variable with the file descriptors of a process: of the memory, then of its sockets."""
CAPACITY = 4 * 2**20
"""Bytes that a process can share at once."""
PARTS = 2
"""Parts of the memory, used in turn: one is read while the next is written."""
SPIN = 0.002
"""Seconds for which a process asks again and again whether the others are there, before it sleeps. To wake up
takes longer than most waits."""
SIGN = b"."


@dataclass(frozen=True)
class Descriptors:
    """The file descriptors of one process.

    Args:
        memory: of the shared memory.
        sockets: rank 0 has one to each of the others; the others have one to rank 0.
    """

    memory: int
    sockets: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        """All of them, which the process must inherit."""
        return (self.memory, *self.sockets)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variable by which the process finds them."""
        return {DESCRIPTORS: ",".join(map(str, self.all))}


@contextmanager
def shared_by(processes: int) -> Iterator[list[Descriptors]]:
    """Make memory and sockets for so many processes; they are closed here at the end."""
    with ExitStack() as stack:
        # Memory where there is a file system in memory; no name, so it ends with its processes.
        folder = "/dev/shm" if Path("/dev/shm").is_dir() else None
        memory = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        memory.truncate(PARTS * processes * CAPACITY)
        pairs = [socket.socketpair() for _ in range(1, processes)]
        for one, other in pairs:
            stack.enter_context(one)
            stack.enter_context(other)
        first = Descriptors(memory.fileno(), tuple(one.fileno() for one, _ in pairs))
        yield [first, *(Descriptors(memory.fileno(), (other.fileno(),)) for _, other in pairs)]


class Barrier:
    """Waits for the other processes, and gives the memory that all of them share.

    Args:
        descriptors: of this process.
        rank: number of this process.
        size: number of processes.
        timeout: seconds of the longest wait.
    """

    def __init__(self, descriptors: Descriptors, *, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size, self._timeout = rank, size, timeout
        self.memory = mmap.mmap(descriptors.memory, PARTS * size * CAPACITY)
        self._sockets = [socket.socket(fileno=number) for number in descriptors.sockets]
        for each in self._sockets:
            each.setblocking(False)
            each.set_inheritable(False)
        os.close(descriptors.memory)

    def wait(self) -> None:
        """Return when every process has called this as often as this one.

        What a process wrote to the memory before, the others read afterwards.

        Raises:
            ProcessLost: a process has ended, or did not come in time.
        """
        if self.rank > 0:
            self._send()
        for each in self._sockets:
            self._receive(each)
        if self.rank == 0:
            self._send()

    def close(self) -> None:
        """Leave the others, who notice it when they wait."""
        for each in self._sockets:
            each.close()

    def _send(self) -> None:
        try:
            for each in self._sockets:
                each.send(SIGN)
        except OSError as error:
            raise lost_connection() from error

    def _receive(self, other: socket.socket) -> None:
        asleep = time.monotonic() + SPIN
        while True:
            try:
                if other.recv(1) != SIGN:
                    raise lost_connection()
            except BlockingIOError:
                if time.monotonic() < asleep:
                    os.sched_yield()
                elif not _readable(other, self._timeout):
                    raise lost_connection() from None
            except OSError as error:
                raise lost_connection() from error
            else:
                return


def descriptors_of_this_process() -> Descriptors | None:
    """Return what the command passed on to this process; None if it was started otherwise."""
    given = os.environ.get(DESCRIPTORS)
    if given is None:
        return None
    memory, *sockets = map(int, given.split(","))
    return Descriptors(memory, tuple(sockets))


def _readable(other: socket.socket, seconds: float) -> bool:
    poll = select.poll()
    poll.register(other, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def lost_connection() -> ProcessLost:
    """Return the error of a process that cannot reach another one."""
    return ProcessLost(
        "the connection to another process of this run was lost",
        hint="its own message says why; continue with `edgewise resume`",
    )
