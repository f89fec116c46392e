"""An exported policy does what the policy does, for any number of robots, and says what it expects."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tests.algorithms.robots import DISCRETE, OFF_POLICY, agent
from torch.export import Dim

from edgewise.cli.main import main
from edgewise.config.errors import ConfigError
from edgewise.experiments.export import AgentProgram, export, seen
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.models.agents.ego import EgoSpec

SMALL = {
    "training": {"total_frames": 64, "num_envs": 4, "curriculum": []},
    "algorithm": {"replay_size": 300, "learning_starts": 0, "minibatch_size": 8},
    "env": {"max_steps": 8},
    "evaluation": {"every": None, "stages": [], "episodes": 2},
    "logging": {"tensorboard": False, "replays": 0},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small run of AC-IQN."""
    config = load_config("marine-ac-iqn", keywords=SMALL)
    return start(config, folder=tmp_path_factory.mktemp("runs") / "boats")


@pytest.mark.parametrize("name", OFF_POLICY)
def test_every_agent_is_a_program_of_plain_tensors(name):
    program = AgentProgram(agent(name).policy).eval()
    shapes = ({0: Dim("agents", min=1)},) * 3
    with torch.no_grad():
        traced = torch.export.export(
            program, seen(EgoSpec(), 3), dynamic_shapes=shapes, strict=False
        ).module()
        for robots in (1, 5):
            given = seen(EgoSpec(), robots, seed=robots)
            action = traced(*given)
            assert torch.allclose(action, program(*given))
            assert action.shape == ((robots,) if name in DISCRETE else (robots, 2))


def test_the_command_line_writes_a_program_weights_and_a_card(run, tmp_path, capsys):
    assert main(["export", str(run), "--to", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["files"] == ["policy.pt2", "policy.safetensors", "policy.json"]
    assert told["largest_difference"] < 1e-6
    card = json.loads((tmp_path / "out" / "policy.json").read_text())
    assert card["inputs"] == {"own": ["agents", 7], "objects": ["agents", 5, 5], "mask": ["agents", 5]}
    weights = load_file(tmp_path / "out" / "policy.safetensors")
    assert sum(value.numel() for name, value in weights.items() if name.startswith("actor.")) == 50_354
    program = torch.export.load(tmp_path / "out" / "policy.pt2").module()
    action = program(*seen(EgoSpec(), 4))
    assert action.shape == (4, 2)
    assert (action.abs() <= 1).all()


def test_a_program_that_differs_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr("edgewise.experiments.export._tried", lambda *_: 0.5)
    with pytest.raises(ConfigError, match=r"differs from the policy by 0\.5"):
        export(run, tmp_path / "out")


def test_what_is_tried_sees_other_weights(run, tmp_path, monkeypatch):
    """The planted fault: the program is that of other weights."""
    save = torch.export.save

    def spoilt(program, path):
        for value in program.state_dict.values():
            value.data += 0.1
        save(program, path)
        for value in program.state_dict.values():
            value.data -= 0.1

    monkeypatch.setattr(torch.export, "save", spoilt)
    with pytest.raises(ConfigError, match="differs from the policy"):
        export(run, tmp_path / "out")


def test_a_policy_of_whole_graphs_is_refused(trained, tmp_path):
    with pytest.raises(ConfigError, match="whose policy sees whole graphs"):
        export(trained.path, tmp_path / "out")
