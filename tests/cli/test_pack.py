"""`edgewise pack` and `edgewise zoo`: a packed run acts like the run, holds weights alone, and has a card."""

import json
import shlex
import shutil

import pytest
import torch

import edgewise as ew
from edgewise.experiments import card, pack
from edgewise.experiments.card import training_command
from edgewise.experiments.load import load_config
from edgewise.runs import folder as run_folder
from edgewise.runs import zoo
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.packing import _spread, _thinned
from edgewise.runs.zoo import read_card


@pytest.fixture(scope="module")
def packed(trained, tmp_path_factory):
    from edgewise.cli.main import main

    folder = tmp_path_factory.mktemp("packed") / "walker"
    other = tmp_path_factory.mktemp("seeds") / "walk-2"
    shutil.copytree(trained, other)
    flags = ["--baselines", "random", "--ablate", "edges", "--num-nodes", "8,12", "--episodes", "6"]
    assert main(["pack", str(trained), str(other), "--out", str(folder), *flags, "--commit", "abc"]) == 0
    return folder


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_packed_run_acts_like_the_run(trained, packed):
    root = ew.make_env("graphwalk", num_envs=16, seed=3).reset()
    own, again = (ew.load_policy(place).act(root) for place in (trained, packed))
    assert torch.equal(own, again)
    assert (
        ew.evaluate(packed, episodes=5).returns.tolist() == ew.evaluate(trained, episodes=5).returns.tolist()
    )


def test_it_holds_weights_and_nothing_that_only_training_needs(trained, packed):
    state = checkpoint.load(checkpoint.best(packed / "checkpoints"))
    assert set(state) == {"algorithm", "trainer"}
    assert state["algorithm"]["optimizer"] == {}
    whole = checkpoint.load(checkpoint.best(trained / "checkpoints"))["algorithm"]
    assert whole["optimizer"]
    kept = state["algorithm"]["actor_critic"]
    assert kept.keys() == whole["actor_critic"].keys()
    assert all(torch.equal(kept[name], tensor) for name, tensor in whole["actor_critic"].items())
    assert size(packed) < size(trained)


def test_an_off_policy_agent_is_packed_without_its_targets(edgewise, tmp_path):
    run, folder = tmp_path / "run", tmp_path / "packed"
    frames = ["--num-envs", "4", "--total-frames", "64", "--algorithm.learning-starts", "16"]
    assert edgewise("train", "swarm-ddpg", *frames, "--minibatch-size", "8", "--out", str(run)).code == 0
    assert edgewise("pack", str(run), "--out", str(folder), "--episodes", "4", "--commit", "abc").code == 0
    whole, kept = (
        checkpoint.load(checkpoint.best(place / "checkpoints"))["algorithm"] for place in (run, folder)
    )
    assert not all(torch.equal(whole["targets"][name], whole["networks"][name]) for name in whole["targets"])
    assert "targets" not in kept
    root = ew.make_env("swarm", continuous=True, num_envs=8, seed=3).reset()
    assert torch.equal(*(ew.load_policy(place).act(root) for place in (run, folder)))


def test_its_card_says_where_it_comes_from_and_how_good_it_is(edgewise, trained, packed):
    card = read_card(packed)
    assert (card.name, card.environment, card.algorithm, card.seed) == ("walker", "graphwalk", "ppo", 0)
    assert card.frames == checkpoint.step_of(checkpoint.best(trained / "checkpoints"))
    policies = {(one.policy, one.settings["num_nodes"]) for one in card.figures}
    assert policies == {(name, count) for name in ("walker", "random", "walk-2") for count in (8, 12)}
    printed = edgewise(*shlex.split(card.evaluated.replace("walker", str(packed)))[1:], "--json").data[
        "results"
    ]
    for one in printed:
        name = one["policy"]
        figures = {
            figure.measure: figure
            for figure in card.figures
            if figure.policy == name and figure.settings["num_nodes"] == one["settings"]["num_nodes"]
        }
        assert {measure: value["mean"] for measure, value in one["measures"].items()} == {
            measure: figure.mean for measure, figure in figures.items()
        }
    assert {one.without for one in card.ablations} == {"edges"}
    assert all(
        0 <= one.changed_actions <= 1 and one.low <= one.difference <= one.high for one in card.ablations
    )


def test_the_command_of_a_card_gives_the_same_config(trained, packed):
    config = load_config(trained / "config.json")
    _, _, source, *flags = shlex.split(read_card(packed).command)
    assert load_config(source, flags=list(zip(flags[::2], flags[1::2], strict=True))) == config
    assert training_command(load_config("graphwalk-ppo")) == "edgewise train graphwalk-ppo --seed 0"
    assert training_command(load_config("graphwalk", algorithm="dqn")).startswith(
        "edgewise train graphwalk --algorithm dqn"
    )


def test_every_verb_takes_it(edgewise, packed, tmp_path):
    assert edgewise("verify", packed).code == 0
    assert edgewise("eval", packed, "--episodes", 2).code == 0
    page = tmp_path / "page.html"
    assert edgewise("report", packed, "--out", page).code == 0
    assert "walker" in page.read_text()


def test_training_does_not_continue_from_it(edgewise, packed):
    found = edgewise("resume", packed)
    assert found.code == 2
    assert "is packed" in found.err
    assert "edgewise train graphwalk-ppo" in found.err


def test_damage_is_noticed(edgewise, packed, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(packed, copy)
    (copy / "card.json").write_text((copy / "card.json").read_text().replace("walker", "talker"))
    assert edgewise("verify", copy).code == 3
    (copy / "card.json").write_text(json.dumps({"name": "walker"}))
    with pytest.raises(ew.DataError, match=r"card\.json: summary"):
        read_card(copy)


def test_what_cannot_be_packed_is_refused(edgewise, trained, packed, tmp_path):
    exists = edgewise("pack", trained, "--out", packed)
    assert (exists.code, "exists already" in exists.err) == (2, True)
    again = edgewise("pack", packed, "--out", tmp_path / "again")
    assert (again.code, "is packed already" in again.err) == (2, True)
    assert not list(tmp_path.iterdir())
    wrong = edgewise("pack", trained, "--out", tmp_path / "new", "--num-nodess", 3)
    assert (wrong.code, "num-nodess" in wrong.err) == (2, True)
    assert not list(tmp_path.iterdir())


def test_a_policy_that_acts_otherwise_once_packed_leaves_nothing(edgewise, trained, tmp_path, monkeypatch):
    check = pack._check
    monkeypatch.setattr(
        pack, "_check", lambda run, which: check(run, which=which) if run == trained else None
    )
    flags = ("--baselines", "random", "--num-nodes", "8", "--episodes", "2")
    refused = edgewise("pack", trained, "--out", tmp_path / "new", *flags)
    assert refused.code != 0
    assert "does not act like the run's" in refused.err
    assert not list(tmp_path.iterdir())


def test_the_zoo_is_found_by_name(edgewise, packed, tmp_path, monkeypatch):
    monkeypatch.setattr(zoo, "FOLDER", packed.parent)
    monkeypatch.setattr("edgewise.cli.zoo.FOLDER", packed.parent)
    monkeypatch.chdir(tmp_path)
    (listed,) = edgewise("zoo", "--json").data
    assert (listed["name"], listed["bytes"]) == ("walker", size(packed))
    assert listed["figure"]["measure"] == read_card(packed).measure
    assert "1 policies" in edgewise("zoo").out
    assert "trained by" in edgewise("zoo", "walker").out
    assert edgewise("zoo", "zoo:walker", "--json").data["commit"]
    assert edgewise("eval", "zoo:walker", "--episodes", 2, "--json").data["results"][0]["policy"] == "walker"
    assert ew.load_policy("zoo:walker").act(ew.make_env("graphwalk", num_envs=2, seed=0).reset()).shape == (
        2,
    )
    before = {path: path.stat().st_mtime_ns for path in packed.rglob("*")}
    assert ew.open_run("zoo:walker").report().name == "walker-report.html"
    assert (tmp_path / "walker-report.html").exists()
    assert {path: path.stat().st_mtime_ns for path in packed.rglob("*")} == before


def test_a_name_that_is_not_in_the_zoo(edgewise, packed, monkeypatch):
    monkeypatch.setattr(zoo, "FOLDER", packed.parent)
    found = edgewise("eval", "zoo:walkr")
    assert found.code == 2
    assert "did you mean walker?" in found.err
    with pytest.raises(ew.ConfigError, match="no policy of this name"):
        ew.load_policy("zoo:nothing")


def test_long_logs_are_thinned_to_their_ends():
    assert _spread(list(range(5)), 8) == [0, 1, 2, 3, 4]
    kept = _spread(list(range(1000)), 8)
    assert (len(kept), kept[0], kept[-1]) == (8, 0, 999)
    table = _thinned(b"frames,return\n" + b"".join(b"%d,1\n" % row for row in range(1000)))
    assert table.startswith(b"frames,return\n0,1\n")
    assert table.endswith(b"\n999,1\n")
    assert table.count(b"\n") == 201


def test_a_config_that_flags_cannot_give_is_named_as_a_file(monkeypatch):
    config = load_config("graphwalk-ppo", keywords={"seed": 3})
    assert training_command(config) == "edgewise train graphwalk-ppo --seed 3"
    monkeypatch.setattr(card, "_text", lambda _: "4")
    assert training_command(config) == "edgewise train config.json"


def test_a_run_names_the_commit_that_is_checked_out(tmp_path, monkeypatch):
    place = tmp_path / "src/edgewise/runs/folder.py"
    monkeypatch.setattr(run_folder, "__file__", str(place))
    assert run_folder.source_commit() == {}
    commit, other = "a1" * 20, "b2" * 20
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{other} refs/heads/main\n{other} refs/heads/domain\n")
    assert run_folder.source_commit() == {"commit": other}
    (git / "refs/heads/main").write_text(f"{commit}\n")
    assert run_folder.source_commit() == {"commit": commit}
    (git / "HEAD").write_text(f"{other}\n")
    assert run_folder.source_commit() == {"commit": other}
    tree = git / "worktrees/tree"
    tree.mkdir(parents=True)
    (tree / "HEAD").write_text("ref: refs/heads/main\n")
    (tree / "commondir").write_text("../..\n")
    git.rename(tmp_path / "git")
    (tmp_path / ".git").write_text(f"gitdir: {tmp_path / 'git/worktrees/tree'}\n")
    assert run_folder.source_commit() == {"commit": commit}
