"""Run many short test sessions in forks of a process that has imported everything once."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COPIED = ("src", "tests", "docs", "examples", "benchmarks", "*.md", "*.toml", "*.txt", "LICENSE", "Makefile")
PRELOADED = (
    "torch", "torch.distributions", "torch._dynamo", "torch._subclasses.fake_tensor", "tensordict",
    "tensordict.nn", "torchrl", "torchrl.data", "torchrl.envs", "torchrl.modules", "torchrl.objectives",
    "torchrl.objectives.value", "torch_geometric", "torch_geometric.nn", "pydantic", "yaml", "rich.progress",
    "safetensors.torch", "scipy.stats", "scipy.optimize", "networkx", "tensorboardX", "hypothesis",
    "hypothesis.strategies", "pytest", "coverage",
)  # fmt: skip
OWN = ("edgewise", "tests", "benchmarks", "examples")
BROKEN, TIMED_OUT, PATIENCE = 101, 124, 20


def preload() -> None:
    """Import what all sessions need, but nothing of this project."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)


def make_copy(project: Path, copy: Path) -> Path:
    """Copy what tests need of the project, without compiled files, and link `shared` beside it."""
    copy.mkdir(parents=True)
    skip = shutil.ignore_patterns("__pycache__", "_build", "*.egg-info")
    for source in (found for pattern in COPIED for found in project.glob(pattern)):
        if source.is_dir():
            shutil.copytree(source, copy / source.name, ignore=skip)
        else:
            shutil.copy2(source, copy / source.name)
    shared = project.parent / "shared"
    if shared.is_dir() and not (copy.parent / "shared").exists():
        (copy.parent / "shared").symlink_to(shared)
    return copy


@dataclass
class Session:
    """A call that is made in a fork.

    Attributes:
        name: for the log.
        call: returns an exit code from 0 to 100.
        timeout: seconds of processor time after which the fork is killed, or `PATIENCE` times as many by the
            clock, so that a busy machine does not decide.
    """

    name: str
    call: Callable[[], int]
    timeout: float


def run_sessions(sessions: Sequence[Session], *, workers: int, logs: Path) -> Iterator[tuple[Session, int]]:
    """Run sessions in forks, `workers` at a time, and yield each with its exit code.

    The code is negative for a signal and `TIMED_OUT` if time ran out. Forks that still run are killed if the
    iteration is closed.

    Raises:
        SystemExit: a call raised an exception, which is an error of this program.
    """
    waiting = list(reversed(sessions))
    running: dict[int, tuple[Session, float]] = {}
    logs.mkdir(parents=True, exist_ok=True)
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                session = waiting.pop()
                running[_fork(session, logs)] = (session, time.monotonic())
            for child, code in _ended(running):
                session = running.pop(child)[0]
                if code == BROKEN:
                    raise SystemExit(f"{session.name}:\n{(logs / f'{session.name}.log').read_text()[-4000:]}")
                yield session, code
            time.sleep(0.005)
    finally:
        for child in running:
            _kill(child)


def enter_copy(copy: Path) -> None:
    """Make this process one that was started in a copy of the project, with nothing of it imported."""
    os.chdir(copy)
    for name in [name for name in sys.modules if name.split(".")[0] in OWN]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path[:] = [str(copy), str(copy / "src"), *(path for path in sys.path if path)]
    os.environ["PYTHONPATH"] = os.pathsep.join((str(copy / "src"), str(copy)))


def _ended(running: dict[int, tuple[Session, float]]) -> list[tuple[int, int]]:
    """Return the children that ended or ran out of time, with their codes."""
    ended = []
    for child, (session, since) in running.items():
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            ended.append((child, os.waitstatus_to_exitcode(status)))
        elif (
            _processor_seconds(child) > session.timeout
            or time.monotonic() - since > PATIENCE * session.timeout
        ):
            _kill(child)
            ended.append((child, TIMED_OUT))
    return ended


def _processor_seconds(child: int) -> float:
    """Return the processor time of a child, by Linux's number for the clock of a process.

    A limit by `RLIMIT_CPU` would be simpler, but makes the child's own clock as coarse as the kernel's ticks,
    and tests of benchmarks divide by what they measure.
    """
    return time.clock_gettime(~child << 3 | 2)


def _kill(child: int) -> None:
    """Kill a child with everything that it started."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _fork(session: Session, logs: Path) -> int:
    """Start a session in a process group of its own, with its output in a log, and return its id."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        os.setpgid(0, 0)
        log = os.open(logs / f"{session.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, stream in ((0, nothing), (1, log), (2, log)):
            os.dup2(stream, number)
        code = session.call()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
