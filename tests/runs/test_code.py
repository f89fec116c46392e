"""A run knows the code it was trained with: `eval` warns of a change, `resume` refuses it."""

import hashlib
import json
import shlex
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.isolation import isolated

import edgewise as ew
from edgewise.cli.main import main
from edgewise.report.page_data import build_page_data
from edgewise.report.run_data import read_run
from edgewise.runs.code import command as pasted

ENV = """
import torch

import edgewise as ew
from tiny_reward import reward


class TinyConfig(ew.Config):
    max_steps: int = 4
    num_nodes: int = 4


class TinyEnv(ew.GraphEnv[TinyConfig]):
    '''Choose the marked node.'''

    def setup(self):
        edges = ew.Radius(1.0)
        self.graph = ew.GraphSpec(self.config.num_nodes, node_features=1, edges=edges, position_dim=2)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        goal = torch.randint(self.config.num_nodes, (count,), generator=self.generator, device=self.device)
        return {"goal": goal}

    def advance(self, state, action):
        hit = action == state["goal"]
        return ew.Transition({}, reward=reward(hit), terminated=hit)

    def observe(self, state):
        slots = torch.arange(self.config.num_nodes, device=state.device)
        x = (slots == state["goal"].unsqueeze(-1)).float().unsqueeze(-1)
        exists = torch.ones(x.shape[:-1], dtype=torch.bool, device=state.device)
        return {"graph": {"x": x, "pos": x.expand(*x.shape[:-1], 2), "node_mask": exists}}
"""
REWARD = "def reward(hit):\n    return hit.float()\n"
FLAGS = ["--total-frames=64", "--num-envs=4", "--rollout-length=8", "--epochs=1", "--minibatch-size=16"]
FLAGS += [
    "--hidden=8",
    "--model.encoder.heads=2",
    "--layers=1",
    "--evaluation.every=none",
    "--tensorboard=false",
]
FLAGS += ["--evaluation.episodes=2", "--evaluation.baselines=[]"]
PLUGIN = ["--plugin", "tiny_env.py"]


def command(*words):
    """Run a command line as in a process of its own."""
    with isolated():
        return main([str(word) for word in words])


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with an environment in one file, another beside it, and a run of it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "tiny_env.py").write_text(ENV)
    (folder / "tiny_reward.py").write_text(REWARD)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert command("train", "tiny_env.py", *FLAGS, "--out", "run") == 0
    return folder


@pytest.fixture
def here(project, tmp_path, monkeypatch):
    """A copy of the project, as the working directory."""
    folder = tmp_path / "copy"
    shutil.copytree(project, folder)
    monkeypatch.chdir(folder)
    return folder


def change(file):
    file.write_text(file.read_text() + "# changed\n")


def test_a_run_records_its_code(project):
    (record,) = json.loads((project / "run" / "code.json").read_text())
    digests = {
        name: hashlib.sha256((project / name).read_bytes()).hexdigest()
        for name in ("tiny_env.py", "tiny_reward.py")
    }
    assert record == {
        "address": "tiny_env.py",
        "file": str(project / "tiny_env.py"),
        "sha256": digests["tiny_env.py"],
        "beside": {"tiny_reward.py": digests["tiny_reward.py"]},
    }


def test_a_run_of_ours_records_none(tmp_path):
    assert command("train", "graphwalk", *FLAGS, "--out", tmp_path / "run") == 0
    assert not (tmp_path / "run" / "code.json").exists()


def test_a_run_needs_its_plug_in(here, capsys):
    for verb in (["eval", "run"], ["resume", "run"], ["export", "run", "--to", "pt2"]):
        assert command(*verb) == 2
        assert "--plugin tiny_env.py" in capsys.readouterr().err


def test_commands_that_are_printed_can_be_pasted(here, capsys):
    """With the whole path, quoted, and `--plugin`: of the report, and of a sweep."""
    (here / "my runs").mkdir()
    (here / "run").rename(here / "my runs" / "first run")
    ablate = build_page_data([read_run(Path("my runs/first run"))])["ablate"]
    assert ablate == "edgewise eval 'my runs/first run' --ablate edges,nodes --plugin tiny_env.py"
    assert command(*shlex.split(ablate)[1:], "--episodes", "2") == 0
    best = pasted("train", Path("my runs/first run/config.json"), run=Path("my runs/first run"))
    assert command(*shlex.split(best)[1:], "--total-frames", "32", "--out", "again") == 0
    assert pasted("resume", Path("run"), run=Path("nowhere")) == "edgewise resume run"


def test_unchanged_code_is_not_spoken_of(here, capsys):
    assert command("eval", "run", *PLUGIN, "--json") == 0
    out, err = capsys.readouterr()
    assert "changed_code" not in json.loads(out)
    assert "has changed" not in err
    assert command("resume", "run", *PLUGIN, "--total-frames", "96") == 0


@pytest.mark.parametrize("name", ["tiny_env.py", "tiny_reward.py"])
def test_changed_code(here, capsys, name):
    change(here / name)
    before = (here / "run" / "code.json").read_bytes()
    assert command("eval", "run", *PLUGIN, "--json") == 0
    out, err = capsys.readouterr()
    assert f"{name} has changed since the run began" in err
    assert name in json.loads(out)["changed_code"][0]

    assert command("resume", "run", *PLUGIN, "--total-frames", "96") == 3
    said = capsys.readouterr().err
    assert f"{name} has changed" in said
    assert "--accept-changed-code" in said
    assert (here / "run" / "code.json").read_bytes() == before

    assert command("resume", "run", *PLUGIN, "--total-frames", "96", "--accept-changed-code") == 0
    (record,) = json.loads((here / "run" / "code.json").read_text())
    assert record["earlier"] == json.loads(before)
    assert command("resume", "run", *PLUGIN, "--total-frames", "128") == 0


def test_changed_code_from_python(here):
    change(here / "tiny_reward.py")
    with isolated():
        run = ew.open_run("run", plugins=["tiny_env.py"])
        assert run.evaluate(episodes=2).episodes == 2
        with pytest.raises(ew.CheckpointError, match="trained with other code"):
            run.resume(total_frames=96)
        run.resume(total_frames=96, accept_changed_code=True)


def test_a_moved_project(here, capsys, monkeypatch, tmp_path):
    """The same code at another place is the same code."""
    monkeypatch.chdir(tmp_path)
    assert command("resume", "copy/run", "--plugin", "copy/tiny_env.py", "--total-frames", "96") == 0
    assert command("eval", "copy/run", "--plugin", "copy/tiny_env.py") == 0
    assert "has changed" not in capsys.readouterr().err


def test_a_renamed_file(here, capsys):
    (here / "tiny_env.py").rename(here / "other_name.py")
    config = here / "run" / "config.json"
    values = json.loads(config.read_text())
    assert values["env_name"] == "tiny_env.py"
    assert command("eval", "run", "--plugin", "other_name.py") == 0
    config.write_text(json.dumps({**values, "env_name": "tiny_env.py:TinyEnv"}))
    (here / "run" / "code.json").write_text(
        (here / "run" / "code.json").read_text().replace('"tiny_env.py"', '"tiny_env.py:TinyEnv"')
    )
    assert command("eval", "run", "--plugin", "other_name.py") == 0
    assert "has changed" not in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "[3]"])
def test_a_record_that_is_lost(here, capsys, text):
    if text is None:
        (here / "run" / "code.json").unlink()
    else:
        (here / "run" / "code.json").write_text(text)
    assert command("eval", "run", *PLUGIN) == 0
    assert "it is unknown which code" in capsys.readouterr().err
    assert command("resume", "run", *PLUGIN, "--total-frames", "96") == 3
    assert command("resume", "run", *PLUGIN, "--total-frames", "96", "--accept-changed-code") == 0
    assert command("resume", "run", *PLUGIN, "--total-frames", "96") == 0


def test_the_projects_file_allows_the_code(here):
    (here / "pyproject.toml").write_text('[tool.edgewise]\nplugins = ["tiny_env.py"]\n')
    assert command("eval", "run") == 0
    assert command("envs", "show", "tiny") == 0


def test_a_class_of_a_file_is_addressed_by_the_file(here):
    with isolated():
        sys.path.append(str(here))
        from tiny_env import TinyEnv

        run = ew.train(TinyEnv, folder="by_class", progress=False, **as_settings())
        assert run.config.env_name == "tiny_env.py:TinyEnv"
    assert command("eval", "by_class", *PLUGIN) == 0


def as_settings():
    return {
        "training": {"total_frames": 32, "num_envs": 4, "rollout_length": 8},
        "algorithm": {"epochs": 1, "minibatch_size": 16},
        "model": {"encoder": {"hidden": 8, "heads": 2, "layers": 1}},
        "evaluation": {"every": None, "episodes": 2, "baselines": ()},
        "logging": {"tensorboard": False},
    }


@pytest.fixture
def cell(here, monkeypatch):
    """Runs the environment's source as a notebook runs a cell: in `__main__`, which has no file."""
    monkeypatch.syspath_prepend(here)
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))

    def run():
        exec(compile(ENV, "<cell 1>", "exec"), vars(sys.modules["__main__"]))
        return sys.modules["__main__"].TinyEnv

    return run


def test_classes_of_a_notebook_train_and_are_registered_to_be_opened_again(cell, capsys):
    with isolated():
        run = ew.train(cell(), folder="noted", progress=False, **as_settings())
        assert run.config.env_name == "__main__:TinyEnv"
        assert run.evaluate(episodes=2).episodes == 2
        assert not (run / "code.json").exists()
    assert command("eval", "noted") == 2
    assert "ew.register(TinyEnv)" in capsys.readouterr().err
    with isolated():
        ew.register(cell())
        assert ew.open_run("noted").evaluate(episodes=2).episodes == 2
    assert command("eval", "noted", *PLUGIN) == 0
