"""Every kind of algorithm learns composed actions, through a run, its checkpoint and its replay."""

import numpy as np
import pytest
import torch
from tests.algorithms.allocation import AllocationEnv, EdgeAllocationEnv, EveryNodeEnv, OptionsEnv

import edgewise as ew
from edgewise.algorithms.deciders import deciders_of
from edgewise.algorithms.hybrid_sac import HybridSAC
from edgewise.algorithms.off_policy_config import SACConfig
from edgewise.config.errors import ConfigError, IllegalActionError
from edgewise.models.config import EncoderConfig, ValueConfig

ENVS = (AllocationEnv, EdgeAllocationEnv, EveryNodeEnv, OptionsEnv)
SMALL = {"model.encoder": {"hidden": 16, "layers": 1, "heads": 2}}
ON_POLICY = {"num_envs": 64, "rollout_length": 4, "minibatch_size": 64, "learning_rate": 0.001, **SMALL}
OFF_POLICY = {
    "num_envs": 16,
    "rollout_length": 4,
    "learning_starts": 256,
    "updates_per_transition": 0.15,
    "minibatch_size": 64,
    "learning_rate": 0.003,
    "epsilon": 0.05,
    **SMALL,
}


def score(run):
    return run.evaluate(episodes=200).summary()["return"].estimate


@pytest.mark.parametrize("env", ENVS, ids=lambda env: env.__name__)
def test_the_contract_is_kept(env):
    ew.check_graph_env(env())


@pytest.mark.parametrize(
    ("env", "method", "frames", "least"),
    [
        (AllocationEnv, "ppo", 16000, 0.4),
        (EdgeAllocationEnv, "ppo", 16000, 0.4),
        (EveryNodeEnv, "ppo", 12000, -0.15),
        (OptionsEnv, "ppo", 10000, 2.1),
        (AllocationEnv, "reinforce", 16000, 0.3),
        (AllocationEnv, "sac", 3000, 0.4),
        pytest.param(EdgeAllocationEnv, "sac", 8000, 0.5, marks=pytest.mark.learning),
        pytest.param(EveryNodeEnv, "sac", 6000, -0.12, marks=pytest.mark.learning),
    ],
)
def test_it_is_learned(env, method, frames, least, tmp_path):
    """Random actions get about -0.2, -0.2, -0.33 and 1.5; the best are 0.75, 0.75, 0 and 2.35."""
    settings = OFF_POLICY if method == "sac" else dict(ON_POLICY)
    if method == "reinforce":
        settings = {"num_envs": 64, "learning_rate": 0.003, **SMALL}
    run = ew.train(
        env, algorithm=method, folder=tmp_path / "run", progress=False, total_frames=frames, **settings
    )
    assert score(run) > least


def exact(env):
    """Give the neediest node its need."""

    def policy(root):
        need = root["state", "need"].masked_fill(~root["state", "exists"], -1.0)
        amount, node = need.max(-1)
        return root.set("action", env.actions.pack(node=node, amount=amount))

    return policy


BASELINES = {"exact": exact}


def test_it_is_cloned_from_a_rule(tmp_path):
    run = ew.train(
        AllocationEnv,
        algorithm="clone",
        folder=tmp_path / "run",
        progress=False,
        total_frames=6000,
        expert="tests.algorithms.test_composed:exact",
        **{name: value for name, value in ON_POLICY.items() if name != "rollout_length"},
    )
    assert score(run) > 0.5


def test_choices_that_are_not_one_are_refused_by_sac():
    env = OptionsEnv(num_envs=2)
    with pytest.raises(ConfigError, match="sums over the values of one choice"):
        HybridSAC(deciders_of(env, ValueConfig()), config=SACConfig())


def test_value_learning_is_refused_in_words(tmp_path):
    with pytest.raises(ConfigError, match="Then has no action values") as caught:
        ew.train(AllocationEnv, algorithm="dqn", folder=tmp_path / "run", progress=False)
    assert "ppo" in caught.value.hint


def test_the_soft_value_is_the_expectation_over_choices_and_numbers():
    """Against many sampled actions, each valued by itself."""
    env = AllocationEnv(num_envs=3, seed=0)
    torch.manual_seed(0)
    model = ValueConfig(encoder=EncoderConfig(hidden=16, heads=2, layers=1))
    agent = HybridSAC(deciders_of(env, model), config=SACConfig(initial_temperature=0.3))
    root, actor = env.reset(), agent.networks["actor"]
    critics = agent.networks["critics"]
    with torch.no_grad():
        found = torch.stack(
            [agent.soft_value(critics, root, agent.expand(actor(root))) for _ in range(2000)]
        ).mean(0)
        distribution = actor(root)
        values = distribution.sample_values((20000,))
        first, second = (critic(critic.embed(root), values) for critic in critics)
        log_prob = 0.0
        for part in env.actions.parts:
            of = distribution.of(part, values)
            value = values[part.name]
            log_prob = log_prob + of.log_prob(value if part.name == "node" else value.unsqueeze(-1))
        expected = (first.minimum(second) - 0.3 * log_prob).mean(0)
    torch.testing.assert_close(found, expected, rtol=0, atol=0.01)


def test_an_illegal_part_is_named():
    env = AllocationEnv(num_envs=2, seed=0, config=None)
    env.check_actions = True
    root = env.reset()
    good = env.actions.sample(root, env.graph)
    for column, value, words in (
        (0, 9.0, "got \\[9.0\\] for node; legal are 0, 1"),
        (0, 0.5, "for node"),
        (1, 1.5, "got \\[1.5\\] for amount; legal are numbers from 0 to 1"),
    ):
        wrong = good.clone()
        wrong[1, column] = value
        with pytest.raises(IllegalActionError, match=f"world 1 is illegal: .*{words}"):
            env.step(root.copy().set("action", wrong))


def test_gymnasium_sees_the_parts():
    gymnasium = pytest.importorskip("gymnasium")
    world = ew.to_gymnasium(AllocationEnv(num_envs=1, seed=0), illegal="ignore")
    assert isinstance(world.action_space, gymnasium.spaces.Dict)
    observation, info = world.reset(seed=0)
    assert world.observation_space.contains(observation)
    assert info["action_mask"]["node"].sum() >= 3
    _, reward, terminated, _, _ = world.step(world.action_space.sample())
    assert terminated
    assert np.isfinite(reward)
    worlds = ew.to_gymnasium(EveryNodeEnv(num_envs=3, seed=0))
    worlds.reset(seed=0)
    assert worlds.single_action_space == gymnasium.spaces.Box(0, 1, (5,), np.float32)
    assert worlds.step(worlds.action_space.sample())[1].shape == (3,)


def test_the_replay_marks_node_and_amount(tmp_path):
    env = AllocationEnv(num_envs=1, seed=0)
    root = env.reset()
    marks = env.actions.marks(torch.tensor([2.0, 0.25]), root[0])
    assert marks.nodes == (2,)
    assert marks.text == "node 2, amount 0.25"
    marks = EveryNodeEnv(num_envs=1).actions.marks(torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5]), root[0])
    assert marks.labels[0] == "0.1"
    edges = EdgeAllocationEnv(num_envs=1)
    assert edges.actions.marks(torch.tensor([7.0, 1.0]), edges.reset()[0]).edges == (7,)
