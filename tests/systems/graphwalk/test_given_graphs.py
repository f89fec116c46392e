"""Graphwalk on given graphs: training, evaluation by split, resuming, and refusals where splits would mix."""

import json
import shutil

import networkx
import pytest
import torch
from tests.processes import run as run_process

import edgewise as ew
from edgewise.cli.main import main
from edgewise.config.errors import CheckpointError, ConfigError, DataError
from edgewise.evaluation.result import Evaluation
from edgewise.graphs import in_memory as given
from edgewise.graphs.datasets import read_graphs
from edgewise.graphs.graph_set import SPLITS

SHORT = {"total_frames": 256, "num_envs": 8, "rollout_length": 16, "episodes": 8, "progress": False}


def walks(count, size=6):
    return [networkx.connected_watts_strogatz_graph(size + n % 4, 2, 0.5, seed=n) for n in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("graphs")
    for number, graph in enumerate(walks(12)):
        networkx.write_graphml(graph, place / f"g{number}.graphml")
    return place


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    return ew.train("graphwalk", graphs=str(folder), folder=tmp_path_factory.mktemp("runs") / "run", **SHORT)


@pytest.fixture(scope="module")
def given_run(tmp_path_factory):
    return ew.train("graphwalk", graphs=walks(12), folder=tmp_path_factory.mktemp("runs") / "run", **SHORT)


def test_worlds_are_given_graphs_with_a_path_from_start_to_goal():
    graphs = walks(9)
    env = ew.make_env("graphwalk", graphs=graphs, split="all", num_envs=200, seed=0)
    state = env.reset()["state"]
    sizes = {graph.number_of_nodes() for graph in graphs}
    assert set(state["node_mask"].sum(-1).tolist()) == sizes
    for world in state[:40].unbind(0):
        edges = world["edge_index"][:, world["edge_mask"]].T.tolist()
        shortest = networkx.shortest_path_length(
            networkx.DiGraph(edges), int(world["current"]), int(world["goal"])
        )
        assert shortest == int(world["shortest"]) > 0


def test_the_environment_keeps_its_contract(folder):
    ew.check_graph_env(ew.make_env("graphwalk", graphs=str(folder), num_envs=4, seed=0))


def test_a_dead_end_leaves_a_legal_action():
    graph = networkx.DiGraph([(0, 1), (0, 2), (2, 3)])
    env = ew.make_env("graphwalk", graphs=[graph], split="all", num_envs=32, seed=0)
    rollout = env.rollout(8, break_when_any_done=False)
    assert rollout["action_mask"].any(-1).all()


def test_a_graph_without_a_walk_is_named():
    with pytest.raises(DataError, match=r"graphs\[1\]: no edge leads from one node to another"):
        ew.make_env("graphwalk", graphs=[networkx.path_graph(3), networkx.empty_graph(3)], split="all")


def test_evaluation_names_its_split(run):
    saved = [Evaluation.load(path) for path in sorted((run / "evaluations").glob("*.json"))]
    assert saved
    assert {one.settings["split"] for one in saved} == {"valid"}
    assert run.config.evaluation.settings == {"split": "valid"}
    assert run.evaluate().settings == {"split": "valid"}
    assert run.evaluate(split="test").settings == {"split": "test"}
    assert run.evaluate(split="train").settings == {"split": "train"}


def test_the_splits_are_recorded(run, folder):
    record = json.loads((run / "graphs.json").read_text())
    found = read_graphs(folder)
    assert record["trained_on"] == "train"
    assert {split: record["splits"][split]["sha256"] for split in SPLITS} == {
        split: found.fingerprint(split) for split in SPLITS
    }
    assert {split: record["splits"][split]["count"] for split in SPLITS} == {
        "train": 10,
        "valid": 1,
        "test": 1,
    }


def test_a_run_resumes_on_the_same_graphs_only(run, folder, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    ew.open_run(copy).resume(total_frames=384)
    extra = folder / "extra.graphml"
    networkx.write_graphml(networkx.path_graph(11), extra)
    try:
        with pytest.raises(CheckpointError, match="was trained on other graphs"):
            ew.open_run(copy).resume(total_frames=512)
    finally:
        extra.unlink()


def test_graphs_that_were_trained_on_are_refused_as_test(run, folder, tmp_path):
    trained = read_graphs(folder)
    leaked = trained.labels[trained.splits["train"][0]]
    (tmp_path / "test").mkdir()
    networkx.write_graphml(networkx.path_graph(30), tmp_path / "test" / "new.graphml")
    assert run.evaluate(graphs=str(tmp_path), split="test").settings["split"] == "test"
    shutil.copy(leaked, tmp_path / "test" / "renamed.graphml")
    with pytest.raises(DataError, match="1 of 2 graphs of the split test were trained on"):
        run.evaluate(graphs=str(tmp_path), split="test")
    with pytest.raises(DataError, match="were trained on"):
        ew.train(
            "graphwalk",
            graphs=str(folder),
            folder=tmp_path / "run",
            evaluation={"settings": {"graphs": str(tmp_path), "split": "test"}},
            **SHORT,
        )


def test_training_on_a_split_for_evaluation_is_refused(folder):
    with pytest.raises(ConfigError, match="training on the split test would mix it with evaluation"):
        ew.train("graphwalk", graphs=str(folder), split="test", **SHORT)


def test_one_graph_is_used_for_everything_by_name(tmp_path):
    graph = tmp_path / "town.edgelist"
    graph.write_text("a b\nb c\nc d\nd a\n")
    with pytest.raises(DataError, match="the split train has no graph"):
        ew.train("graphwalk", graphs=str(graph), folder=tmp_path / "none", **SHORT)
    run = ew.train("graphwalk", graphs=str(graph), split="all", folder=tmp_path / "run", **SHORT)
    assert run.evaluate().settings == {"split": "all"}
    with pytest.raises(DataError, match="the split test has no graph"):
        run.evaluate(split="test")


def test_graphs_given_in_python_are_kept_in_the_run_folder(given_run):
    assert (given_run / given.FILE).is_file()
    assert given_run.config.env.graphs.startswith("given:")
    assert given_run.evaluate(split="test").settings == {"split": "test"}
    record = json.loads((given_run / "graphs.json").read_text())
    assert record["splits"]["test"]["sha256"] == read_graphs(walks(12)).fingerprint("test")


def test_another_process_resumes_and_evaluates_given_graphs(given_run, tmp_path):
    copy = tmp_path / "moved"
    shutil.copytree(given_run.path, copy)
    code = (
        "import sys, edgewise as ew; run = ew.open_run(sys.argv[1]); run.resume(total_frames=384); "
        "print(run.evaluate(split='test').returns.tolist())"
    )
    printed = run_process(code, copy, place=tmp_path / "process")
    here = ew.open_run(given_run.path).resume(total_frames=384)
    assert json.loads(printed.splitlines()[-1]) == here.evaluate(split="test").returns.tolist()


def test_given_graphs_that_are_gone_are_named(given_run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(given_run.path, copy)
    name = "given:" + "0" * 64
    config = json.loads((copy / "config.json").read_text())
    config["env"]["graphs"] = name
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match="holds other graphs than the run was trained on"):
        ew.open_run(copy).evaluate()
    with pytest.raises(DataError, match="were given in Python and are not here"):
        ew.make_env("graphwalk", graphs="given:" + "1" * 64)


def test_the_command_line_evaluates_by_split(run, capsys):
    assert main(["eval", str(run.path), "--split", "test,valid", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["settings"]["split"] for result in results] == ["test", "valid"]


def test_the_command_line_names_bad_graphs_without_a_traceback(tmp_path, capsys):
    (tmp_path / "g.csv").write_text("0,1\n1\n")
    assert main(["train", "graphwalk", "--graphs", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "g.csv:2: 1 column" in error
    assert "Traceback" not in error


class TourConfig(ew.GraphsConfig):
    """Settings of the tour."""

    max_steps: int = 6


class TourEnv(ew.GraphEnv[TourConfig]):
    """Visit nodes of a given graph; each new one pays."""

    def setup(self):
        self.instances = ew.load_graphs(self.config.graphs, split=self.config.split, device=self.device)
        nodes, edges = self.instances.spec.num_nodes, self.instances.spec.edges
        self.graph = ew.GraphSpec(nodes, 1, edges=edges)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        which = self.instances.sample(count, self.generator)
        return {"which": which, "visited": torch.zeros(count, self.graph.num_nodes, dtype=torch.bool)}

    def advance(self, state, action):
        new = ~state["visited"].gather(-1, action.unsqueeze(-1)).squeeze(-1)
        visited = state["visited"].scatter(-1, action.unsqueeze(-1), True)
        return ew.Transition({"visited": visited}, reward=new.float())

    def observe(self, state):
        graph = self.instances[state["which"]].exclude("x")
        return {"graph": graph.set("x", state["visited"].float().unsqueeze(-1))}


def test_an_environment_of_ones_own_takes_graphs(tmp_path):
    graphs = walks(12)
    run = ew.train(TourEnv, graphs=graphs, folder=tmp_path / "run", **SHORT)
    assert run.evaluate(split="test").settings == {"split": "test"}
    assert list((run / "replays").glob("*.json"))
    with pytest.raises(ConfigError, match="graphs: not set"):
        ew.train(TourEnv, folder=tmp_path / "other", **SHORT)
