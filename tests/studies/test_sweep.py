"""A sweep that is killed and continued: no trial is lost or run twice, and it decides as if never killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from edgewise.cli.main import main
from edgewise.config.errors import CheckpointError, ConfigError, Interrupted, ProcessLost
from edgewise.experiments.load import load_config
from edgewise.studies import sweep as sweep_module
from edgewise.studies.run_state import read_state
from edgewise.studies.space import Range
from edgewise.studies.sweep import Sweep, run_sweep
from edgewise.studies.trials import Trials

pytest.importorskip("optuna")
FRAMES, TRIALS = 6, 8
FLAGS = [("--total-frames", str(FRAMES)), ("--evaluation.every", "2")]
SPACE = {"algorithm.learning_rate": Range("log", 1e-6, 1.0)}


@pytest.fixture
def sweep():
    config = load_config("graphwalk-ppo", flags=FLAGS)
    return Sweep(config, ("graphwalk-ppo", *(f"{name}={value}" for name, value in FLAGS)), SPACE, prune=False)


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it, and the children are killed too."""


def test_a_sweep_killed_and_interrupted_is_the_sweep_that_was_left_alone(
    tmp_path, sweep, program, ledger, watch
):
    options = {"trials": TRIALS, "jobs": 1, "program": program}
    alone = run_sweep(sweep, out=tmp_path / "alone", **options)
    (tmp_path / "ledger.txt").unlink()

    def kill(status):
        if status.ended == 2 and any(share > 0 for _, share in status.running):
            raise Killed

    def interrupt(status):
        if status.ended == 5 and status.running and not sent:
            sent.append(signal.raise_signal(signal.SIGTERM))

    sent = []
    watch(kill)
    with pytest.raises(Killed):
        run_sweep(sweep, out=tmp_path / "broken", **options)
    assert (tmp_path / "broken" / "report.html").exists()
    watch(interrupt)
    with pytest.raises(Interrupted):
        run_sweep(sweep, out=tmp_path / "broken", **options)
    proposed = json.loads((tmp_path / "broken" / "trials.json").read_text())["trials"]
    assert len(proposed) == 6  # nothing is begun after a signal
    watch()
    broken = run_sweep(sweep, out=tmp_path / "broken", **options)
    assert [(trial.params, trial.state, trial.value) for trial in broken.trials] == [
        (trial.params, trial.state, trial.value) for trial in alone.trials
    ]
    frames = {f"trial-{number:04d} {frame}" for number in range(TRIALS) for frame in range(1, FRAMES + 1)}
    assert set(ledger()) == frames
    assert len({trial.value for trial in broken.trials}) == TRIALS  # the setting took effect
    assert run_sweep(sweep, out=tmp_path / "broken", **options).trials == broken.trials
    assert sum(ledger().values()) <= len(frames) + 1  # at most the one frame that the kill cut off


def test_a_trial_that_finished_unseen_counts_and_does_not_run_again(tmp_path, sweep, program, ledger, watch):
    first = run_sweep(sweep, trials=2, jobs=1, out=tmp_path / "study", program=program)
    file = tmp_path / "study" / "trials.json"
    document = json.loads(file.read_text())
    document["trials"][1] |= {"state": "running", "value": None, "frames": 0}
    file.write_text(json.dumps(document))
    again = run_sweep(sweep, trials=2, jobs=1, out=tmp_path / "study", program=program)
    assert again.trials == first.trials
    assert set(ledger().values()) == {1}
    assert '"resume"' not in (tmp_path / "study" / "runs" / "trial-0001" / "events.jsonl").read_text()


def test_bad_trials_are_stopped_early_and_stay_stopped(tmp_path, sweep, program, ledger, watch):
    pruning = Sweep(sweep.config, (*sweep.words, "--pace=0.05"), SPACE)
    result = run_sweep(pruning, trials=12, jobs=2, out=tmp_path / "study", program=program)
    pruned = [trial for trial in result.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.frames < FRAMES for trial in pruned)
    assert result.best.state == "complete"
    before = ledger()
    more = run_sweep(pruning, trials=13, jobs=2, out=tmp_path / "study", program=program)
    assert more.trials[:12] == result.trials
    assert set(ledger() - before) <= {f"trial-0012 {frame}" for frame in range(1, 7)}


def test_the_best_config_is_that_of_the_best_run(tmp_path, sweep, program, ledger, watch):
    result = run_sweep(sweep, trials=3, jobs=3, out=tmp_path / "study", program=program)
    best = max(result.trials, key=lambda trial: trial.value)
    own = tmp_path / "study" / "runs" / best.name / "config.json"
    assert json.loads(result.best_config.read_text()) == json.loads(own.read_text())
    page = result.report.read_text()
    assert "Content-Security-Policy" in page
    assert all(f"runs/{trial.name}/report.html" in page for trial in result.trials)


def test_a_failed_trial_is_recorded_and_not_tried_again(tmp_path, sweep, program, ledger, watch):
    failing = Sweep(sweep.config, (*sweep.words, "--fail=true"), SPACE)
    result = run_sweep(failing, trials=2, jobs=1, out=tmp_path / "study", program=program)
    assert [trial.state for trial in result.trials] == ["failed", "failed"]
    assert "exit code 4: error: this run fails" in result.trials[0].reason
    assert result.best is None
    assert (
        run_sweep(failing, trials=2, jobs=1, out=tmp_path / "study", program=program).trials == result.trials
    )


def test_a_run_that_was_killed_is_continued_by_the_same_command(
    tmp_path, sweep, program, ledger, watch, caplog
):
    """Such as by the system when memory runs out."""
    dying = Sweep(sweep.config, (*sweep.words, "--die=true"), SPACE, prune=False)
    options = {"trials": 2, "jobs": 2, "out": tmp_path / "study", "program": program}
    with pytest.raises(ProcessLost, match=r"trial-0000, trial-0001 of .* were killed"):
        run_sweep(dying, **options)
    assert "trial-0001 was killed by signal 9; the same command continues it" in caplog.text
    assert [trial.state for trial in run_sweep(dying, **options).trials] == ["complete", "complete"]


def test_another_space_is_another_sweep(tmp_path, sweep, program, ledger, watch):
    run_sweep(sweep, trials=1, jobs=1, out=tmp_path / "study", program=program)
    other = Sweep(
        sweep.config, sweep.words, {"algorithm.learning_rate": Range("log", 1e-6, 0.5)}, prune=False
    )
    with pytest.raises(ConfigError, match="holds another study: space"):
        run_sweep(other, trials=1, jobs=1, out=tmp_path / "study", program=program)


def test_damaged_trials_are_refused(tmp_path, sweep, program, ledger, watch):
    run_sweep(sweep, trials=1, jobs=1, out=tmp_path / "study", program=program)
    file = tmp_path / "study" / "trials.json"
    whole = json.loads(file.read_text())
    rate = "algorithm.learning_rate"
    for change in (
        {"params": {}}, {"params": [1]}, {"params": {rate: "1e-3"}}, {"params": {rate: 7.0}},
        {"state": "over"}, {"value": None}, {"value": "5"}, {"frames": "6"}, {"reason": 3}, {"number": 4},
        {"evaluations": [1]}, {"unheard": 1},
    ):  # fmt: skip
        trial = {**whole["trials"][0], **change}
        file.write_text(json.dumps({**whole, "trials": [trial]}))
        with pytest.raises(CheckpointError, match=r"trials\.json is damaged"):
            run_sweep(sweep, trials=1, jobs=1, out=tmp_path / "study", program=program)
    for text in ("{", '{"format": "x"}', '{"format": "edgewise-trials/1", "trials": [{"a": 1}]}', "[" * 999):
        file.write_text(text)
        with pytest.raises(CheckpointError, match=r"trials\.json"):
            run_sweep(sweep, trials=1, jobs=1, out=tmp_path / "study", program=program)
    file.write_text(json.dumps(whole))
    (tmp_path / "study" / "runs" / "trial-0000" / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json is damaged"):
        run_sweep(sweep, trials=1, jobs=1, out=tmp_path / "study", program=program)


@pytest.mark.parametrize(
    "params",
    [
        {"algorithm.learning_rate": 0.1, "model.encoder.kind": "evil.py:Encoder"},
        {"model.encoder.kind": "evil.py:Encoder"},
        {"algorithm.learning_rate": "evil.py:Encoder"},
        {"algorithm.learning_rate": 2.0},
        {"algorithm.learning_rate": True},
        {},
        ["algorithm.learning_rate"],
    ],
)
def test_trials_of_another_space_are_refused(tmp_path, sweep, program, ledger, watch, params):
    """Values of a trial become flags of a child, where an address would count as typed by the user."""
    run_sweep(sweep, trials=1, jobs=1, out=tmp_path / "study", program=program)
    file = tmp_path / "study" / "trials.json"
    document = json.loads(file.read_text())
    document["trials"][0] |= {"params": params, "state": "running"}
    file.write_text(json.dumps(document))
    with pytest.raises(CheckpointError, match=r"does not search|damaged"):
        run_sweep(sweep, trials=1, jobs=1, out=tmp_path / "study", program=program)


def test_a_trial_is_on_disk_before_its_run_begins(tmp_path, sweep, watch):
    """A kill between the proposal and the run loses nothing."""
    folder = sweep_module.open_study(tmp_path / "study", sweep.plan, name="x", differs=lambda _: None)
    source = sweep_module.TrialSource(sweep, folder, planned=2)
    job = source.next_job()
    assert [trial.params for trial in Trials(folder, SPACE).all] == [source.trials.all[0].params]
    again = sweep_module.TrialSource(sweep, folder, planned=2)
    assert again.next_job() == job


def test_a_mistyped_sweep_is_refused_before_anything_runs(capsys, tmp_path):
    assert main(["sweep", "graphwalk-ppo", "--set", "gama=float:0.5,1", "--out", str(tmp_path / "s")]) == 2
    assert "did you mean gamma?" in capsys.readouterr().err
    assert main(["sweep", "graphwalk-ppo", "--out", str(tmp_path / "s")]) == 2
    assert "--set NAME=log:LOW,HIGH" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


SMALL = [
    *("--training.total_frames=96", "--training.num_envs=4", "--training.rollout_length=8"),
    *("--algorithm.minibatch_size=16", "--model.encoder.hidden=8", "--model.encoder.heads=2"),
    *("--model.encoder.layers=1", "--evaluation.every=32", "--evaluation.episodes=8"),
    *("--logging.tensorboard=false", "--logging.replays=0", "--checkpoint.every=32"),
]
COMMAND = [
    *(
        sys.executable,
        "-m",
        "edgewise.cli",
        "sweep",
        "graphwalk-ppo",
        *SMALL,
        "--trials=20",
        "--jobs=2",
        "--json",
    )
]
COMMAND += [
    "--set=learning_rate=log:1e-5,1e-1",
    "--set=algorithm.epochs=int:1,4",
    "--set=gamma=choice:0.9,0.99",
]


@pytest.mark.thorough
def test_a_real_sweep_of_twenty_trials_killed_twice(tmp_path):
    """SIGKILL after 5 and after 12 trials; three minutes."""
    study, environment = tmp_path / "study", {**os.environ, "OMP_NUM_THREADS": "1"}

    def ended():
        file = study / "trials.json"
        trials = json.loads(file.read_text())["trials"] if file.exists() else []
        return sum(trial["state"] != "running" for trial in trials)

    for kill_after in (5, 12):
        process = subprocess.Popen([*COMMAND, f"--out={study}"], env=environment)
        while ended() < kill_after:
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
        process.wait()
    last = subprocess.run([*COMMAND, f"--out={study}"], env=environment, check=True, capture_output=True)
    result = json.loads(last.stdout)
    assert [trial["trial"] for trial in result["trials"]] == list(range(20))
    assert {trial["state"] for trial in result["trials"]} <= {"complete", "pruned"}
    assert len(list((study / "runs").iterdir())) == 20
    for trial in result["trials"]:
        run = study / "runs" / f"trial-{trial['trial']:04d}"
        config, state = json.loads((run / "config.json").read_text()), read_state(run)
        assert config["algorithm"]["learning_rate"] == trial["params"]["algorithm.learning_rate"]
        assert config["algorithm"]["epochs"] == trial["params"]["algorithm.epochs"]
        events = [json.loads(line)["event"] for line in (run / "events.jsonl").read_text().splitlines()]
        assert events.count("start") == 1
        rows = (run / "metrics.csv").read_text().splitlines()[1:]
        frames = [int(row.partition(",")[0]) for row in rows]
        assert frames == sorted(set(frames))  # no batch twice
        if trial["state"] == "complete":
            assert frames[-1] == 96
            assert state.last("return") == trial["value"]
    tables = {(study / "runs" / f"trial-{number:04d}" / "metrics.csv").read_text() for number in range(20)}
    assert len(tables) == 20  # the settings took effect
    best = json.loads((study / "best.json").read_text())
    assert best["algorithm"]["learning_rate"] == result["best"]["params"]["algorithm.learning_rate"]
    again = subprocess.run(
        [*(sys.executable, "-m", "edgewise.cli", "train", study / "best.json", f"--out={tmp_path / 'best'}")],
        env=environment,
        check=False,
    )
    assert again.returncode == 0
    name = f"trial-{result['best']['trial']:04d}"
    assert (tmp_path / "best" / "metrics.csv").read_text() == (
        study / "runs" / name / "metrics.csv"
    ).read_text()
