"""The code and the commands of the pages run as they stand; what they say of length and learning is true."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from tests.processes import edgewise, run

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorials" / "your-own-environment.md"
PARTS = DOCS / "how-to" / "parts-without-the-trainer.md"
FRAMES = ("--total-frames 5e4", "--total-frames 2e3 --hidden 16 --layers 1")
"""What a command of the tutorial trains, and what it trains here."""


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


FILE, *REST = blocks(TUTORIAL, "python")
COMMANDS = [line for block in blocks(TUTORIAL, "console") for line in block.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that holds the reader's file and nothing else."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "beacon.py").write_text(FILE)
    return folder


@pytest.fixture(scope="module")
def parts(folder):
    """The names that the page on parts leaves behind."""
    names = {}
    sys.path.insert(0, str(folder))
    try:
        for block in blocks(PARTS, "python"):
            exec(compile(block, str(PARTS), "exec"), names)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("beacon", None)
    return names


def test_the_tutorial_imports_torch_and_edgewise_alone():
    found = re.findall(r"^ *((?:import|from) .*)$", "\n".join((FILE, *REST)), re.MULTILINE)
    allowed = {"import torch", "import edgewise as ew", "from beacon import BeaconConfig, BeaconEnv"}
    assert set(found) <= allowed


def test_the_environment_takes_forty_lines():
    environment, _, _ = FILE.partition("def greedy")
    code = [line for line in environment.splitlines() if line.strip()]
    assert code.index("class BeaconConfig(ew.Config):") == 2
    assert len(code) - 2 <= 40


def test_every_command_of_the_tutorial_runs_in_the_readers_folder(folder, tmp_path):
    """In processes of their own, so that nothing of the page stays registered here."""
    assert [command.split()[1] for command in COMMANDS] == ["envs", "train", "eval"]
    printed = {}
    for command in COMMANDS:
        _, verb, *rest = shlex.split(command.replace(*FRAMES))
        printed[verb] = run(edgewise, verb, *rest, place=tmp_path / verb, folder=folder)
    assert "ok" in printed["envs"]
    for name in ("policy", "chance", "greedy", "runs/beacon-1/report.html"):
        assert name in printed["train"]
    assert len(printed["eval"].splitlines()) == 7

    run("\n".join(REST), place=tmp_path / "rest", folder=folder)
    assert (folder / "runs/wide/config.json").is_file()


README = ROOT / "README.md"


def test_the_environment_of_the_readme_is_trained_and_runs_on_larger_graphs(tmp_path):
    (code,) = blocks(README, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 26
    (tmp_path / "beacons.py").write_text(code)
    typed = re.findall(r"^\$ edgewise (.+?)(?:  +#.*)?$", README.read_text(), re.MULTILINE)
    (train,) = [shlex.split(line) for line in typed if line.startswith("train")]
    (evaluate,) = [shlex.split(line) for line in typed if line.startswith("eval")]
    train[train.index("1e5")] = "2e3"
    small = ["--hidden", "16", "--layers", "1", "--evaluation.episodes", "8"]
    shown = run(edgewise, *train, *small, place=tmp_path / "train", folder=tmp_path)
    assert "runs/beacons-1/report.html" in shown
    shown = run(edgewise, *evaluate, "--episodes", "8", place=tmp_path / "eval", folder=tmp_path)
    assert shown.splitlines()[1].split()[:3] == ["40", "beacons-1", "8"]


def test_the_readme_says_what_it_is_how_to_install_and_how_to_train_above_line_sixty():
    lines = README.read_text().splitlines()
    assert len(lines) <= 150
    above = "\n".join(lines[:60])
    for words in ("Reinforcement learning on graphs", "pip install .", "edgewise train beacons.py"):
        assert words in above


def test_the_trained_policy_beats_chance_on_sizes_seen_and_unseen(parts):
    for sites in (12, 30):
        worlds = parts["BeaconEnv"](parts["BeaconConfig"](num_sites=sites, max_steps=sites), num_envs=200)
        policies = {"trained": parts["algorithm"].policy, "chance": worlds.rand_action}
        returns = {
            name: parts["evaluate"](worlds, policy, episodes=200, seed=2).returns.mean()
            for name, policy in policies.items()
        }
        assert returns["trained"] > 0.7 * returns["chance"], "more than 0.7 of the beacons that chance lights"


def test_a_beacon_lights_what_is_within_reach(parts):
    torch = parts["torch"]
    env = parts["BeaconEnv"](parts["BeaconConfig"](num_sites=3, reach=0.5), num_envs=1, seed=0)
    root = env.reset()
    root["state", "place"] = torch.tensor([[[0.0, 0.0], [0.4, 0.0], [0.8, 0.0]]])
    ends = {}
    for site in range(3):
        following = env.step(root.copy().set("action", torch.tensor([site])))["next"]
        ends[site] = following["terminated"].item()
        assert following["reward"].item() == -1
    assert ends == {0: False, 1: True, 2: False}
