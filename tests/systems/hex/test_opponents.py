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
        ({"corners": "round"}, "corners"),
        ({"batch": 0}, "batch"),
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


@pytest.mark.parametrize(
    ("corners", "first", "second", "free"),
    [("first", 1, 0, 0), ("second", 0, 1, 0), ("empty", 0, 0, 1), ("both", 1, 1, 0)],
)
@pytest.mark.parametrize("mover", [0, 1])
def test_corners_of_the_border_are_what_the_description_says(corners, first, second, free, mover):
    """Planes of a fixed view: corners do not depend on the mover, but `mine` and `theirs` do."""
    seen = []
    names = ("first", "second", "free", "mine", "theirs", "ones")
    described = Description(size=3, planes=names, border=2, view="fixed", corners=corners)
    empty = torch.zeros(1, 9, dtype=torch.int8)

    def network(x):
        seen.append(x[0])
        return np.zeros((1, 49))

    cell_scores(empty, torch.tensor([mover]), described, network, None)
    for corner in (np.s_[:2, :2], np.s_[:2, 5:], np.s_[5:, :2], np.s_[5:, 5:]):
        own = (first, second)[:: 1 - 2 * mover]
        expected = [first, second, free, *own, 1]
        for plane, value in zip(seen[0], expected, strict=True):
            assert (plane[corner] == value).all()
    assert (seen[0][0][:2, 2:5] == 1).all(), "above are the first player's stones"
    assert (seen[0][1][2:5, :2] == 1).all(), "at the left are the second player's"


def stand_in(path, *, size, batch, planes=("mine", "theirs", "free")):
    """Write a small convolutional network as it is published: of one board, with a border of two."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    wide = size + 4
    generator = np.random.default_rng(0)
    weight = generator.normal(size=(1, len(planes), 5, 5)).astype(np.float32)
    number = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Conv", ["planes", "weight"], ["policy"], pads=[0, 0, 0, 0])],
        "net",
        [onnx.helper.make_tensor_value_info("planes", number, [batch, len(planes), wide, wide])],
        [onnx.helper.make_tensor_value_info("policy", number, [batch, 1, size, size])],
        [onnx.numpy_helper.from_array(weight, "weight")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    return weight


def write_stand_in(folder, name, **fields):
    path = folder / f"{name}.onnx"
    described = {"size": 5, "planes": ["mine", "theirs", "free"], "border": 2, **fields}
    path.with_suffix(".json").write_text(json.dumps(described))
    return path


def test_a_network_of_one_board_with_empty_corners_plays(tmp_path):
    """Moves of the file are those of the convolution by hand; filled corners would change some of them."""
    path = write_stand_in(tmp_path, "net", corners="empty")
    weight = torch.from_numpy(stand_in(path, size=5, batch=1))
    env = make_env("hex", size=5, opening_plies=(0, 12), num_envs=60, seed=0)
    root = env.reset()
    found = make_opponent(ENTRY, env, str(path))(root.clone())["action"]

    def by_hand(corner):
        stones = root["state", "stones"][:, :25].view(-1, 5, 5)
        second = (root["player"] == 1).view(-1, 1, 1)
        board = torch.where(second, torch.where(stones == 0, 0, 3 - stones).mT, stones)
        whole = torch.full((60, 9, 9), corner, dtype=board.dtype)
        whole[:, 2:7, :2] = whole[:, 2:7, 7:] = 2
        whole[:, :2, 2:7] = whole[:, 7:, 2:7] = 1
        whole[:, 2:7, 2:7] = board
        x = torch.stack((whole == 1, whole == 2, whole == 0), 1).float()
        scores = torch.nn.functional.conv2d(x, weight)[:, 0]
        scores = torch.where(second, scores.mT, scores).flatten(1)
        return scores.masked_fill(~root["action_mask"][:, :25], -torch.inf).argmax(-1)

    assert torch.equal(found, by_hand(0))
    assert not torch.equal(found, by_hand(1))


@pytest.mark.parametrize("batch", [1, 7, "boards"])
def test_any_fixed_batch_gives_the_moves_of_all_boards_at_once(tmp_path, batch):
    path = write_stand_in(tmp_path, "net")
    stand_in(path, size=5, batch=batch)
    whole = write_stand_in(tmp_path, "whole")
    stand_in(whole, size=5, batch="boards")
    env = make_env("hex", size=5, opening_plies=(0, 12), num_envs=20, seed=1)
    root = env.reset()
    moves = [make_opponent(ENTRY, env, str(each))(root.clone())["action"] for each in (path, whole)]
    assert torch.equal(*moves)
    found = play_match(env, make_opponent(ENTRY, env, str(path)), random_player(env), seed=0)
    assert found.games == 20


def test_planes_that_the_network_does_not_take_are_said(tmp_path):
    path = write_stand_in(tmp_path, "net", border=1)
    stand_in(path, size=5, batch=1)
    env = make_env("hex", size=5, num_envs=2)
    with pytest.raises(
        DataError, match=r"net\.onnx: the network does not take planes of shape \[1, 3, 7, 7\]"
    ):
        make_opponent(ENTRY, env, str(path))(env.reset())
