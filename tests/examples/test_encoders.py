"""Encoders of the examples: short, blind to padding, and trained. Their export is tested with all others."""

import pytest
import torch
from tests.isolation import isolated

import edgewise as ew
from edgewise.cli.main import main
from edgewise.models.build import make_encoder

CHOSEN = {
    "gps.py": {"kind": "gps.py:GPS"},
    "pna.py": {"kind": "gnn", "conv": "pna.py:PNA"},
    "hetero.py": {"kind": "gnn", "conv": "hetero.py:Hetero"},
}
TINY = ["--hidden", "8", "--heads", "2", "--layers", "1", "--num-envs", "4", "--rollout-length", "5"]


@pytest.fixture
def encoders(examples, monkeypatch):
    monkeypatch.chdir(examples / "encoders")
    return examples / "encoders"


@pytest.mark.parametrize("file", CHOSEN)
def test_a_file_of_at_most_25_lines_is_trained_and_evaluated(encoders, file, tmp_path):
    assert len((encoders / file).read_text().splitlines()) <= 25
    chosen = [word for name, value in CHOSEN[file].items() for word in (f"--model.encoder.{name}", value)]
    run = str(tmp_path / "run")
    path = "../capacity/capacity.py"
    assert main(["train", path, *chosen, *TINY, "--total-frames", "40", "--out", run]) == 0
    with isolated():
        assert (
            main(["eval", run, "--episodes", "2", "--num-nodes", "9", "--plugin", path, "--plugin", file])
            == 0
        )


@pytest.mark.parametrize("file", CHOSEN)
def test_padding_and_the_order_of_nodes_have_no_effect(encoders, file):
    from edgewise.plugins import use_plugin

    use_plugin(file)
    env = ew.make_env("../capacity/capacity.py", num_envs=3, seed=0)
    graph = env.reset()["graph"]
    encoder = make_encoder(env.graph, ew.EncoderConfig(**CHOSEN[file], hidden=8, heads=2, layers=2))
    h, exists = encoder(graph), graph["node_mask"]
    assert not h[~exists].any()
    assert h[exists].abs().max() > 0
    noisy = graph.clone()
    noisy["x"][~exists] = 7.0
    noisy["edge_attr"][~graph["edge_mask"]] = 7.0
    torch.testing.assert_close(encoder(noisy), h)
    moved = graph.clone()
    for name in ("x", "node_mask"):
        moved[name] = graph[name].flip(1)
    moved["edge_index"] = exists.shape[1] - 1 - graph["edge_index"]
    torch.testing.assert_close(encoder(moved), h.flip(1))


def test_attention_stays_within_a_graph(encoders):
    from edgewise.plugins import use_plugin

    use_plugin("gps.py")
    env = ew.make_env("../capacity/capacity.py", num_envs=3, seed=0)
    graph = env.reset()["graph"]
    encoder = make_encoder(env.graph, ew.EncoderConfig(kind="gps.py:GPS", hidden=8, heads=2, layers=1))
    torch.testing.assert_close(encoder(graph[:1]), encoder(graph)[:1])
    without = graph.clone()
    without["edge_mask"][:] = False
    without["x"][0, 0] += 1.0
    changed = encoder(without) - encoder(without.clone().set("x", graph["x"]))
    assert changed[0, 1].abs().max() > 0, "nodes without edges attend to each other"
    assert not changed[1:].any()


def test_types_of_edges_have_own_weights(encoders):
    """In heterogeneous graphs, the type of an edge decides what is chosen."""
    from edgewise.plugins import use_plugin

    projects = use_plugin("projects.py")
    use_plugin("hetero.py")
    graphs = projects.sample_graphs(40, torch.Generator().manual_seed(0))
    env = ew.make_env("projects.py", num_envs=6, seed=0, graphs=graphs)
    ew.check_graph_env(env)
    graph = env.reset()["graph"]
    swapped = graph.clone().set("edge_attr", graph["edge_attr"].flip(-1))
    for conv, reads in (("hetero.py:Hetero", True), ("SAGEConv", False)):
        encoder = make_encoder(env.graph, ew.EncoderConfig(kind="gnn", conv=conv, hidden=8, layers=1))
        assert (not torch.equal(encoder(graph), encoder(swapped))) == reads
    root, policy = env.reset(), projects.best(env)
    best = env.step(policy(root.clone()))["next", "reward"]
    assert (best >= env.step(env.rand_action(root))["next", "reward"]).all()
