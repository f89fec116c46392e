"""Whatever goes wrong outside of this program has a message and a documented exit code, and no traceback."""

import errno
import subprocess
import sys

import pytest

from edgewise.cli import recipes
from edgewise.cli.main import main

PROGRAM = f"{sys.executable} -m edgewise"


def raises(error):
    def run(options, console):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError(), 6, "memory ran out"),
        (MemoryError("of 3 GB"), 6, "memory ran out: of 3 GB"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 6, "memory ran out"),
        (RuntimeError("CUDA out of memory. Tried"), 6, "memory ran out"),
        (OSError(errno.ENOSPC, "No space left on device"), 6, "No space left"),
        (OSError(errno.EFBIG, "File too large", "a/b.csv"), 6, "a/b.csv: File too large"),
        (OSError(errno.ESTALE, "Stale file handle", "a/b.csv"), 6, "a/b.csv: Stale file handle"),
        (OSError(errno.ETIMEDOUT, "Connection timed out"), 6, "timed out"),
        (OSError(errno.ENOENT, "No such file or directory", "c"), 2, "c: No such file"),
        (OSError(), 6, "error: OSError"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_from_outside_has_words_and_a_code(monkeypatch, capsys, error, code, words):
    monkeypatch.setattr(recipes, "run", raises(error))
    assert main(["recipes"]) == code
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("error:") == int(code != 0)


def test_an_error_of_this_program_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(recipes, "run", raises(RuntimeError("shapes do not match")))
    with pytest.raises(RuntimeError, match="shapes"):
        main(["recipes"])


@pytest.mark.parametrize("arguments", ["recipes", "recipes --json", "--help"])
@pytest.mark.parametrize("where", ["> /dev/full", ">&-"])
def test_output_that_cannot_be_written(arguments, where):
    done = subprocess.run(
        f"{PROGRAM} {arguments} {where}", shell=True, capture_output=True, text=True, check=False
    )
    assert done.returncode == 6
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_messages_that_cannot_be_written_keep_the_exit_code():
    for where in ("2> /dev/full", "2>&-", "> /dev/full 2>&-"):
        done = subprocess.run(f"{PROGRAM} evall {where}", shell=True, capture_output=True, check=False)
        assert done.returncode == 2


def test_a_reader_that_has_gone():
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {PROGRAM} recipes | true"], capture_output=True, check=False
    )
    assert done.returncode in (0, 141)
    assert done.stderr == b""


def test_windows_is_told_at_import_what_to_do():
    program = "import sys; sys.platform = 'win32'; import edgewise"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("ImportError: edgewise runs on Linux and macOS")
