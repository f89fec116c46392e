"""Environments of Gymnasium and PettingZoo train, are evaluated and resume like ours."""

import gymnasium
import numpy as np
import pytest
import torch
from tests.envs.adapters.worlds import Beacon, Signals
from tests.runs.states import same

import edgewise as ew
from edgewise.config.errors import ConfigError
from edgewise.envs.adapters.foreign import ForeignConfig
from edgewise.runs.checkpoint import store as checkpoint

BeaconEnv = ew.from_gymnasium(Beacon, choose="node", max_nodes=5, max_edges=5, name="BeaconEnv")
SignalsEnv = ew.from_pettingzoo(Signals, name="SignalsEnv")
CartPole = ew.from_gymnasium("CartPole-v1", name="CartPole")
Pendulum = ew.from_gymnasium("Pendulum-v1", name="Pendulum")

SHORT = {
    "total_frames": 512,
    "num_envs": 8,
    "rollout_length": 16,
    "evaluation.every": 256,
    "evaluation.episodes": 8,
    "checkpoint.every": 128,
    "logging.tensorboard": False,
    "model.encoder.hidden": 16,
    "model.encoder.layers": 1,
    "algorithm.epochs": 1,
}


def build(cls, num_envs=4, seed=0):
    return cls(ForeignConfig(), num_envs=num_envs, seed=seed)


@pytest.mark.parametrize("cls", [BeaconEnv, SignalsEnv, CartPole, Pendulum])
def test_it_keeps_the_contract_of_an_environment(cls):
    ew.check_graph_env(build(cls))


def test_masks_and_sizes_come_from_the_simulator():
    root = build(BeaconEnv, num_envs=32).reset()
    sizes = root["graph", "node_mask"].sum(-1)
    assert set(sizes.tolist()) == {3, 4, 5}
    assert torch.equal(root["action_mask"], root["graph", "node_mask"])
    assert torch.equal(root["graph", "edge_mask"].sum(-1), sizes)


def test_an_old_state_can_be_stepped_again_by_another_action():
    env = build(BeaconEnv, num_envs=1, seed=2)
    root = env.reset()
    legal = root["action_mask"][0].nonzero().squeeze(-1)
    outcomes = []
    for choice in (legal[0], legal[1], legal[0]):
        after = env.simulate(root.clone().set("action", choice.view(1)))
        second = after["action_mask"][0].nonzero()[0]
        further = env.simulate(after.clone().set("action", second))
        outcomes.append((after["reward"], after["graph", "x"], further["graph", "x"]))
    first, other, again = outcomes
    assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, other))


def test_the_last_step_can_be_taken_again_by_another_action():
    """One node is lit, so one action is paid, whichever were tried before it."""
    env = build(BeaconEnv, num_envs=1, seed=2)
    root = env.reset()
    legal = root["action_mask"][0].nonzero()
    paid = [float(env.simulate(root.clone().set("action", choice))["reward"]) for choice in legal]
    assert sorted(paid) == [0.0] * (len(legal) - 1) + [1.0]


def test_a_first_state_is_a_function_of_its_seed_in_any_environment():
    first, second = (build(BeaconEnv, num_envs=4, seed=seed) for seed in (0, 1))
    root, _ = first.reset(), second.reset()
    root = first.rand_action(root)
    one, other = (env.simulate(root.clone()) for env in (first, second))
    for name in ("reward", ("graph", "x"), ("graph", "node_mask"), "action_mask"):
        assert torch.equal(one[name], other[name])


def test_a_mask_leaves_out_padding():
    roomy = ew.from_gymnasium(Beacon, choose="node", max_nodes=7, max_edges=5, name="Roomy")
    root = build(roomy, num_envs=8).reset()
    assert not root["action_mask"][:, 5:].any()
    assert torch.equal(root["action_mask"], root["graph", "node_mask"])


def test_a_world_that_is_over_shows_what_it_showed_last():
    env = build(BeaconEnv, num_envs=4)
    root = env.reset()
    for _ in range(4):
        root = env.step_mdp(env.step(env.rand_action(root)))
    assert root["done"].all()
    further = env.step(env.rand_action(root.clone()))["next"]
    assert not root["action_mask"].all()
    for name in ("action_mask", ("graph", "x"), ("graph", "node_mask"), ("graph", "edge_index")):
        assert torch.equal(further[name], root[name])
    assert further["terminated"].all()
    assert not further["reward"].any()


def test_a_restored_environment_continues_like_the_first():
    first = build(BeaconEnv, num_envs=6, seed=5)
    root = first.reset()
    for _ in range(6):
        first.rand_action(root)
        root = first.maybe_reset(first.step_mdp(first.step(root)))
    state = first.state_dict()
    second = build(BeaconEnv, num_envs=6, seed=9)
    second.load_state_dict(state)
    for _ in range(12):
        first.rand_action(root)
        pair = [env.maybe_reset(env.step_mdp(env.step(root.clone()))) for env in (first, second)]
        for name in ("x", "node_mask", "edge_index"):
            assert torch.equal(*(one["graph", name] for one in pair))
        root = pair[0]


def test_a_state_of_a_forgotten_episode_is_refused_in_words():
    env = build(BeaconEnv, num_envs=1)
    root = env.reset()
    env.rand_action(root)
    root = env.step_mdp(env.step(root))
    other = build(BeaconEnv, num_envs=1)
    other.rand_action(root)
    with pytest.raises(ConfigError, match="no longer remembered"):
        other.step(root)


def test_agents_that_leave_stop_acting_and_are_not_paid():
    env = build(SignalsEnv, num_envs=3)
    stepped = env.rollout(5, break_when_any_done=False)
    active = stepped["agents", "active"][0]
    assert active.tolist() == [[True] * 3] * 2 + [[True, True, False]] * 3
    assert (stepped["next", "reward"][:, 2:, 2] == 0).all()
    assert stepped["next", "truncated"][:, -1].all()
    assert not stepped["next", "terminated"][:, -1].any()


def test_continuous_actions_are_scaled_to_the_space():
    seen = []

    class Recorder(gymnasium.Wrapper):
        def step(self, action):
            seen.append(np.array(action))
            return self.env.step(action)

    env = build(
        ew.from_gymnasium(lambda: Recorder(gymnasium.make("Pendulum-v1")), name="Recorder"), num_envs=1
    )
    root = env.reset()
    for value in (-1.0, 0.0, 1.0):
        root = env.step_mdp(env.step(root.set("action", torch.full((1, 1, 1), value))))
    assert np.allclose(np.concatenate(seen), [-2.0, 0.0, 2.0])


def test_it_trains_resumes_and_reports_like_ours(tmp_path):
    whole = ew.train(BeaconEnv, folder=tmp_path / "whole", progress=False, **SHORT)
    half = ew.train(BeaconEnv, folder=tmp_path / "half", progress=False, **{**SHORT, "total_frames": 256})
    resumed = half.resume(total_frames=512, progress=False)
    loaded = [checkpoint.load(checkpoint.saved(run.path / "checkpoints")[-1]) for run in (whole, resumed)]
    parts = ("algorithm", "rollout", "random")
    assert same(*({part: state[part] for part in parts} for state in loaded))
    assert whole.report().exists()


@pytest.mark.learning
def test_it_learns_better_than_random(tmp_path):
    run = ew.train(BeaconEnv, folder=tmp_path / "run", progress=False, total_frames=20_000)
    assert run.evaluate(episodes=64).returns.mean() > 3.8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ew.from_gymnasium("NoSuch-v0"), "NoSuch"),
        (lambda: ew.from_gymnasium(Beacon, gravity=3), "gravity would not be used"),
        (lambda: ew.from_gymnasium("Pendulum-v1", choose="node"), "needs Discrete actions"),
        (lambda: ew.from_gymnasium("CartPole-v1", graph={"x": "nodes"}), "observations are Box"),
        (lambda: build(ew.from_gymnasium(Beacon, choose="node", max_nodes=2)), "give max_nodes"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
