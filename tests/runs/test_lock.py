"""One process writes to a folder at a time, whatever becomes of the file that names it."""

import os
import subprocess
import sys

import pytest

from edgewise.config.errors import ConfigError
from edgewise.runs.lock import FILE, locked, writer_of

HOLD = """
import sys
from pathlib import Path
from edgewise.runs.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of the folder."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.stdin.close()


def test_the_holder_is_named(tmp_path, holder):
    assert writer_of(tmp_path).startswith(f"process {holder.pid} on ")
    with pytest.raises(ConfigError, match=f"being written to by process {holder.pid}"), locked(tmp_path):
        pass


def test_deleting_the_file_gives_nobody_the_lock(tmp_path, holder):
    (tmp_path / FILE).unlink()
    with pytest.raises(ConfigError, match="is being written to by another process"), locked(tmp_path):
        pass
    (tmp_path / FILE).write_text("mine\n")
    assert writer_of(tmp_path) == "mine"


def test_the_lock_ends_with_its_process(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert writer_of(tmp_path) is None
    with locked(tmp_path):
        assert (tmp_path / FILE).read_text().startswith(f"process {os.getpid()} on ")
    with locked(tmp_path):
        pass
