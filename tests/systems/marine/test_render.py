"""Replays of runs show what a boat expects of what it does, where its agent learns distributions."""

import pytest
import torch
from tensordict import TensorDict

from edgewise.algorithms.deciders import Deciders
from edgewise.algorithms.registry import algorithm_class, algorithm_config
from edgewise.envs.registry import make_env
from edgewise.evaluation.evaluate import evaluate
from edgewise.evaluation.replays.files import check
from edgewise.experiments.replays import replay_function
from edgewise.models.agents.ego import EgoSpec
from edgewise.plugins import environment
from edgewise.systems.marine.models.config import MarineEgoConfig
from edgewise.systems.marine.render import replay


def recorded(name, *, actions):
    """An agent that has learnt nothing, its worlds, and the states of one episode."""
    env = make_env(
        "marine", num_envs=2, seed=0, num_robots=2, max_steps=6, actions=actions, graph_edges=False
    )
    torch.manual_seed(0)
    deciders = Deciders(env.actions, MarineEgoConfig(), ego=EgoSpec(), per_agent=True)
    agent = algorithm_class(name)(deciders, config=algorithm_config(name)())
    return agent, env, evaluate(env, agent.policy, episodes=2, seed=0, record=1).recordings[0]


@pytest.mark.parametrize("name, actions", [("iqn", "discrete"), ("ac-iqn", "continuous")])
def test_bars_are_the_quantiles_of_the_first_boat(name, actions):
    agent, env, states = recorded(name, actions=actions)
    shown = check(replay_function(agent.policy, env, entry=environment("marine"))(states))
    seen = env.observe(states)["agents"]["ego"]
    ego = TensorDict({key: value[:, 0] for key, value in seen.items()}, [len(states)])
    expected = agent.policy.return_quantiles(ego).reshape(len(states), 8, 4).mean(-1)
    for frame, wanted in zip(shown["frames"], expected.tolist(), strict=True):
        assert frame["expected"]["value"] == pytest.approx(wanted, abs=1e-5)
    bars = shown["layers"][-1]
    assert bars["low"] <= expected.min()
    assert bars["high"] >= expected.max()


def test_without_distributions_there_are_no_bars():
    agent, env, states = recorded("dqn", actions="discrete")
    shown = check(replay_function(agent.policy, env, entry=environment("marine"))(states))
    assert shown == check(replay(states))
    assert "expected" not in shown["frames"][0]


def test_a_boat_that_has_ended_expects_nothing():
    _, _, states = recorded("dqn", actions="discrete")
    states["active"][3:, 0] = False
    shown = check(replay(states, torch.ones(len(states), 2, 32)))
    assert [frame["expected"]["value"][0] for frame in shown["frames"]] == [1.0] * 3 + [0.0] * 4
