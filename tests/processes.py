"""Processes that cost no import: forked from a server that has imported edgewise and computed nothing."""

import fcntl
import io
import multiprocessing
import os
import signal
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).parents[1]
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        "scipy.stats",
        "edgewise.api",
        "edgewise.cli.main",
        "edgewise.experiments.launch",
        "edgewise.experiments.evaluate",
        "edgewise.report.page",
        "edgewise.terminal.outcome",
        "edgewise.systems.graphwalk.env",
        "edgewise.algorithms.ppo",
        "rich.progress",
        "rich.table",
    ]
)


class Started:
    """A process that runs, whose output goes to two files."""

    def __init__(self, process, place):
        self.process = process
        self._place = place

    def wait(self):
        """Return its exit code, negative for a signal."""
        self.process.join()
        return self.process.exitcode

    def kill(self, number):
        os.kill(self.process.pid, number)

    @property
    def is_over(self):
        return self.process.exitcode is not None

    @property
    def out(self):
        return self._place.with_suffix(".out").read_text()

    @property
    def err(self):
        return self._place.with_suffix(".err").read_text()


def start(call, *arguments, place, folder=ROOT, terminal=None):
    """Start a function of a module, or a program given as text, in a process of its own.

    Its output goes to `place.out` and `place.err`; `folder` is its working directory, and `terminal` the path
    of the terminal that controls it, if there is one. What the function returns is its exit code.
    """
    given = (call, [str(argument) for argument in arguments], place, folder, terminal)
    process = FORKED.Process(target=_child, args=given)
    process.start()
    return Started(process, place)


def run(call, *arguments, place, folder=ROOT):
    """Run a function or a program to its end; return what it printed."""
    started = start(call, *arguments, place=place, folder=folder)
    code = started.wait()
    assert code == 0, f"{call} {arguments} ended with {code}: {started.err}"
    return started.out


def edgewise(*arguments):
    """Run the command line."""
    from edgewise.cli.main import main

    return main([*arguments])


def program(*arguments):
    """Run a module of the project as `python -m` does."""
    import runpy

    sys.argv = [*arguments]
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


def _child(call, arguments, place, folder, terminal):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored if the tests run under nohup
    if terminal is not None:
        os.setsid()
        fcntl.ioctl(os.open(terminal, os.O_RDWR), termios.TIOCSCTTY, 0)
    for number, ending in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(place.with_suffix(ending), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "w", closefd=False), write_through=True) for number in (1, 2)
    )
    os.chdir(folder)
    if isinstance(call, str):
        sys.argv, sys.path = ["-c", *arguments], ["", *sys.path]
        exec(compile(call, "<program>", "exec"), {"__name__": "__main__"})
        return
    sys.exit(call(*arguments))
