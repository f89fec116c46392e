"""The page "Can edgewise do this?": every row names a test that does it; those without another are here."""

import re
from pathlib import Path

import networkx
import pytest
import torch
from tests.experiments.export.any_env import AnyConfig, AnyEnv
from tests.isolation import isolated

import edgewise as ew
from edgewise.cli.main import main
from edgewise.experiments.export.check import WORLDS
from edgewise.experiments.export.contract import check_export
from edgewise.graphs.keys import GRAPH

ROOT = Path(__file__).parents[2]
FILES = Path(__file__).parent / "wishes"
PAGE = ROOT / "docs/can-edgewise-do-this.md"
TINY = ["--num-envs", "4", "--rollout-length", "4", "--total-frames", "32", "--model.encoder.hidden", "8"]
TINY += [
    "--layers",
    "1",
    "--model.encoder.heads",
    "2",
    "--evaluation.every",
    "none",
    "--evaluation.episodes",
    "2",
]


def rows():
    """The cells of every row of the page's table."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_row_names_tests_that_exist(row):
    named = re.findall(r"`tests/([\w/]+\.py)::(\w+)`", row[-1])
    assert named, f"{row[0]}: the last cell names no test"
    for file, test in named:
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(), f"{file} has no {test}"


def command(*words):
    with isolated():
        return main([str(word) for word in words])


@pytest.fixture
def villages(tmp_path):
    """A folder of GraphML files with attributes of nodes, edges and graphs."""
    folder = tmp_path / "villages"
    folder.mkdir()
    for number in range(24):
        graph = networkx.connected_watts_strogatz_graph(6 + number % 3, 4, 0.3, seed=number)
        graph.graph["season"] = number / 24
        for node in graph:
            graph.nodes[node]["age"] = node / 10
        for edge in graph.edges:
            graph.edges[edge]["hours"] = sum(edge) / 20
        networkx.write_graphml(graph, folder / f"v{number}.graphml")
    return folder


def test_own_graphml_files_with_graph_attributes_and_nodes_that_vanish(villages, tmp_path, capsys):
    file, run = FILES / "epidemic.py", tmp_path / "run"
    assert command("envs", "check", file, "--graphs", villages) == 0
    assert command("train", file, "--graphs", villages, *TINY, "--out", run) == 0
    words = ["eval", run, "--split", "test", "--plugin", file, "--episodes", "2", "--ablate", "u"]
    assert command(*words) == 0
    assert "without u" in capsys.readouterr().out
    with isolated():
        env = ew.make_env(str(file), num_envs=64, seed=0, graphs=str(villages))
        assert env.villages.names.graph_features == ("season",)
        root = env.reset()
        dose = torch.ones(64)
        person = root["state", "sick"].masked_fill(~root[GRAPH, "node_mask"], 2.0).argmin(-1)
        after = env.step(root.clone().set("action", env.actions.pack(person=person, dose=dose)))["next"]
        gone = root[GRAPH, "node_mask"] & ~after[GRAPH, "node_mask"]
        assert gone.any()


def test_a_power_grid_of_gymnasium_with_dictionaries(tmp_path, capsys):
    address, run = f"{FILES / 'grid.py'}:PowerGrid", tmp_path / "run"
    assert command("envs", "check", address) == 0
    assert command("train", address, *TINY, "--out", run) == 0
    assert command("eval", run, "--episodes", "2", "--plugin", address) == 0
    with isolated():
        env = ew.make_env(address, num_envs=2, seed=0)
        assert [part.name for part in env.actions.parts] == ["redispatch", "switch"]
        assert env.reset()[GRAPH, "u"].shape == (2, 1)


def test_vehicle_routing_with_time_windows(tmp_path):
    file, run = FILES / "vrptw.py", tmp_path / "run"
    assert command("envs", "check", file) == 0
    assert command("train", file, *TINY, "--out", run) == 0
    assert command("eval", run, "--num-customers", "15", "--episodes", "2", "--plugin", file) == 0


@pytest.mark.parametrize(
    "layout", ["edge", "groups", "edges", "amounts of edges", "amounts of nodes", "node, then edge"]
)
def test_every_way_to_act_is_trained(layout, tmp_path):
    small = {
        "num_envs": 4,
        "rollout_length": 4,
        "total_frames": 16,
        "minibatch_size": 8,
        "evaluation.episodes": 2,
    }
    encoder = {"hidden": 8, "heads": 2, "layers": 1}
    run = ew.train(
        AnyEnv,
        folder=tmp_path / "run",
        progress=False,
        layout=layout,
        edges="explicit with features",
        **small,
        **{"model.encoder": encoder},
    )
    assert run.metrics["frames"][-1] == 16


def test_an_export_is_tried_before_training(monkeypatch, capsys):
    monkeypatch.setitem(check_export.__kwdefaults__, "encoders", ("mlp",))
    assert command("envs", "check", f"{FILES / 'grid.py'}:PowerGrid", "--export", "--json") == 0
    assert "ok" in capsys.readouterr().out


def test_what_cannot_be_exported_is_named():
    class Branching(ew.GraphEncoder):
        def forward(self, graph):
            h = torch.zeros(*graph["node_mask"].shape, self.hidden)
            return h if float(graph["x"].sum()) > 0 else -h

    with isolated():
        ew.register(Branching)
        env = AnyEnv(AnyConfig(), num_envs=WORLDS, seed=0)
        with pytest.raises(
            AssertionError, match="encoder branching cannot be exported: the policy cannot be traced"
        ):
            check_export(env, encoders=("branching",))
