"""Our environments under the checkers of Gymnasium and PettingZoo."""

import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from tests.algorithms.worlds import toy

import edgewise as ew
from edgewise.config.errors import ConfigError, IllegalActionError
from edgewise.envs.adapters.outside_view import graph_tensors
from edgewise.plugins import environments

TEAMS, GAMES = ("swarm", "marine"), ("hex", "hive")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("graphs", ["dict", "space"])
@pytest.mark.parametrize("name", environments())
def test_gymnasium_accepts_every_environment(name, graphs):
    check_env(ew.to_gymnasium(ew.make_env(name), illegal="ignore", graphs=graphs), skip_render_check=True)


@pytest.mark.parametrize("name", sorted(environments()))
def test_a_world_is_drawn_as_pixels_that_change_with_its_state(name):
    world = gymnasium.make(f"edgewise.gym:edgewise/{name}", render_mode="rgb_array", illegal="ignore")
    world.reset(seed=1)
    frames = [world.render()]
    for _ in range(3):
        *_, terminated, truncated, _ = world.step(world.action_space.sample())
        frames.append(world.render())
        if terminated or truncated:
            break
    assert frames[0].dtype == np.uint8
    assert frames[0].shape == frames[-1].shape == (480, 640, 3)
    assert any((frame != frames[0]).any() for frame in frames[1:])


def test_worlds_by_name_step_together():
    worlds = gymnasium.make_vec(
        "edgewise.gym:edgewise/graphwalk", num_envs=3, vectorization_mode="vector_entry_point"
    )
    observation, _ = worlds.reset(seed=0)
    assert observation["graph"]["x"].shape[0] == 3


@pytest.mark.parametrize("name", TEAMS)
def test_pettingzoo_accepts_every_team(name):
    parallel_api_test(ew.to_pettingzoo(ew.make_env(name)), num_cycles=30)
    parallel_seed_test(lambda: ew.to_pettingzoo(ew.make_env(name)), num_cycles=5)


@pytest.mark.parametrize("name", GAMES)
def test_pettingzoo_accepts_every_game(name):
    api_test(ew.to_pettingzoo(ew.make_env(name)), num_cycles=20)
    seed_test(lambda: ew.to_pettingzoo(ew.make_env(name)), num_cycles=5)


def test_a_vector_of_worlds_is_the_environment_itself():
    env, own = (ew.make_env("graphwalk", num_envs=4, seed=3) for _ in range(2))
    vector = ew.to_gymnasium(env)
    observation, info = vector.reset(seed=3)
    own.set_seed(3)
    root = own.reset()
    ends = 0
    for _ in range(60):
        action = np.array([np.flatnonzero(row)[0] for row in info["action_mask"]])
        observation, reward, terminated, truncated, info = vector.step(action)
        stepped = own.step(root.set("action", torch.from_numpy(action)))
        assert np.allclose(reward, stepped["next", "reward"].squeeze(-1))
        done = terminated | truncated
        assert (done == stepped["next", "done"].squeeze(-1).numpy()).all()
        root = own.maybe_reset(own.step_mdp(stepped))
        assert np.array_equal(observation["graph"]["x"], own.graph.mask_padding(root["graph"]))
        if done.any():
            ends += int(done.sum())
            last = own.graph.mask_padding(stepped["next", "graph"])
            assert np.array_equal(info["final_obs"]["graph"]["x"][done], last[torch.from_numpy(done)])
        assert vector.observation_space.contains(observation)
    assert ends > 4


def test_graphs_of_the_space_have_no_padding():
    env = ew.make_env("graphwalk", num_nodes=(5, 9), seed=1)
    shown, _ = ew.to_gymnasium(env, graphs="space").reset(seed=1)
    padded, _ = ew.to_gymnasium(env).reset(seed=1)
    exists = padded["graph"]["node_mask"].astype(bool)
    assert np.array_equal(shown["graph"].nodes, padded["graph"]["x"][exists])
    assert len(shown["graph"].edge_links) == padded["graph"]["edge_mask"].sum()
    assert shown["graph"].edge_links.max() < exists.sum()


def test_illegal_actions_raise_or_are_said():
    mask_of = lambda info: np.flatnonzero(~info["action_mask"].astype(bool))  # noqa: E731
    strict = ew.to_gymnasium(ew.make_env("graphwalk"))
    _, info = strict.reset(seed=0)
    with pytest.raises(IllegalActionError, match="legal are"):
        strict.step(mask_of(info)[0])
    lenient = ew.to_gymnasium(ew.make_env("graphwalk"), illegal="ignore")
    _, info = lenient.reset(seed=0)
    assert lenient.step(mask_of(info)[0])[-1]["illegal"]
    _, info = lenient.reset(seed=0)
    assert not lenient.step(np.flatnonzero(info["action_mask"])[0])[-1]["illegal"]


@pytest.mark.parametrize("name", ["graphwalk", "swarm"])
def test_padding_is_zero_whatever_it_holds(name):
    """Slots of edges by rule name their nodes, whether they are edges or not."""
    env = ew.make_env(name, num_envs=4, seed=0)
    graph = env.reset()["graph"].clone()
    graph["x"].masked_fill_(~graph["node_mask"].unsqueeze(-1), 7.0)
    found = graph_tensors(graph, env.graph)
    assert not found["edge_mask"].all()
    assert not found["edge_index"].movedim(-2, -1)[~found["edge_mask"]].any()
    assert not found["x"][~graph["node_mask"]].any()


def test_only_the_player_to_move_has_legal_actions():
    game = ew.to_pettingzoo(ew.make_env("hex", size=3, seed=0))
    game.reset(seed=0)
    other = next(name for name in game.possible_agents if name != game.agent_selection)
    assert game.observe(game.agent_selection)["action_mask"].any()
    assert not game.observe(other)["action_mask"].any()


def test_agents_that_end_leave_their_team_and_are_not_cut_off():
    """In the toy agents leave at random, and its worlds are cut off after four steps."""
    team = ew.to_pettingzoo(toy("signals", num_envs=1))
    left = ended_at_the_limit = 0
    for seed in range(60):
        team.reset(seed=seed)
        while team.agents:
            acting = list(team.agents)
            _, _, ended, cut, _ = team.step(dict.fromkeys(acting, 0))
            assert set(ended) == set(cut) == set(acting)
            assert not any(ended[name] and cut[name] for name in acting)
            left += sum(ended.values())
            ended_at_the_limit += any(cut.values()) and any(ended.values())
            assert team.agents == ([] if any(cut.values()) else [name for name in acting if not ended[name]])
    assert left > 10
    assert ended_at_the_limit > 3


def test_the_winner_gains_what_the_loser_loses():
    game = ew.to_pettingzoo(ew.make_env("hex", size=3, seed=0))
    game.reset(seed=0)
    totals = dict.fromkeys(game.possible_agents, 0.0)
    for name in game.agent_iter():
        observation, reward, terminated, truncated, _ = game.last()
        totals[name] += reward
        game.step(None if terminated or truncated else int(np.flatnonzero(observation["action_mask"])[0]))
    assert sorted(totals.values()) == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("adapt", "message"),
    [
        (lambda: ew.to_pettingzoo(ew.make_env("graphwalk")), "one player and no agents"),
        (lambda: ew.to_pettingzoo(ew.make_env("swarm", num_envs=2)), "takes one world, got 2"),
        (lambda: ew.to_gymnasium(ew.make_env("graphwalk"), illegal="allow"), "expected 'raise' or 'ignore'"),
        (lambda: ew.to_gymnasium(ew.make_env("graphwalk"), render_mode="human"), "expected 'rgb_array'"),
        (lambda: ew.to_gymnasium(ew.make_env("graphwalk", num_envs=2), render_mode="rgb_array"), "one world"),
        (lambda: ew.to_gymnasium(ew.make_env("graphwalk", num_envs=2), graphs="space"), "takes one world"),
        (lambda: ew.to_gymnasium(ew.make_env("graphwalk")).step(0), "before reset"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(adapt, message):
    with pytest.raises(ConfigError, match=message):
        adapt()
