"""Start the processes of a run on this machine, and stop them with the command that started them.

A process is told its place by environment variables, those of torchrun or the ones set here, so both ways
lead to the same run. Never imports torch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from edgewise.config import files
from edgewise.config.errors import Interrupted, ProcessLost
from edgewise.scale.processes.barrier import Descriptors, shared_by

RENDEZVOUS, LIFELINE = "EDGEWISE_RENDEZVOUS", "EDGEWISE_LIFELINE"
"""Environment variables of the processes that are started here: where they meet, and a pipe that closes when
the command ends."""
TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment variables of the processes that torchrun starts."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PROGRAM = (sys.executable, "-m", "edgewise.cli")
"""The command line of every process."""
GRACE = 20.0
"""Seconds for the other processes to end after one has failed."""
POLL = 0.05
"""Seconds between checks whether a process has ended."""


@dataclass(frozen=True)
class Place:
    """The place of a process in its group.

    Args:
        rank: its number.
        size: number of processes.
        local_rank: its number on this machine.
        rendezvous: where the processes meet, as `torch.distributed` takes it.
        launched: whether `run_processes` started it, which then reports lost processes.
    """

    rank: int
    size: int
    local_rank: int
    rendezvous: str
    launched: bool


def place_of_this_process() -> Place | None:
    """Return the place of this process; None if it was started by itself."""
    given, meeting = os.environ, os.environ.get(RENDEZVOUS)
    if meeting is None and not all(name in given for name in TORCHRUN):
        return None
    return Place(
        rank=int(given["RANK"]),
        size=int(given["WORLD_SIZE"]),
        local_rank=int(given.get("LOCAL_RANK", given["RANK"])),
        rendezvous="env://" if meeting is None else meeting,
        launched=meeting is not None,
    )


def end_with_command() -> None:
    """End this process at once when the command that started it ends, however that happens."""
    lifeline = os.environ.get(LIFELINE)
    if lifeline is None:
        return

    def watch() -> None:
        os.read(int(lifeline), 1)
        os._exit(ProcessLost.exit_code)

    threading.Thread(target=watch, daemon=True, name="lifeline").start()


def run_processes(arguments: Sequence[str], *, processes: int) -> int:
    """Run `edgewise ARGUMENTS` in several processes on this machine, and return its exit code.

    Rank 0 has the terminal. What another process writes is shown only if the command fails because of it. A
    signal is passed on to rank 0, which makes all of them save and stop.

    Raises:
        ProcessLost: a process was killed.
        Interrupted: a signal came before the processes could handle it.
    """
    with tempfile.TemporaryDirectory(prefix="edgewise-") as folder:
        started: list[subprocess.Popen[bytes]] = []
        reading, writing = os.pipe()
        try:
            with _passed_on(started) as received:
                with shared_by(processes) as shared:
                    for rank, own in enumerate(shared):
                        place = Place(
                            rank, processes, rank, rendezvous=f"file://{folder}/meeting", launched=True
                        )
                        started.append(_start(arguments, place, own, folder=Path(folder), lifeline=reading))
                        for name in received if rank == 0 else ():  # that came before there was a process
                            started[0].send_signal(signal.Signals[name])
                os.close(reading)
                ended = _wait(started)
        finally:
            for process in started:
                process.kill()
                process.wait()
            os.close(writing)
        failed = [rank for rank in ended if started[rank].returncode not in (0, ProcessLost.exit_code)]
        return _outcome([process.returncode for process in started], failed, Path(folder), received)


def _start(
    arguments: Sequence[str], place: Place, own: Descriptors, *, folder: Path, lifeline: int
) -> subprocess.Popen[bytes]:
    rank = place.rank
    environment = {
        "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(place.local_rank),
        "WORLD_SIZE": str(place.size),
        RENDEZVOUS: place.rendezvous,
        LIFELINE: str(lifeline),
        **own.environment,
    }
    streams: dict[str, Any] = {}
    if rank > 0:
        streams = {name: (folder / f"{name}-{rank}").open("wb") for name in ("stdout", "stderr")}
    try:
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[lifeline, *own.all],
            **streams,
        )
    finally:
        for stream in streams.values():
            stream.close()


@contextmanager
def _passed_on(started: Sequence[subprocess.Popen[bytes]]) -> Iterator[list[str]]:
    """Pass signals on to the first process, once there is one; yields the names of those that came."""
    received: list[str] = []

    def pass_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the system's signature
        received.append(signal.Signals(number).name)
        for first in started[:1]:
            first.send_signal(number)

    in_main = threading.current_thread() is threading.main_thread()
    handled = [number for number in SIGNALS if in_main and signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in handled}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(started: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """Wait until all processes have ended, or for `GRACE` seconds after one has failed.

    Returns:
        The ranks that ended by themselves, in this order.
    """
    ended: list[int] = []
    deadline: float | None = None
    while len(ended) < len(started) and (deadline is None or time.monotonic() < deadline):
        time.sleep(POLL)
        fresh = [rank for rank, process in enumerate(started) if process.poll() is not None]
        ended += [rank for rank in fresh if rank not in ended]
        if deadline is None and any(started[rank].returncode for rank in ended):
            deadline = time.monotonic() + GRACE
    return ended


def _outcome(codes: Sequence[int], failed: Sequence[int], folder: Path, received: Sequence[str]) -> int:
    """Return the exit code of the command, and show what the process that failed first has written."""
    if not failed:
        if any(codes):
            raise ProcessLost("the processes of this run lost their connection to each other")
        return 0
    # Where all processes fail alike, the message of rank 0 has been shown already.
    rank = 0 if 0 in failed and codes[0] > 0 else failed[0]
    code = codes[rank]
    if code < 0:
        name = signal.Signals(-code).name
        if name in received:
            raise Interrupted(f"stopped by {name} before the first batch")
        raise ProcessLost(
            f"process {rank} of {len(codes)} was killed by {name}, and the others were stopped",
            hint="continue with `edgewise resume` and the run folder",
        )
    if rank > 0:
        sys.stdout.write(_output(folder / f"stdout-{rank}"))
        sys.stderr.write(_output(folder / f"stderr-{rank}"))
    return code


def _output(path: Path) -> str:
    return files.read_bytes(path, largest=files.LARGEST_TABLE).decode(errors="replace")
