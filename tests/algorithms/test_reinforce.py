"""REINFORCE: its gradient, its baselines, what it collects, what it refuses, and that a run resumes."""

import shutil

import pytest
import torch
from benchmarks.kill_resume import differences
from tests.algorithms.picking import NODES, Picking, PickingConfig, orders, picking, reinforce, worth_of
from tests.algorithms.worlds import SMALL, TOYS, toy
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.algorithms.config import ReinforceConfig
from edgewise.algorithms.greedy_baseline import GreedyBaseline
from edgewise.algorithms.reinforce import REINFORCE
from edgewise.cli.main import main
from edgewise.config.errors import ConfigError
from edgewise.data.episodes import EpisodeRollout, play_episodes
from edgewise.data.random_policy import RandomPolicy
from edgewise.envs.base import Transition
from edgewise.experiments.launch import resume, start
from edgewise.experiments.load import load_config
from edgewise.graphs.legal_choices import take_in_order
from edgewise.models.actor_critic import make_actor_critic
from edgewise.objectives.episodes import episode_returns, mean_over_instance
from edgewise.runs.checkpoint import store as checkpoint

FREE = {"learning_rate": 0.0, "max_grad_norm": 1e9}
"""Settings with which `learn` leaves the weights and the gradient as they are."""


def gradient(actor):
    return torch.cat([part.grad.flatten() for part in actor.parameters()])


def episodes_of(batch):
    """Cut a batch `[1, M]` into its episodes."""
    ends = (batch["next", "done"].flatten().nonzero().flatten() + 1).tolist()
    return [batch[0, begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("baseline", ["none", "mean", "shared", "greedy"])
@pytest.mark.parametrize("first_actions", ["sampled", "different"])
def test_the_gradient_is_the_one_computed_by_hand(baseline, first_actions):
    env = picking(num_envs=12)
    algorithm = reinforce(
        env,
        baseline=baseline,
        first_actions=first_actions,
        starts=3,
        gamma=0.9,
        entropy_coefficient=0.1,
        minibatch_size=5,
        **FREE,
    )
    batch = algorithm.make_collector(env, rollout_length=1).collect()
    algorithm.learn(batch)
    found = gradient(algorithm.actor).clone()

    episodes = episodes_of(batch)
    totals = [
        sum(0.9**step * float(reward) for step, reward in enumerate(episode["next", "reward"]))
        for episode in episodes
    ]
    loss = 0.0
    for number, (episode, total) in enumerate(zip(episodes, totals, strict=True)):
        group = totals[number // 3 * 3 : number // 3 * 3 + 3]
        known = {"none": 0.0, "mean": sum(totals) / 12, "shared": sum(group) / 3}
        offset = known[baseline] if baseline in known else float(episode["baseline_return"][0])
        for step, sample in enumerate(episode):
            dist = algorithm.actor.get_dist(sample.unsqueeze(0))
            log_prob = dist.log_prob(sample["action"].unsqueeze(0)).sum()
            drawn = step == 0 and first_actions == "different"
            weight = log_prob.detach().exp() * NODES if drawn else 1.0
            loss = loss - weight * (total - offset) * log_prob / 12
            loss = loss - 0.1 * dist.entropy().sum() / 12
    algorithm.actor.zero_grad()
    loss.backward()
    torch.testing.assert_close(found, gradient(algorithm.actor), rtol=1e-4, atol=1e-5)
    assert found.norm() > 0.01


@pytest.mark.parametrize(
    ("baseline", "share", "first_actions"),
    [
        ("none", 1, "sampled"),
        ("mean", 1, "sampled"),
        ("greedy", 1, "sampled"),
        ("shared", 0.75, "sampled"),
        ("none", 1, "different"),
        ("mean", 1, "different"),
        ("greedy", 1, "different"),
    ],
)
def test_the_mean_gradient_is_that_of_the_expected_return(baseline, share, first_actions):
    """On one instance, all orders enumerated. A mean over K = 4 with its own return shrinks it by 1 - 1/K.

    With different first actions, the policy learns to continue each of them alike, and to choose among them.
    """
    env = picking(num_envs=8000, picks=2)
    state = env.reset()[:1]
    spawn = {name: state["state", name] for name in ("worth", "left", "picked")}
    env.spawn = lambda count: {name: value.expand(count, *value.shape[1:]) for name, value in spawn.items()}
    algorithm = reinforce(
        env,
        baseline=baseline,
        starts=4,
        first_actions=first_actions,
        minibatch_size=100_000,
        **FREE,
    )
    algorithm.learn(algorithm.make_collector(env, rollout_length=1).collect())
    found = gradient(algorithm.actor).clone()

    expected = torch.zeros(())
    for order in orders(2):
        root, probabilities = env.reset()[:1], []
        for node in order:
            log_prob = algorithm.actor.get_dist(root).log_prob(torch.tensor([node])).squeeze()
            probabilities.append(log_prob.exp())
            root = env.simulate(root.set("action", torch.tensor([node])))
        first, then = probabilities
        probability = first * then
        if first_actions == "different":
            probability = first * then.detach() + then / NODES
        expected = expected - probability * worth_of(order, spawn["worth"][0])
    algorithm.actor.zero_grad()
    expected.backward()
    exact = gradient(algorithm.actor) * share
    assert (found - exact).norm() < 0.08 * exact.norm()


def test_episodes_of_an_instance_begin_alike_and_are_whole():
    env = picking(num_envs=14)
    rollout = EpisodeRollout(env, RandomPolicy(env.actions, env.graph), rollout_length=5, starts=4)
    batch = rollout.collect()
    episodes = episodes_of(batch)
    assert rollout.num_instances == 3
    rounds = len(episodes) // 12
    assert rounds * 3 >= 5 > (rounds - 2) * 3, "whole rounds until each world has made 5 steps"
    assert sum(map(len, episodes)) == batch.numel()
    for number, episode in enumerate(episodes):
        assert episode["instance"].tolist() == [number // 4] * len(episode)
        mate = episodes[number // 4 * 4]
        assert torch.equal(episode["graph", "x"][0], mate["graph", "x"][0])
        assert len(episode) == int(episode["graph", "x"][0, 0, 2]), "as many steps as there are picks"
        assert episode["action_mask"].gather(-1, episode["action"].unsqueeze(-1)).all()
    assert len({len(episode) for episode in episodes}) > 1
    assert not torch.equal(episodes[0]["graph", "x"][0], episodes[4]["graph", "x"][0])


@pytest.mark.parametrize("starts", [3, 4, 6])
def test_different_first_actions_are_legal_and_their_probability_is_kept(starts):
    env = picking(num_envs=24, picks=2)
    rollout = EpisodeRollout(env, RandomPolicy(env.actions, env.graph), starts=starts, different=True)
    episodes = episodes_of(rollout.collect())
    for begin in range(0, len(episodes), starts):
        first = [int(episode["action"][0]) for episode in episodes[begin : begin + starts]]
        assert len(set(first)) == min(starts, NODES)
        assert set(first) <= set(range(NODES))
    for episode in episodes:
        assert episode["proposal"].tolist() == [pytest.approx(1 / NODES), 0.0]


def test_a_start_may_have_fewer_first_actions_than_starts():
    legal = torch.tensor([[False, True, False, True], [False, False, True, False]])
    found = take_in_order(torch.tensor([[9.0, 1.0, 9.0, 2.0]] * 2), legal, 3)
    assert found.tolist() == [[3, 1, 3], [2, 2, 2]]


def test_returns_and_shared_baselines_of_agents():
    """Rewards count while an agent acts; means are over the agents of the same slot that acted."""
    reward = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    done = torch.tensor([False, True, True])
    active = torch.tensor([[True, False], [True, False], [True, True]])
    returns, acted = episode_returns(reward, done, active=active, gamma=0.5)
    assert returns.tolist() == [[2.0, 0.0], [4.0, 40.0], [0.0, 0.0]]
    assert acted.tolist() == [[True, False], [True, True], [False, False]]
    shared = mean_over_instance(returns[:2], acted[:2], torch.tensor([0, 0]))
    assert shared.tolist() == [[3.0, 40.0], [3.0, 40.0]]


def test_the_greedy_baseline_is_the_mode_of_a_frozen_copy():
    env = picking(num_envs=6)
    algorithm = reinforce(env, baseline="greedy", starts=2, gamma=0.9, learning_rate=0.1)
    rollout = algorithm.make_collector(env, rollout_length=1)
    frozen = rollout.baseline.frozen
    for _ in range(2):
        batch = rollout.collect()
        for episode in episodes_of(batch):
            worth, picks = episode["graph", "x"][0, :, 0], len(episode)
            state = {
                "worth": worth,
                "left": torch.tensor(picks),
                "picked": torch.zeros(NODES, dtype=torch.bool),
            }
            env.spawn = lambda count, state=state: {
                name: value.expand(count, *value.shape) for name, value in state.items()
            }
            root, total = env.reset()[:1], 0.0
            for step in range(picks):
                action = frozen.get_dist(root).mode
                root = env.simulate(root.set("action", action))
                total += 0.9**step * float(root["reward"])
            assert float(episode["baseline_return"][0]) == pytest.approx(total, rel=1e-5, abs=1e-5)
        del env.spawn
        algorithm.learn(batch)
    pairs = zip(frozen.parameters(), algorithm.actor.parameters(), strict=True)
    assert not any(torch.equal(old, new) for old, new in pairs), "the copy must not learn"


def train_on(baseline, *, updates=40):
    env = picking(num_envs=64, picks=2)
    algorithm = reinforce(env, seed=1, baseline=baseline, learning_rate=0.01, challenge_every=5)
    rollout = algorithm.make_collector(env, rollout_length=1)
    for _ in range(updates):
        algorithm.learn(rollout.collect())
    return algorithm.actor


@pytest.fixture(scope="module")
def trained():
    return train_on("shared")


def score(actor):
    """The share of the best return that the mode of an actor reaches on 64 new instances."""
    env = picking(num_envs=64, picks=2, seed=7)
    root, total = env.reset(), 0.0
    best = sum(max(worth_of(order, worth) for order in orders(2)) for worth in root["state", "worth"])
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        for _ in range(2):
            root = env.step(actor(root))["next"]
            total += float(root["reward"].sum())
    return total / best


def test_it_finds_the_best_order(trained):
    assert score(reinforce(picking(), seed=1).actor) < 0.7
    assert score(trained) > 0.9
    assert score(train_on("greedy")) > 0.9


def test_a_copy_is_replaced_by_what_is_significantly_better(trained):
    env = picking(num_envs=8)
    algorithm = reinforce(env, baseline="greedy", challenge_every=2, challenge_instances=100)
    old = {name: value.clone() for name, value in algorithm.actor.state_dict().items()}
    baseline = GreedyBaseline(algorithm.actor, algorithm.config)
    baseline.update(env)
    baseline.update(env)
    assert baseline.metrics() == {"baselines": 0}, "a policy never beats its own copy"
    algorithm.actor.load_state_dict(trained.state_dict())
    baseline.update(env)
    assert baseline.metrics() == {"baselines": 0}, "not due yet"
    baseline.update(env)
    assert baseline.metrics()["baselines"] == 1
    assert baseline.metrics()["p_value"] < 0.05
    weights = zip(baseline.frozen.parameters(), trained.parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in weights)
    algorithm.actor.load_state_dict(old)
    baseline.update(env)
    baseline.update(env)
    assert baseline.metrics()["baselines"] == 1, "a worse policy does not replace it"


@pytest.mark.parametrize("name", TOYS)
def test_steps_and_updates_wait_for_no_value_of_another_device(fake_device, name):
    env = toy(name, num_envs=4, device=fake_device)
    torch.manual_seed(0)
    actor = make_actor_critic(env.graph, env.actions, SMALL).actor
    algorithm = REINFORCE(actor, ReinforceConfig(baseline="mean"), device=fake_device)
    with torch.no_grad():
        steps, counted = play_episodes(env, algorithm.policy, env.reset(), longest=9)
    assert counted.shape == (4, 4)
    metrics = algorithm.learn(steps)
    assert metrics["policy_loss"].device == fake_device


class Endless(Picking):
    """The same, but picking never ends."""

    def advance(self, state, action):
        moved = super().advance(state, action)
        return Transition(
            {"left": state["left"], "picked": state["picked"]},
            reward=moved.reward,
            terminated=torch.zeros_like(action, dtype=torch.bool),
        )


def test_what_does_not_fit_is_refused_in_words(tmp_path, capsys):
    endless = Endless(PickingConfig(), num_envs=4, seed=0)
    with pytest.raises(ConfigError, match="1 of 1 episodes did not end within 50 steps"):
        reinforce(endless, longest_episode=50).make_collector(endless, rollout_length=1)
    team = toy("signals")
    with pytest.raises(ConfigError, match="AgentsDiscrete cannot be listed"):
        reinforce(team, first_actions="different").make_collector(team, rollout_length=1)
    one = picking(num_envs=1)
    with pytest.raises(ConfigError, match="num_envs: got 1, expected 2 or more"):
        reinforce(one).make_collector(one, rollout_length=1)
    with pytest.raises(ValueError, match="use 2 starts or more, got 1"):
        ReinforceConfig(starts=1)
    for arguments, reason in [
        (["hex", "--algorithm", "reinforce"], "a game of two players"),
        (["swarm", "--algorithm", "reinforce", "--model.recurrent", "true"], "model.recurrent"),
        (["swarm", "--algorithm", "reinforce", "--first-actions", "different"], "cannot be listed"),
    ]:
        assert main(["train", *arguments, "--dry-run"]) == 2
        assert reason in capsys.readouterr().err
    env = picking(num_envs=4)
    algorithm = reinforce(env)
    batch = algorithm.make_collector(env, rollout_length=1).collect()
    batch["next", "done"][:, -1] = False
    with pytest.raises(ValueError, match="cut off"):
        algorithm.learn(batch)
    batch["next", "done"][:, -1] = True
    with pytest.raises(ValueError, match="needs `instance`"):
        algorithm.learn(batch.exclude("instance"))


SETTINGS = {
    "training": {"total_frames": 240, "num_envs": 8, "rollout_length": 4},
    "model": {"encoder": {"hidden": 8, "heads": 2, "layers": 1}},
    "evaluation": {"every": None, "episodes": 2},
    "logging": {"tensorboard": False, "replays": 0},
    "checkpoint": {"every": 60},
}


GREEDY = {"baseline": "greedy", "challenge_every": 2, "challenge_instances": 8, "significance": 0.9}


@pytest.mark.parametrize("chosen", [{"first_actions": "different"}, GREEDY])
def test_a_run_resumes_bit_for_bit(tmp_path, chosen):
    algorithm = {"starts": 4, **chosen}
    config = load_config("graphwalk", algorithm="reinforce", keywords={**SETTINGS, "algorithm": algorithm})
    whole = start(config, folder=tmp_path / "whole")
    shutil.copytree(whole, tmp_path / "again")
    saved = checkpoint.saved(tmp_path / "again" / "checkpoints")
    assert len(saved) > 2
    for path in saved[2:]:
        shutil.rmtree(path)
    resume(tmp_path / "again")
    assert differences(whole, tmp_path / "again") == []
