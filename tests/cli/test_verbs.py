"""Every verb does what it says, to people and to programs."""

import json
import signal
import time

import pytest
import yaml
from tests import processes

from edgewise.cli import bench, doctor
from edgewise.config.errors import ConfigError
from edgewise.experiments.recipes import recipe
from edgewise.plugins import environment, environments, recipes
from edgewise.terminal.sweep import combinations, given_settings


def test_training_leaves_a_folder_and_says_where(edgewise, tmp_path, small):
    outcome = edgewise("train", "graphwalk-ppo", *small, "--out", tmp_path / "run", "--seed", 5)
    assert outcome.code == 0
    assert outcome.out.rstrip().endswith(f"report:     {tmp_path}/run/report.html")
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000
    assert json.loads((tmp_path / "run" / "config.json").read_text())["seed"] == 5
    assert "run folder" in outcome.err


def test_a_written_config_trains_the_same_run_again(edgewise, tmp_path, trained):
    """The resolved config alone reproduces every row of the metrics."""
    again = edgewise("train", trained / "config.json", "--out", tmp_path / "again", "--json")
    assert again.data["run"] == str(tmp_path / "again")
    assert (tmp_path / "again" / "metrics.csv").read_bytes() == (trained / "metrics.csv").read_bytes()


def test_a_run_is_never_overwritten(edgewise, trained, small):
    outcome = edgewise("train", "graphwalk-ppo", *small, "--out", trained)
    assert outcome.code == 2
    assert f"edgewise resume {trained}" in outcome.err


def test_dry_run_shows_config_and_sizes_and_trains_nothing(edgewise, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = edgewise(
        "train", "graphwalk-ppo", "--dry-run", "--json", "--rollout-length", "16", "--num-envs", "10"
    )
    data = outcome.data
    assert data["config"]["training"]["rollout_length"] == 16
    assert data["sizes"]["frames_per_batch"] == 160
    assert data["sizes"]["bytes_per_rollout"] == 160 * data["sizes"]["bytes_per_frame"]
    assert data["sizes"]["parameters"] > 1000
    assert not list(tmp_path.iterdir())
    text = edgewise("train", "graphwalk-ppo", "--dry-run").out
    assert yaml.safe_load(text)["sizes"]["frames_per_batch"] == 32 * 32


def test_file_and_flags_over_a_recipe(edgewise, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("recipe: graphwalk-ppo\nseed: 4\nalgorithm: {learning_rate: 1e-4, gamma: 0.5}\n")
    config = edgewise("train", file, "--algorithm.gamma", "0.25", "--dry-run", "--json").data["config"]
    assert (config["seed"], config["algorithm"]["learning_rate"]) == (4, 1e-4)
    assert config["algorithm"]["gamma"] == 0.25
    both = edgewise("train", "graphwalk-ppo", "--config", file, "--dry-run", "--json").data["config"]
    assert both["seed"] == 4


def test_resume_goes_on_to_more_frames(edgewise, tmp_path, small):
    edgewise("train", "graphwalk-ppo", *small, "--out", tmp_path / "run")
    outcome = edgewise("resume", tmp_path / "run", "--total-frames", "160", "--json")
    assert outcome.code == 0
    assert outcome.data["evaluation"][0]["frames"] == 160
    assert json.loads((tmp_path / "run" / "config.json").read_text())["training"]["total_frames"] == 160


def test_resume_to_fewer_frames_than_are_trained_is_refused_and_changes_nothing(edgewise, tmp_path, small):
    edgewise("train", "graphwalk-ppo", *small, "--out", tmp_path / "run")
    before = (tmp_path / "run" / "config.json").read_text()
    outcome = edgewise("resume", tmp_path / "run", "--total-frames", "10")
    assert outcome.code == 2
    assert "96 frames are trained, more than the 10 wanted" in outcome.err
    assert (tmp_path / "run" / "config.json").read_text() == before


def test_resume_of_a_run_that_is_at_its_end_says_so_as_often_as_it_is_asked(edgewise, tmp_path, small):
    """Batches are whole, so a run may have trained a little more than it was to."""
    shorter = [flag for flag in small if "total_frames" not in flag]
    edgewise("train", "graphwalk-ppo", *shorter, "--training.total_frames=90", "--out", tmp_path / "run")
    for flags in ((), ("--total-frames", "90"), ("--device", "cpu")):
        outcome = edgewise("resume", tmp_path / "run", *flags, "--json")
        assert outcome.code == 0
        assert outcome.data["evaluation"][0]["frames"] > 90


def test_resume_from_an_older_checkpoint_sets_newer_ones_aside(edgewise, tmp_path, small):
    run = tmp_path / "run"
    assert edgewise("train", "graphwalk-ppo", *small, "--out", run).code == 0
    first, *_, last = sorted((run / "checkpoints").glob("step-*"))
    assert edgewise("resume", run, "--checkpoint", first).code == 0
    assert last.exists()
    assert [path for path in (run / "checkpoints").iterdir() if path.name.startswith("aside-step")]
    missing = edgewise("resume", run, "--checkpoint", run / "checkpoints" / "step-000999999999")
    assert missing.code == 3
    assert "step-000999999999" in missing.err


def test_weights_of_models_that_computed_something_else_are_refused(edgewise, tmp_path, small, monkeypatch):
    edgewise("train", "graphwalk-ppo", *small, "--out", tmp_path / "run")
    monkeypatch.setattr("edgewise.training.fitting.REVISION", 10**6)
    for verb in ("eval", "resume"):
        outcome = edgewise(verb, tmp_path / "run")
        assert outcome.code == 3
        assert "revision" in outcome.err


def test_resume_names_its_flags(edgewise, trained):
    for flag, value in (("--total-frames", "soon"), ("--device", "tpu"), ("--threads", "0")):
        outcome = edgewise("resume", trained, flag, value)
        assert outcome.code == 2
        assert f"{flag}: " in outcome.err
        assert f"{flag}=" not in outcome.err


def test_a_metric_that_nothing_measures_is_refused(edgewise, tmp_path, small):
    flags = [flag for flag in small if "evaluation.every" not in flag]
    outcome = edgewise(
        "train", "graphwalk-ppo", *flags, "--evaluation.metric=sucess", "--out", tmp_path / "run"
    )
    assert outcome.code == 2
    assert "evaluation.metric: sucess is not measured" in outcome.err
    assert "did you mean success?" in outcome.err


def test_a_gated_run_can_be_sized_measured_and_played(edgewise, tmp_path):
    gated = ("train", "hex-quick", "--algorithm.gate=0.05")
    assert edgewise(*gated, "--dry-run", "--json").data["sizes"]["bytes_per_frame"] > 0
    small = ("--num-envs=4", "--rollout-length=2", "--total-frames=8", "--evaluation.episodes=2")
    run = tmp_path / "run"
    assert edgewise(*gated, *small, "--out", run).code == 0
    assert edgewise("eval", run).code == 0
    assert edgewise("arena", run, "--games=2", "--no-exact").code == 0


def test_runs_of_different_environments_are_no_seeds(edgewise, trained, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text(json.dumps(recipe("swarm-mappo").config.to_plain()))
    for verb in ("eval", "arena"):
        outcome = edgewise(verb, trained, other)
        assert outcome.code == 2
        assert "one environment, got graphwalk, swarm" in outcome.err


def test_an_arena_is_for_games(edgewise, trained):
    outcome = edgewise("arena", trained, "--games", 2)
    assert outcome.code == 2
    assert "graphwalk is not a game of two players" in outcome.err


def test_resume_of_what_is_no_run(edgewise, tmp_path):
    outcome = edgewise("resume", tmp_path)
    assert outcome.code == 2
    assert str(tmp_path) in outcome.err


def test_a_damaged_checkpoint_is_refused(edgewise, tmp_path, small):
    edgewise("train", "graphwalk-ppo", *small, "--out", tmp_path / "run")
    for file in (tmp_path / "run" / "checkpoints").glob("step-*/*.safetensors"):
        file.write_bytes(file.read_bytes()[:-1])
    for verb in ("resume", "eval"):
        outcome = edgewise(verb, tmp_path / "run", "--json")
        assert outcome.code == 3
        assert outcome.data["error"]["exit_code"] == 3


def test_eval_sweeps_sizes_beside_baselines(edgewise, trained):
    arguments = (
        "eval",
        trained,
        "--num-nodes",
        "5,9",
        "--max-steps",
        "6",
        "--episodes",
        3,
        "--baselines",
        "all",
    )
    results = edgewise(*arguments, "--json").data["results"]
    assert [(row["settings"]["num_nodes"], row["policy"]) for row in results] == [
        (nodes, policy) for nodes in (5, 9) for policy in ("walk", "random", "shortest_path")
    ]
    for row in results:
        assert row["episodes"] == 3
        interval = row["measures"]["return"]
        assert interval["n"] == 3
        assert interval["low"] is None or interval["low"] < interval["mean"] < interval["high"]
    text = edgewise(*arguments).out
    assert text.splitlines()[0].split()[:3] == ["num_nodes", "max_steps", "policy"]


def test_eval_is_repeatable_and_follows_its_seed(edgewise, trained):
    def returns(*more):
        result = edgewise("eval", trained, "--episodes", 20, "--json", *more).data["results"][0]
        return result["measures"]["return"]["mean"]

    assert returns() == returns()
    assert returns("--seed", 9) != returns("--seed", 10)


def test_eval_over_several_runs_gives_the_interquartile_mean(edgewise, trained):
    data = edgewise("eval", trained, trained, trained, "--episodes", 4, "--json").data
    means = [row["measures"]["return"]["mean"] for row in data["results"]]
    over = next(row for row in data["over_seeds"] if row["measure"] == "return")
    assert (over["runs"], over["n"]) == (3, 3)
    assert over["iqm"] == over["mean"] == pytest.approx(means[0])
    assert over["low"] is None, "three equal runs tell no interval"


def test_eval_names_every_bad_setting_at_once(edgewise, trained):
    outcome = edgewise("eval", trained, "--num-nodes", "5,x", "--set", "env.max_steps=0", "--node-num", "3")
    assert outcome.code == 2
    assert all(name in outcome.err for name in ("--num-nodes", "max_steps", "--node-num"))


def test_eval_refuses_a_baseline_that_is_not_there(edgewise, trained):
    outcome = edgewise("eval", trained, "--baselines", "oracle")
    assert outcome.code == 2
    assert "shortest_path" in outcome.err


def test_report_puts_runs_on_one_page(edgewise, tmp_path, trained):
    page = tmp_path / "two.html"
    assert edgewise("report", trained, trained, "--out", page, "--json").data == {"report": str(page)}
    assert page.read_text().startswith("<!doctype html>")
    nothing = edgewise("report", tmp_path / "none")
    assert (nothing.code, nothing.out) == (2, "")
    assert "none" in nothing.err


def test_a_report_is_no_folder(edgewise, tmp_path, trained):
    for target in (tmp_path, "."):
        outcome = edgewise("report", trained, "--out", target)
        assert outcome.code == 2
        assert f"{target}: is a folder" in outcome.err


def test_baseline_measures_hand_written_policies(edgewise):
    data = edgewise("baseline", "graphwalk", "--policy", "shortest_path", "--episodes", 5, "--json").data
    assert [row["policy"] for row in data] == ["shortest_path"]
    assert data[0]["measures"]["efficiency"]["mean"] == 1.0
    assert edgewise("baseline", "graphwlk").code == 2


def test_a_baseline_needs_a_policy(edgewise):
    assert edgewise("baseline", "graphwalk", "--policy", "").code == 2


def test_envs(edgewise):
    assert [row["name"] for row in edgewise("envs", "--json").data] == list(environments())
    shown = edgewise("envs", "show", "graphwalk")
    assert "--env.num-nodes" in shown.out
    checked = edgewise("envs", "check", "graphwalk", "--json")
    assert (checked.code, checked.data[0]["ok"]) == (0, True)
    assert edgewise("envs", "show", "nothing").code == 2


def test_envs_check_reports_a_broken_contract(edgewise, monkeypatch):
    def broken(env):
        raise AssertionError("rows leak")

    monkeypatch.setattr("edgewise.envs.contract.check_graph_env", broken)
    outcome = edgewise("envs", "check", "graphwalk")
    assert outcome.code == 2
    assert "rows leak" in outcome.out


def test_recipes(edgewise):
    assert [row["name"] for row in edgewise("recipes", "list", "--json").data] == list(recipes())
    assert edgewise("recipes", "show", "graphwalk-ppo", "--json").data["config"]["recipe"] == "graphwalk-ppo"
    assert edgewise("recipes", "show", "grapwalk-ppo").code == 2


def test_doctor(edgewise, monkeypatch):
    found = {row["what"]: row for row in edgewise("doctor", "--json").data}
    assert {"python", "torch", "devices", "threads", "compiler", "attention", "disk"} <= set(found)
    assert found["attention"]["text"].startswith(("in C, ", "in torch, "))
    monkeypatch.setattr(doctor, "REQUIRED", ("no-such-package",))
    outcome = edgewise("doctor")
    assert outcome.code == 2
    assert "pip install no-such-package" in outcome.out


def test_bench_runs_programs_of_the_source_tree(edgewise, tmp_path, monkeypatch):
    programs = tmp_path / "benchmarks"
    programs.mkdir()
    (programs / "speed.py").write_text(
        '"""How fast."""\nimport argparse\nfrom pathlib import Path\np = argparse.ArgumentParser()\n'
        'p.add_argument("--json", type=Path)\np.add_argument("--quick", action="store_true")\n'
        'a = p.parse_args()\na.json.write_text("[%d]" % a.quick)\nprint("a table")\n'
    )
    (programs / "slow.py").write_text('"""Fails."""\nraise SystemExit(3)\n')
    monkeypatch.setattr(bench, "_folder", lambda: programs)
    assert edgewise("bench", "--json").data[1] == {"name": "speed", "purpose": "How fast."}
    assert edgewise("bench", "speed", "--quick", "--json").data == {"speed": [1]}
    assert edgewise("bench", "speed").out == ""
    assert "3" in edgewise("bench", "slow").err
    assert "did you mean speed?" in edgewise("bench", "sped").err


def test_bench_without_a_source_tree(edgewise, tmp_path, monkeypatch):
    monkeypatch.setattr("edgewise.__file__", str(tmp_path / "site" / "edgewise" / "__init__.py"))
    outcome = edgewise("bench")
    assert outcome.code == 2
    assert "source tree" in outcome.err


def test_every_combination_of_a_sweep():
    config = environment("graphwalk").load("config")()
    given = given_settings(["env.num_nodes=[4,6],8"], [("--extra-edges", "0,2")])
    assert combinations(config, given) == [
        {"num_nodes": nodes, "extra_edges": edges} for nodes in ([4, 6], 8) for edges in (0, 2)
    ]
    assert combinations(config, []) == [{}]
    with pytest.raises(ConfigError, match="has no value"):
        combinations(config, [("--num-nodes", None)])
    with pytest.raises(ConfigError, match="--num-nodes: is set twice"):
        combinations(config, given_settings(["env.num_nodes=4"], [("--num-nodes", "5")]))
    with pytest.raises(ConfigError, match="--set: got =3"):
        given_settings(["=3"], [])


def test_an_interrupt_saves_and_exits_130(tmp_path, small):
    """Interrupted in a process of its own, resumed in another: the run ends where it should."""
    folder = tmp_path / "run"
    endless = [*(flag for flag in small if "total_frames" not in flag), "--training.total_frames=1e9"]
    words = ("train", "graphwalk-ppo", *endless, "--out", folder)
    training = processes.start(processes.edgewise, *words, place=tmp_path / "training")
    while not training.is_over and not list(folder.glob("checkpoints/step-*")):
        time.sleep(0.05)
    training.kill(signal.SIGINT)
    assert training.wait() == 130, training.err
    assert f"edgewise resume {folder}" in training.err
    assert "Traceback" not in training.err
    assert training.out == ""
    newest = max(folder.glob("checkpoints/step-*")).name
    frames = int(newest.removeprefix("step-")) + 32
    words = ("resume", folder, "--total-frames", frames, "--json")
    done = processes.run(processes.edgewise, *words, place=tmp_path / "resumed")
    assert json.loads(done)["evaluation"][0]["frames"] == frames
