"""The examples as an installed package: listed without being imported, and trained by name."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from tests.isolation import isolated

from edgewise.cli.main import main

POINTS = """
[edgewise.envs]
salesman = tsp:TSPEnv
outbreak = outbreak:OutbreakEnv
cover = cover:CoverEnv
broken = no_such_module_anywhere:Env

[edgewise.algorithms]
reinforce = reinforce:Reinforce

[edgewise.encoders]
deepsets = encoder_of_examples:DeepSets

[edgewise.convolutions]
max = convolution:MaxConv

[edgewise.recipes]
tsp-small = recipe:RECIPE

[edgewise.loggers]
tours = callbacks_of_examples:TextLogger

[edgewise.systems]
salesman = tour:SYSTEM
"""

MODULES = {
    "tsp/tsp.py": "tsp.py",
    "tsp/reinforce.py": "reinforce.py",
    "tsp/encoder.py": "encoder_of_examples.py",
    "tsp/convolution.py": "convolution.py",
    "tsp/recipe.py": "recipe.py",
    "tsp/tour.py": "tour.py",
    "tsp/callbacks.py": "callbacks_of_examples.py",
    "outbreak/outbreak.py": "outbreak.py",
    "team/cover.py": "cover.py",
}

FLAGS = [
    *("--total-frames", "64", "--num-envs", "4", "--rollout-length", "8", "--hidden", "8", "--heads", "2"),
    *("--layers", "1", "--evaluation.every", "none", "--evaluation.episodes", "2", "--tensorboard", "false"),
]


@pytest.fixture
def site(examples, tmp_path, monkeypatch):
    """A folder of packages with the examples in it, on the path and without a plug-in allowed."""
    folder = tmp_path / "site"
    info = folder / "examples_of_edgewise-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: examples-of-edgewise\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    for source, target in MODULES.items():
        shutil.copy(examples / source, folder / target)
    monkeypatch.chdir(tmp_path)
    with isolated():
        monkeypatch.syspath_prepend(folder)
        yield folder


def test_names_are_listed_without_importing_anything(site):
    program = (
        "import sys; from edgewise.cli.main import main; code = main(['envs', '--json']); "
        "assert not {'tsp', 'outbreak', 'cover', 'torch'} & set(sys.modules), 'imported'; sys.exit(code)"
    )
    env = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    listed = {each["name"]: each["summary"] for each in json.loads(done.stdout)}
    assert {"salesman", "outbreak", "cover", "broken", "graphwalk"} <= set(listed)
    assert "examples_of_edgewise" in listed["salesman"]


def test_nothing_is_listed_where_that_is_turned_off(site, monkeypatch, capsys):
    monkeypatch.setenv("EDGEWISE_NO_AUTOLOAD", "1")
    assert main(["envs", "--json"]) == 0
    assert "salesman" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("salesman", ["--model.encoder.kind", "deepsets", "--logger", "tours"]),
        ("outbreak", ["--model.encoder.kind", "gnn", "--model.encoder.conv", "max"]),
        ("cover", []),
        ("salesman", ["--algorithm", "reinforce"]),
        ("tsp-small", []),
    ],
)
def test_it_is_trained_and_evaluated_by_name(site, tmp_path, name, more):
    run = str(tmp_path / "run")
    assert main(["train", name, *FLAGS, *more, "--out", run]) == 0
    assert main(["eval", run, "--baselines", "all", "--episodes", "2"]) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["env_name"] == ("salesman" if name == "tsp-small" else name)
    if name == "salesman" and "--logger" in more:
        assert (tmp_path / "run" / "tours.txt").exists()


def test_a_verb_of_a_package(site, tmp_path, capsys):
    run = str(tmp_path / "run")
    assert main(["train", "salesman", *FLAGS, "--out", run]) == 0
    capsys.readouterr()
    assert main(["salesman", "tour", run, "--cities", "5"]) == 0
    assert "→" in capsys.readouterr().out


def test_a_broken_package_hurts_only_who_uses_it(site, capsys):
    assert main(["train", "broken"]) == 2
    assert "no_such_module_anywhere" in capsys.readouterr().err
