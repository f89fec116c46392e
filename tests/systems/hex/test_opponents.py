"""Opponents from other programs: OpenSpiel's search with N simulations, and networks in ONNX files."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from edgewise.config.errors import ConfigError, DataError
from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.experiments.opponents import make_opponent
from edgewise.plugins import environment
from edgewise.systems.hex import onnx_player
from edgewise.systems.hex.baselines import random_player
from edgewise.systems.hex.onnx_player import Description, cell_scores

ENTRY = environment("hex")


def test_open_spiel_plays_with_the_given_number_of_simulations():
    pytest.importorskip("pyspiel")
    env = make_env("hex", size=3, opening_plies=1, num_envs=8, seed=0)
    strong = make_opponent(ENTRY, env, "open_spiel:mcts:200")
    assert play_match(env, strong, random_player(env), seed=0).score > 0.8


@pytest.mark.parametrize(
    "name", ["open_spiel:mcts", "open_spiel:mcts:0", "open_spiel:uct:5", "open_spiel:mcts:x"]
)
def test_an_opponent_that_open_spiel_does_not_have_is_said(name):
    with pytest.raises(ConfigError, match="expected open_spiel:mcts:N"):
        make_opponent(ENTRY, make_env("hex", size=3), name)


class Network:
    """A stand-in for a session of ONNX Runtime: the network is a function of the planes."""

    def __init__(self, function):
        self.function, self.seen = function, []

    def get_inputs(self):
        return [SimpleNamespace(name="board")]

    def get_outputs(self):
        return [SimpleNamespace(name="policy")]

    def run(self, outputs, feed):
        assert outputs == ["policy"]
        self.seen.append(feed["board"])
        return [self.function(feed["board"])]


def write(folder, **fields):
    path = folder / "net.onnx"
    path.write_bytes(b"not read")
    path.with_suffix(".json").write_text(json.dumps({"size": 3, "planes": ["mine", "theirs"], **fields}))
    return path


@pytest.fixture
def runtime(monkeypatch):
    """Installs a network as what ONNX Runtime would open."""

    def install(function):
        network = Network(function)
        module = SimpleNamespace(InferenceSession=lambda path, providers: network)
        monkeypatch.setitem(sys.modules, "onnxruntime", module)
        return network

    return install


def test_the_second_player_sees_the_board_mirrored(runtime, tmp_path):
    """The cell above the mover's first stone, as it sees the board, is played: beside it for the second."""
    network = runtime(lambda x: np.roll(x[:, 0], -1, axis=1))
    env = make_env("hex", size=3, num_envs=1)
    player = make_opponent(ENTRY, env, str(write(tmp_path)))
    root = env.reset()
    for cell in (4, 8):
        root = env.simulate(root.set("action", torch.tensor([cell]))).exclude("reward")
    assert int(player(root)["action"]) == 1  # above b2
    root = env.simulate(root.set("action", torch.tensor([0]))).exclude("reward")
    assert int(player(root)["action"]) == 7  # left of c3
    assert [int(x.sum()) for x in network.seen] == [2, 3]


def test_borders_and_rotation():
    board = torch.tensor([[1, 0, 0, 0, 2, 0, 0, 0, 0]], dtype=torch.int8)
    seen = []

    def network(x):
        seen.append(x)
        return x[:, 0] * np.arange(25.0).reshape(5, 5)

    described = Description(size=3, planes=("first", "second", "ones"), border=1, rotate=True)
    scores = cell_scores(board, torch.tensor([0]), described, network, None).view(3, 3)
    assert seen[0][0, 0].tolist() == [[1] * 5, [0, 1, 0, 0, 0], [0] * 5, [0] * 5, [1] * 5]
    assert seen[0][0, 1].tolist() == [[0] * 5, [1, 0, 0, 0, 1], [1, 0, 1, 0, 1], [1, 0, 0, 0, 1], [0] * 5]
    # The stone is at place 6 of the padded board, and at 18 when it is turned.
    assert scores[0, 0] == (6 + 18) / 2
    assert scores.count_nonzero() == 1


def test_a_mirror_that_forgets_the_colours_would_show():
    board = torch.tensor([[1, 1, 0, 0, 2, 0, 0, 0, 0]], dtype=torch.int8)
    described = Description(size=3, planes=("mine",))
    scores = cell_scores(board, torch.tensor([1]), described, lambda x: x[:, 0], None)
    assert scores.nonzero().tolist() == [[0, 4]]
    fixed = Description(size=3, planes=("mine",), view="fixed")
    assert torch.equal(cell_scores(board, torch.tensor([1]), fixed, lambda x: x[:, 0], None), scores)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"planes": ["mine", "blue"]}, "planes"),
        ({"size": 1}, "size"),
        ({"border": -1}, "border"),
        ({"view": "top"}, "view"),
        ({"rotate": 1}, "rotate"),
        ({"colour": 1}, "unknown field"),
        ({"input": "x"}, "not one of board"),
    ],
)
def test_a_wrong_description_names_file_and_field(runtime, tmp_path, fields, complaint):
    runtime(lambda x: x[:, 0])
    with pytest.raises(DataError, match=complaint) as caught:
        make_opponent(ENTRY, make_env("hex", size=3), str(write(tmp_path, **fields)))
    assert "net.json" in str(caught.value)


def test_files_and_boards_that_do_not_fit_are_said(runtime, tmp_path, monkeypatch):
    runtime(lambda x: x)
    env = make_env("hex", size=4)
    with pytest.raises(ConfigError, match="boards of side 3"):
        make_opponent(ENTRY, env, str(write(tmp_path)))(env.reset())
    three = make_env("hex", size=3)
    with pytest.raises(DataError, match="the output has"):
        make_opponent(ENTRY, three, str(write(tmp_path)))(three.reset())
    with pytest.raises(DataError, match=r"other\.json"):
        make_opponent(ENTRY, three, str(tmp_path / "other.onnx"))
    with pytest.raises(ConfigError, match="swap"):
        make_opponent(ENTRY, make_env("hex", size=3, swap=True), str(write(tmp_path)))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match="ONNX Runtime"):
        make_opponent(ENTRY, three, str(write(tmp_path)))
    assert onnx_player.PLANES
