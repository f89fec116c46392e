"""Run many short test sessions in copies of the project: torch is imported once, and every session is a fork."""

from __future__ import annotations

import compileall
import importlib
import os
import py_compile
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

COPIED = ("src", "tests", "docs", "examples", "benchmarks", "pyproject.toml", "README.md", "Makefile")
PRELOADED = (
    "torch", "torch.distributions", "torch._dynamo", "torch._subclasses.fake_tensor", "tensordict", "tensordict.nn", "torchrl",
    "torchrl.data", "torchrl.envs", "torchrl.modules", "torchrl.objectives", "torchrl.objectives.value",
    "torch_geometric", "torch_geometric.nn", "pydantic", "yaml", "rich.progress", "safetensors.torch", "scipy.stats",
    "scipy.optimize", "networkx", "tensorboardX", "hypothesis", "hypothesis.strategies", "pytest", "coverage",
)  # fmt: skip
OWN = ("edgewise", "tests", "benchmarks", "examples")


def preload() -> None:
    """Import what all sessions need, but nothing of this project."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in PRELOADED:
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)


def make_copy(project: Path, copy: Path) -> Path:
    """Copy the project, compiled so that a change of a source is always noticed, and link `shared` beside it."""
    copy.mkdir(parents=True)
    skip = shutil.ignore_patterns("__pycache__", "_build", "*.egg-info", "runs")
    for name in COPIED:
        source = project / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=skip)
        elif source.exists():
            shutil.copy2(source, copy / name)
    shared = project.parent / "shared"
    if shared.is_dir() and not (copy.parent / "shared").exists():
        (copy.parent / "shared").symlink_to(shared)
    checked = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(str(copy / "src"), quiet=1, invalidation_mode=checked)
    return copy


@dataclass
class Session:
    """A call that is made in a fork.

    Attributes:
        name: for the log.
        call: takes a copy of the project, and returns an exit code from 0 to 100.
        timeout: seconds after which the fork is killed.
        file: path of a file within the copy that has another text meanwhile; None for none.
        text: the text.
    """

    name: str
    call: Callable[[Path], int]
    timeout: float
    file: Path | None = None
    text: str = ""

    @contextmanager
    def changed(self, copy: Path) -> Iterator[None]:
        """Hold the other text in the file of a copy."""
        if self.file is None:
            yield
            return
        path = copy / self.file
        before = path.read_text()
        path.write_text(self.text)
        try:
            yield
        finally:
            path.write_text(before)


TIMED_OUT = 124


def run_sessions(
    sessions: Sequence[Session], copies: Sequence[Path], *, logs: Path
) -> Iterator[tuple[Session, int]]:
    """Run sessions in forks, as many at a time as there are copies, and yield each with its exit code.

    The code is negative for a signal and `TIMED_OUT` if time ran out. Forks that still run are killed if the
    iteration is closed.
    """
    waiting, free = list(reversed(sessions)), list(copies)
    running: dict[int, _Running] = {}
    logs.mkdir(parents=True, exist_ok=True)
    try:
        while waiting or running:
            while waiting and free:
                session, copy = waiting.pop(), free.pop()
                change = ExitStack()
                change.enter_context(session.changed(copy))
                running[_fork(session, copy, logs)] = _Running(session, copy, time.monotonic(), change)
            for child, code in _ended(running):
                ended = running.pop(child)
                ended.change.close()
                free.append(ended.copy)
                yield ended.session, code
            time.sleep(0.02)
    finally:
        for child in running:
            _kill(child)


@dataclass
class _Running:
    session: Session
    copy: Path
    since: float
    change: ExitStack


def _ended(running: dict[int, _Running]) -> list[tuple[int, int]]:
    """Return the children that ended or ran out of time, with their codes."""
    ended = []
    for child, run in running.items():
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            ended.append((child, os.waitstatus_to_exitcode(status)))
        elif time.monotonic() - run.since > run.session.timeout:
            _kill(child)
            ended.append((child, TIMED_OUT))
    return ended


def _kill(child: int) -> None:
    """Kill a child with everything that it started."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _fork(session: Session, copy: Path, logs: Path) -> int:
    """Start a session in a process group of its own and return its id."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 101
    try:
        os.setpgid(0, 0)
        _enter(copy, logs / f"{session.name}.log")
        code = session.call(copy)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _enter(copy: Path, log: Path) -> None:
    """Make this process one that was started in `copy`, with its output in `log`."""
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, stream in ((0, nothing), (1, target), (2, target)):
        os.dup2(stream, number)
    os.chdir(copy)
    for name in [name for name in sys.modules if name.split(".")[0] in OWN]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path[:] = [str(copy), str(copy / "src"), *(path for path in sys.path if path)]
    os.environ["PYTHONPATH"] = os.pathsep.join((str(copy / "src"), str(copy)))
