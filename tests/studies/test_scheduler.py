"""Jobs run in child processes: none twice, none lost, and all are stopped with a save."""

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from edgewise.config.errors import CheckpointError, ConfigError, EdgewiseError, Interrupted
from edgewise.runs.lock import writer_of
from edgewise.studies import folder as folder_module
from edgewise.studies import scheduler
from edgewise.studies.folder import StudyFolder, first_difference, open_study
from edgewise.studies.listed_jobs import ListedJobs
from edgewise.studies.run_state import read_state
from edgewise.studies.scheduler import Job, Program, run_jobs

FRAMES = 6


def study(path):
    return open_study(path, {"kind": "test"}, name="test", differs=lambda _: None)


def jobs(count, *flags):
    return [Job(f"seed-{seed}", ("walk", f"--seed={seed}", *flags), FRAMES) for seed in range(count)]


def all_once(count):
    return {f"seed-{seed} {frame}": 1 for seed in range(count) for frame in range(1, FRAMES + 1)}


def test_every_job_runs_once_and_few_at_a_time(tmp_path, program, ledger, watch):
    folder, watcher = study(tmp_path / "study"), watch()
    source = ListedJobs(jobs(4), folder)
    run_jobs(source, folder, program, jobs=2)
    source.check()
    assert ledger() == all_once(4)
    assert max(len(status.running) for status in watcher.shown) == 2
    assert (watcher.shown[-1].ended, watcher.shown[-1].planned, watcher.shown[-1].share) == (4, 4, 1.0)
    run_jobs(ListedJobs(jobs(4), folder), folder, program, jobs=2)
    assert ledger() == all_once(4)


def test_more_jobs_are_added_to_those_that_are_finished(tmp_path, program, ledger, watch):
    folder = study(tmp_path / "study")
    run_jobs(ListedJobs(jobs(1), folder), folder, program, jobs=1)
    run_jobs(ListedJobs(jobs(3), folder), folder, program, jobs=3)
    assert ledger() == all_once(3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_every_child_with_a_save(tmp_path, program, ledger, watch, number):
    folder = study(tmp_path / "study")

    def interrupt(status):
        if any(share > 0 for _, share in status.running) and not sent:
            sent.append(signal.raise_signal(number))

    sent = []
    watch(interrupt)
    with pytest.raises(Interrupted, match=f"{number.name}: 0 of 3 runs") as stopped:
        run_jobs(ListedJobs(jobs(3, "--pace=0.1"), folder), folder, program, jobs=2)
    assert stopped.value.exit_code == 130
    assert {read_state(folder.run(f"seed-{seed}")).ended for seed in (0, 1)} == {"SIGTERM"}
    assert not folder.run("seed-2").exists()
    watch()
    run_jobs(ListedJobs(jobs(3), folder), folder, program, jobs=2)
    assert ledger() == all_once(3)


PARENT = """
    import sys
    from pathlib import Path
    from edgewise.studies import scheduler
    from edgewise.studies.folder import StudyFolder
    from edgewise.studies.listed_jobs import ListedJobs
    from edgewise.studies.scheduler import Job, Program, run_jobs
    assert "torch" not in sys.modules
    folder = StudyFolder(Path(sys.argv[1]))
    jobs = [Job(f"seed-{seed}", ("walk", f"--seed={seed}", "--pace=0.15"), 6) for seed in range(2)]
    with folder.locked():
        run_jobs(ListedJobs(jobs, folder), folder, Program(tuple(sys.argv[2:])), jobs=2)
"""


def test_children_of_a_killed_study_save_and_stop_and_are_continued(tmp_path, program, ledger, watch):
    folder = study(tmp_path / "study")
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(PARENT), folder.path, *program.command])
    while sum(ledger().values()) < 2:
        time.sleep(0.01)
    with pytest.raises(ConfigError, match=f"process {parent.pid}"), folder.locked():
        pass
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    with folder.locked():
        # The children may still be saving; they are waited for, never doubled.
        run_jobs(ListedJobs(jobs(2), folder), folder, program, jobs=2)
    assert ledger() == all_once(2)
    events = (folder.run("seed-0") / "events.jsonl").read_text()
    assert events.count('"start"') == events.count('"resume"') == 1


def test_a_run_that_another_process_writes_is_waited_for(tmp_path, program, ledger, watch, monkeypatch):
    folder, started = study(tmp_path / "study"), []
    run_jobs(ListedJobs(jobs(1, "--die=true"), folder), folder, program, jobs=1)
    start = scheduler._start
    monkeypatch.setattr(scheduler, "_start", lambda *job: started.append(job) or start(*job))
    with (folder.run("seed-0") / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def release(status):
            if len(watcher.shown) == 5:
                assert not started
                fcntl.flock(lock, fcntl.LOCK_UN)

        watcher = watch(release)
        source = ListedJobs(jobs(1), folder)
        run_jobs(source, folder, program, jobs=1)
    source.check()
    assert (len(started), ledger()) == (1, all_once(1))


def test_a_crash_of_the_study_leaves_no_child_behind(tmp_path, program, ledger, watch):
    folder = study(tmp_path / "study")

    def crash(status):
        if any(share > 0 for _, share in status.running):
            raise RuntimeError("planted")

    watch(crash)
    with pytest.raises(RuntimeError, match="planted"):
        run_jobs(ListedJobs(jobs(2, "--pace=0.1"), folder), folder, program, jobs=2)
    deadline = time.monotonic() + 5
    while any(writer_of(folder.run(f"seed-{seed}")) for seed in (0, 1)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_job_that_fails_is_named_with_its_error_and_others_go_on(tmp_path, program, ledger, watch):
    folder = study(tmp_path / "study")
    bad = Job("seed-9", ("walk", "--fail=true"), FRAMES)
    source = ListedJobs([bad, *jobs(1)], folder)
    run_jobs(source, folder, program, jobs=1)
    assert ledger() == all_once(1)
    with pytest.raises(EdgewiseError, match=r"1 of 2 runs failed:\n  seed-9: error: this run fails .*code 4"):
        source.check()


def test_what_the_user_named_is_granted_to_a_run_that_is_continued(tmp_path):
    folder = study(tmp_path / "study")
    program = Program(("edgewise",), plugins=("mine.py",), loggers=("wandb",))
    job = Job("seed-0", ("tsp.py", "--model.encoder.kind=enc.py:Enc", "--seed=0"), FRAMES)
    run = folder.run("seed-0")
    assert program.words(job, folder) == [
        *("edgewise", "train", "tsp.py", "--model.encoder.kind=enc.py:Enc", "--seed=0", f"--out={run}"),
        *("--logger=wandb", "--plugin=mine.py"),
    ]
    run.mkdir()
    assert program.words(job, folder) == [
        *("edgewise", "resume", str(run), "--logger=wandb"),
        *("--plugin=mine.py", "--plugin=tsp.py", "--plugin=enc.py:Enc"),
    ]


def test_a_study_is_found_again_by_its_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def opened(plan, out=None):
        return open_study(
            out,
            plan,
            name="walk-seeds",
            differs=lambda other: first_difference(plan["lr"], other["lr"], "lr"),
        ).path.name

    assert [opened({"lr": 1}), opened({"lr": 2}), opened({"lr": 1}), opened({"lr": 2})] == [
        *("walk-seeds-1", "walk-seeds-2", "walk-seeds-1", "walk-seeds-2"),
    ]
    with pytest.raises(ConfigError, match="holds another study: lr is 1 there and 3 here"):
        opened({"lr": 3}, tmp_path / "runs" / "walk-seeds-1")
    with pytest.raises(ConfigError, match="is not a study"):
        opened({"lr": 3}, tmp_path)


def test_a_damaged_plan_is_refused(tmp_path):
    folder = study(tmp_path / "study")
    (folder.path / "study.json").write_text('{"format": "edgewise-')
    with pytest.raises(CheckpointError, match=r"study\.json is not JSON"):
        StudyFolder(folder.path)
    (folder.path / "study.json").write_text('{"format": "edgewise-study/9"}')
    with pytest.raises(CheckpointError, match="edgewise-study/1"):
        StudyFolder(folder.path)


@pytest.mark.parametrize("name", ["lock", "logs/seed-0.log", "logs", "runs/seed-0", "report.html"])
def test_a_link_in_a_study_leads_nowhere(tmp_path, name):
    folder = study(tmp_path / "study")
    target = tmp_path / "outside"
    if name == "logs":
        (folder.path / "logs").rmdir()
    if "." in name or name == "lock":
        target.write_text("mine")
    else:
        target.mkdir()
    (folder.path / name).symlink_to(target)
    with pytest.raises(CheckpointError, match=f"{name} is a symbolic link"):
        study(tmp_path / "study")


@pytest.mark.parametrize("name", ["lock", "logs/seed-0.log"])
def test_a_link_put_into_a_study_later_is_not_written_to(tmp_path, program, ledger, watch, name):
    folder, target = study(tmp_path / "study"), tmp_path / "outside"
    target.write_text("mine")
    (folder.path / name).symlink_to(target)
    with pytest.raises(OSError, match="symbolic link"), folder.locked():
        run_jobs(ListedJobs(jobs(1), folder), folder, program, jobs=1)
    assert target.read_text() == "mine"


@pytest.mark.parametrize(("theirs", "name"), [(1, "walk-2"), (2, "walk-1")])
def test_studies_begun_at_once(tmp_path, monkeypatch, theirs, name):
    """The second takes the next number, or continues the first if that has the same plan."""
    monkeypatch.chdir(tmp_path)
    create = folder_module._create

    def another_is_first(path, plan):
        monkeypatch.setattr(folder_module, "_create", create)
        create(path, {**plan, "lr": theirs})
        create(path, plan)

    monkeypatch.setattr(folder_module, "_create", another_is_first)
    found = open_study(
        None, {"lr": 2}, name="walk", differs=lambda other: first_difference({"lr": 2}, {"lr": other["lr"]})
    )
    assert found.path.name == name


def test_a_state_is_read_from_files_that_are_being_written(tmp_path):
    run = tmp_path / "run"
    assert read_state(run).exists is False
    run.mkdir()
    (run / "config.json").write_text("{}")
    assert read_state(run).frames == 0
    (run / "metrics.csv").write_text(f"frames,iteration\n{'7' * 5000},1\n")
    assert read_state(run).frames == 0
    (run / "metrics.csv").write_text("frames,iteration\n32,1\n64,2\n9")
    assert read_state(run).frames == 64
    events = '{"event": "evaluation", "frames": 0, "evaluation/return": -9}\n'
    events += '{"event": "evaluation", "frames": 32, "evaluation/return": -2}\n'
    events += '{"event": "stop", "reason": "done", '
    (run / "events.jsonl").write_text(events)
    state = read_state(run)
    assert (state.is_done, state.frames, state.last("return"), state.last("cost")) == (False, 64, -2.0, None)
    (run / "events.jsonl").write_text(events + '"frames": 96}\n')
    assert (read_state(run).is_done, read_state(run).frames) == (True, 96)
