"""Run one command line in a child process, and judge what a damaged file did to it."""

import io
import os
import re
import resource
import signal
import sys
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from edgewise.cli.main import main

SECONDS = 300
"""Time after which a case counts as hung."""
CRASH = 70
"""Exit code of a child whose command line raised an exception."""
REFUSED, SAID, NO_EFFECT, SILENT, CRASHED = "refused", "said", "no effect", "SILENT", "TRACEBACK"
GOOD = (REFUSED, SAID, NO_EFFECT)


@dataclass(frozen=True)
class Outcome:
    """How a command line ended."""

    code: int
    out: str
    err: str


def run(arguments, *, within=None):
    """Run `edgewise` with these arguments in a forked child, in the folder `within`."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            _run_child(arguments, within, out.fileno(), err.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Outcome(code, *texts)


def run_here(arguments):
    """Run `edgewise` in this process: without a fork, which autograd's threads do not survive."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            code = main([str(argument) for argument in arguments])
        except Exception:
            traceback.print_exc()
            code = CRASH
    return Outcome(code, out.getvalue(), err.getvalue())


def _run_child(arguments, within, out, err):
    code = CRASH
    try:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(out, 1)
        os.dup2(err, 2)
        if within is not None:
            os.chdir(within)
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def judge(outcome, *, names, changed):
    """Say whether damage was refused, said, without effect, or neither.

    Args:
        outcome: of the command line.
        names: words of which one must occur where the damage is said.
        changed: whether any figure differs from that of the undamaged run.
    """
    if outcome.code < 0 or outcome.code == CRASH or "Traceback" in outcome.err:
        return CRASHED
    if outcome.code:
        return REFUSED if re.search(r"error: |damaged", outcome.err + outcome.out) else SILENT
    if any(name in outcome.err for name in names):
        return SAID
    return SILENT if changed else NO_EFFECT


def snapshot(folder: Path):
    """Return the content of every file under a folder, links not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            found[path] = os.readlink(path) if path.is_symlink() else None
        else:
            found[path] = path.read_bytes()
    return found
