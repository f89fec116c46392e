"""The command that starts processes: shares, exit codes, signals, and no process that outlives it."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from edgewise.cli.main import main
from edgewise.config.errors import Interrupted, ProcessLost
from edgewise.scale.processes import ranks
from edgewise.scale.processes.ranks import place_of_this_process, run_processes

LOST = ProcessLost.exit_code


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Lets every process run some lines of Python in place of edgewise; `rank` and `folder` are given."""

    def use(lines, *, grace=ranks.GRACE):
        head = f"import os, signal, sys, time\nrank, folder = int(os.environ['RANK']), {str(tmp_path)!r}\n"
        note = "open(f'{folder}/{rank}.pid', 'w').write(str(os.getpid()))\n"
        (tmp_path / "program.py").write_text(head + note + textwrap.dedent(lines))
        monkeypatch.setattr(ranks, "PROGRAM", (sys.executable, str(tmp_path / "program.py")))
        monkeypatch.setattr(ranks, "GRACE", grace)

    return use


def alive(tmp_path):
    """The processes that still run."""
    found = []
    for path in tmp_path.glob("*.pid"):
        try:
            os.kill(int(path.read_text()), 0)
        except ProcessLookupError:
            continue
        found.append(path.stem)
    return found


def test_every_process_has_its_place(program, tmp_path):
    program("open(f'{folder}/{rank}.txt', 'w').write(f\"{os.environ['WORLD_SIZE']} {sys.argv[1:]}\")")
    assert run_processes(["train", "x"], processes=3) == 0
    for rank in range(3):
        assert (tmp_path / f"{rank}.txt").read_text() == "3 ['train', 'x']"


def test_a_killed_process_ends_the_command_in_words(program, tmp_path):
    program("os.kill(os.getpid(), signal.SIGKILL) if rank == 1 else time.sleep(60)", grace=0.5)
    with pytest.raises(ProcessLost, match="process 1 of 2 was killed by SIGKILL"):
        run_processes([], processes=2)
    assert alive(tmp_path) == []


def test_the_others_may_say_that_they_lost_it(program):
    program(f"os.kill(os.getpid(), signal.SIGKILL) if rank == 1 else sys.exit({LOST})")
    with pytest.raises(ProcessLost, match="process 1 of 2"):
        run_processes([], processes=2)


def test_a_lost_connection_is_an_error_of_its_own(program):
    program(f"sys.exit({LOST})")
    with pytest.raises(ProcessLost, match="lost their connection"):
        run_processes([], processes=2)


@pytest.mark.parametrize("rank", [0, 1])
def test_the_exit_code_and_the_words_are_those_of_the_process_that_failed(program, capfd, rank):
    program(
        f"""
        if rank != {rank}:
            print("other", file=sys.stderr)
            sys.exit({LOST})
        print("error: it cannot be", file=sys.stderr)
        sys.exit(3)
        """
    )
    assert run_processes([], processes=2) == 3
    shown = capfd.readouterr().err
    assert shown.count("error: it cannot be") == 1
    assert shown.count("other") == (1 if rank == 1 else 0)


def test_an_error_of_all_is_shown_once(program, capfd):
    program("print('error: all', file=sys.stderr); sys.exit(2)")
    assert run_processes([], processes=2) == 2
    assert capfd.readouterr().err.count("error: all") == 1


def test_a_signal_goes_to_the_first_process_alone(program, tmp_path):
    program(
        """
        def stop(*_):
            open(f"{folder}/stopped-{rank}", "w").close()
            sys.exit(130)
        signal.signal(signal.SIGTERM, stop)
        open(f"{folder}/ready-{rank}", "w").close()
        time.sleep(60 if rank == 0 else 0)
        """
    )

    def send():
        while not (tmp_path / "ready-0").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    threading.Thread(target=send).start()
    assert run_processes([], processes=2) == 130
    assert [path.name for path in tmp_path.glob("stopped-*")] == ["stopped-0"]
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_before_a_process_can_handle_it(program, tmp_path):
    program("time.sleep(60)", grace=0.5)

    def send():
        while not (tmp_path / "0.pid").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=send).start()
    with pytest.raises(Interrupted, match="SIGTERM"):
        run_processes([], processes=2)
    assert alive(tmp_path) == []


def test_a_signal_while_the_first_process_is_started(program, tmp_path, monkeypatch):
    """It reaches that process, although there was none when it came."""
    program("time.sleep(10)", grace=0.5)
    start = ranks._start

    def interrupted(arguments, place, *others, **options):
        if place.rank == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return start(arguments, place, *others, **options)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(ranks, "_start", interrupted)
    with pytest.raises(Interrupted, match="SIGTERM"):
        run_processes([], processes=2)
    assert alive(tmp_path) == []
    assert signal.getsignal(signal.SIGTERM) == before


def test_no_process_outlives_a_command_that_is_killed(tmp_path):
    child = "from edgewise.scale.processes.ranks import end_with_command; end_with_command(); "
    child += (
        f"import os, time; open(f'{tmp_path}/' + os.environ['RANK'] + '.pid', 'w').write(str(os.getpid())); "
    )
    child += "time.sleep(60)"
    parent = "import sys; from edgewise.scale.processes import ranks; "
    parent += f"ranks.PROGRAM = (sys.executable, '-c', {child!r}); ranks.run_processes([], processes=2)"
    command = subprocess.Popen([sys.executable, "-c", parent])
    while len([path for path in tmp_path.glob("*.pid") if path.read_text()]) < 2:
        time.sleep(0.02)
    command.kill()
    command.wait()
    deadline = time.monotonic() + 10
    while alive(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("graphwalk-ppo --processes 3", "training.num_envs: got 32, which 3 processes cannot share equally"),
        ("marine-dqn --processes 2 --minibatch-size 33", "algorithm.minibatch_size: got 33"),
        ("graphwalk-ppo --processes 0", "processes"),
    ],
)
def test_unequal_shares_are_refused_before_a_process_starts(monkeypatch, capsys, words, message):
    monkeypatch.setattr(ranks, "PROGRAM", ("/absent",))
    assert main(["train", *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_dry_run_tells_the_shares(capsys):
    words = "train marine-dqn --processes 4 --num-envs 64 --minibatch-size 256 --dry-run --json"
    assert main(words.split()) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["config"]["processes"] == 4
    assert shown["sizes"]["processes"] == 4
    each = shown["sizes"]["each_process"]
    assert (each["num_envs"], each["minibatch_size"]) == (16, 64)
    assert each["replay_size"] == shown["config"]["algorithm"]["replay_size"] // 4
    assert shown["sizes"]["frames_per_batch"] == 4 * each["frames_per_batch"]


def test_a_place_is_that_of_torchrun(monkeypatch):
    for name in (*ranks.TORCHRUN, ranks.RENDEZVOUS, "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RANK", "3")
    assert place_of_this_process() is None
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("MASTER_ADDR", "node0")
    monkeypatch.setenv("MASTER_PORT", "29500")
    place = place_of_this_process()
    assert (place.rank, place.size, place.local_rank, place.rendezvous) == (3, 4, 1, "env://")
    assert not place.launched
