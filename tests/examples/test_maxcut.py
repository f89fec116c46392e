"""Max-cut against brute force and networkx: gains, graphs, searches, and what a policy may know."""

import itertools
import sys

import networkx
import pytest
import torch
from torchrl.envs.utils import check_env_specs

import edgewise as ew
from edgewise.plugins import use_plugin


@pytest.fixture
def maxcut(examples):
    return use_plugin(str(examples / "maxcut/maxcut.py"))


@pytest.fixture
def search(examples):
    return use_plugin(str(examples / "maxcut/local_search.py"))


def worlds(maxcut, count=4, **settings):
    return ew.make_env(maxcut.MaxCutEnv, num_envs=count, seed=3, **{"num_nodes": 12, **settings})


def matrices(state):
    """The weights as matrices `[B, N, N]`, edge by edge."""
    weight = torch.zeros(*state["side"].shape, state["side"].shape[-1])
    for world, (ends, mask) in enumerate(zip(state["edge_index"], state["edge_mask"], strict=True)):
        for edge in mask.nonzero().flatten().tolist():
            weight[world, ends[0, edge], ends[1, edge]] += state["weight"][world, edge]
    return weight


def cut(weight, side):
    """The weight between the sides, pair by pair."""
    pairs = itertools.combinations(range(len(side)), 2)
    return sum(float(weight[one, other]) for one, other in pairs if side[one] != side[other])


def optimum(weight):
    sides = torch.tensor(list(itertools.product((1.0, -1.0), repeat=len(weight) - 1)))
    sides = torch.nn.functional.pad(sides, (1, 0), value=1.0)
    return float(((weight.sum() - ((sides @ weight) * sides).sum(-1)) / 4).max())


@pytest.mark.parametrize("settings", [{"family": "er"}, {"num_nodes": (7, 12)}])
def test_contract(maxcut, settings):
    env = worlds(maxcut, 3, **settings)
    ew.check_graph_env(env)
    check_env_specs(env)


@pytest.mark.parametrize("weights", ["unit", "signs"])
def test_a_gain_is_by_how_much_a_flip_changes_the_cut(maxcut, weights):
    env = worlds(maxcut, weights=weights, num_nodes=(7, 12))
    root = env.reset()
    initial = root["state", "cut"].clone()
    total = torch.zeros(4)
    for number in range(4):
        state = root["state"]
        for world, weight in enumerate(matrices(state)):
            side = state["side"][world]
            assert cut(weight, side) == pytest.approx(float(state["cut"][world]))
            for node in range(int(state["exists"][world].sum())):
                flipped = side.clone()
                flipped[node] *= -1
                gain = float(state["gain"][world, node])
                assert cut(weight, flipped) - cut(weight, side) == pytest.approx(gain, abs=1e-5)
        root = env.step(root.set("action", torch.tensor([number % 7] * 4)))["next"]
        total += root["reward"].squeeze(-1)
    state = root["state"]
    torch.testing.assert_close(total, (state["best"] - initial) / state["scale"])
    for world, weight in enumerate(matrices(state)):
        assert cut(weight, state["best_side"][world]) == pytest.approx(float(state["best"][world]))


def test_families_and_weights(maxcut):
    grown = worlds(maxcut, 30, num_nodes=30, family="ba", weights="unit").reset()["state"]
    adjacent = matrices(grown)
    assert torch.equal(adjacent, adjacent.transpose(1, 2))
    assert (adjacent.sum((1, 2)) == 2 * 4 * 26).all()
    assert (adjacent[:, 5:].tril(4).sum(-1)[:, 1:] >= 4).all(), "every new node joins four older ones"
    assert all(networkx.is_connected(networkx.from_numpy_array(each.numpy())) for each in adjacent)
    expected = [
        max(dict(networkx.barabasi_albert_graph(30, 4, seed=seed).degree).values()) for seed in range(60)
    ]
    hub = adjacent.sum(-1).amax(-1).mean()
    assert hub == pytest.approx(sum(expected) / 60, rel=0.15)
    random = matrices(worlds(maxcut, 60, num_nodes=30, family="er", weights="signs").reset()["state"])
    share = random.abs().sum((1, 2)).mean() / (30 * 29)
    assert share == pytest.approx(0.15, abs=0.015)
    assert set(random.unique().tolist()) == {-1.0, 0.0, 1.0}
    assert abs(random.mean() / random.abs().mean()) < 0.1


def test_exchanging_the_sides_changes_nothing_that_is_observed(maxcut):
    env = worlds(maxcut)
    root = env.reset()
    for _ in range(5):
        root = env.rand_step(root)["next"]
    state = root["state"]
    turned = state.clone().update({"side": -state["side"], "best_side": -state["best_side"]})
    one, other = (env.observe(each)["graph"] for each in (state, turned))
    for name in one:
        assert torch.equal(one[name], other[name])


def test_episodes_end_after_two_flips_per_node(maxcut):
    env = worlds(maxcut, num_nodes=(7, 12))
    root, length = env.reset(), torch.zeros(4)
    nodes = root["state", "exists"].sum(-1)
    for _ in range(24):
        length += ~root["done"].squeeze(-1)
        root = env.step(root.set("action", torch.zeros(4, dtype=torch.int64)))["next"]
        if root["done"].all():
            break
    assert root["truncated"].any()
    assert not root["terminated"].any()
    assert (length >= 2 * nodes).all()


@pytest.mark.parametrize("weights", ["unit", "signs"])
def test_tabu_search_finds_the_optimum_of_small_graphs_and_ascents_end_where_no_flip_helps(
    maxcut, search, weights
):
    weight = matrices(worlds(maxcut, 6, num_nodes=11, weights=weights).reset()["state"])
    best = torch.tensor([optimum(each) for each in weight])
    generator = torch.Generator().manual_seed(0)
    found, steps = search.tabu_search(weight, search.random_sides(6, 4, 11, generator), generator, steps=120)
    assert steps == 120
    torch.testing.assert_close(found.amax(-1), best)
    side = search.random_sides(6, 5, 11, generator)
    ascended = search.ascend(weight, side)
    assert (ascended <= best.unsqueeze(-1)).all()
    cuts = search.Cuts(weight, side)
    for _ in range(20):
        gain, node = cuts.gain.max(-1)
        cuts.flip(node, gain > 0)
    assert (cuts.gain <= 0).all()
    torch.testing.assert_close(cuts.cut.view(6, 5), ascended)
    fresh = search.Cuts(weight, cuts.side.view(6, 5, 11))
    torch.testing.assert_close(fresh.gain, cuts.gain)
    torch.testing.assert_close(fresh.cut, cuts.cut)


def test_tabu_search_beats_greedy_flips_in_as_many_steps(maxcut):
    env = worlds(maxcut, 40, num_nodes=40)
    found = {}
    for name, make in maxcut.BASELINES.items():
        env.set_seed(1)
        policy, root = make(env), env.reset()
        while not root["done"].all():
            root = env.step(policy(root))["next"]
        found[name] = root["metrics", "cut"]
    assert found["tabu"].mean() > 1.02 * found["greedy"].mean()


def test_sizes_that_do_not_exist_are_refused(maxcut):
    with pytest.raises(ew.ConfigError, match="num_nodes: got 5, expected 6 or more"):
        worlds(maxcut, num_nodes=5)
    with pytest.raises(ew.ConfigError, match="density"):
        worlds(maxcut, density=0.0)


def test_the_recipe_trains_and_is_measured(examples, tmp_path, monkeypatch, capsys):
    folder = examples / "maxcut"
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    for file in ("maxcut.py", "encoder.py"):
        use_plugin(str(folder / file))
    run = ew.train(
        str(folder / "maxcut40.yaml"),
        folder=tmp_path / "run",
        progress=False,
        num_nodes=8,
        training={"total_frames": 192, "num_envs": 4, "rollout_length": 16},
        algorithm={"learning_starts": 64, "minibatch_size": 8, "replay_size": 500},
        evaluation={"every": None, "episodes": 2, "baselines": []},
    )
    import measure

    arguments = ["--nodes", "10", "--instances", "2", "--starts", "2", "--weights", "signs", "--graphs", "ba"]
    monkeypatch.setattr(sys, "argv", ["measure.py", str(run.path), *arguments])
    assert measure.main() == 0
    rows = [line.split("|")[3:5] for line in capsys.readouterr().out.splitlines()[2:]]
    names = [name.strip() for name, _ in rows]
    assert names[:3] == ["greedy", "50 ascents", "tabu search, 2 steps per node"]
    assert names[3:] == ["run, 2 starts", "tabu search, CPU of run, 2 starts"]
    assert all(0 <= float(ratio.split()[0]) <= 1 for _, ratio in rows)
    for module in ("measure", "maxcut", "local_search"):
        sys.modules.pop(module, None)
