"""Held actions: many steps of a world as one, against the same steps one by one."""

import pytest
import torch
from tests.algorithms.worlds import SMALL

from edgewise.algorithms.config import EvolutionConfig, PPOConfig, ReinforceConfig
from edgewise.algorithms.evolution import Evolution
from edgewise.algorithms.ppo import PPO
from edgewise.algorithms.reinforce import REINFORCE
from edgewise.config.errors import ConfigError
from edgewise.config.model import Config
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv, Transition
from edgewise.envs.contract import check_graph_env
from edgewise.graphs.actions import Amount, PerNode
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.actor_critic import make_actor_critic


class TankConfig(Config):
    hold: int | str = 4
    """Steps for which a valve stays as it is."""
    max_steps: int = 10
    """Steps of an episode."""
    ends: bool = True
    """Whether a tank that overflows ends."""


class Tanks(GraphEnv):
    """Each of three valves lets a random inflow into a tank; the reward is minus the distance to one half."""

    decided = 0

    def setup(self):
        self.graph = GraphSpec(num_nodes=3, node_features=1, edges=Explicit(num_edges=2))
        self.actions = PerNode(Amount(0.0, 1.0))

    def spawn(self, count):
        return {"level": torch.rand(count, 3, generator=self.generator, device=self.device)}

    def decide(self, state, action):
        self.decided += 1
        return action / 2

    def advance(self, state, action):
        inflow = torch.rand(state["level"].shape, generator=self.generator, device=self.device)
        level = 0.7 * state["level"] + action * inflow
        over = (level > 0.9).any(-1) if self.config.ends else torch.zeros_like(level[:, 0], dtype=torch.bool)
        return Transition({"level": level}, reward=-(level - 0.5).abs().sum(-1), terminated=over)

    def observe(self, state):
        count = len(state["level"])
        edge = torch.tensor([[0, 1], [1, 2]], device=self.device)
        return {
            "graph": {
                "x": state["level"].unsqueeze(-1),
                "node_mask": torch.ones(count, 3, dtype=torch.bool, device=self.device),
                "edge_index": edge.expand(count, 2, 2),
                "edge_mask": torch.ones(count, 2, dtype=torch.bool, device=self.device),
            }
        }


class Single(Tanks):
    """The same worlds, in which an action lasts for one step."""

    def setup(self):
        super().setup()
        self.hold = 1


def tanks(kind=Tanks, num_envs=64, seed=0, **settings):
    return kind(TankConfig(**settings), num_envs=num_envs, seed=seed)


@pytest.mark.parametrize("hold", [1, 3, 4, 10, 25, "episode"])
@pytest.mark.parametrize("ends", [True, False])
def test_a_held_action_is_the_same_action_again_and_again(hold, ends):
    """State, reward and flags are those of single steps; a world that ends stays where it ended."""
    held, single = tanks(hold=hold, ends=ends), tanks(Single, ends=ends)
    root, one = held.reset(), single.reset()
    action = torch.rand(64, 3, generator=torch.Generator().manual_seed(1))
    after = held.step(root.set("action", action))["next"]
    total = torch.zeros(64, 1)
    running = torch.ones(64, dtype=torch.bool)
    expected = None
    for _ in range(10 if hold == "episode" else min(hold, 10)):
        following = single.step(one.clone().set("action", action))["next"]
        total = total + torch.where(running.unsqueeze(-1), following["reward"], 0.0)
        expected = following if expected is None else following.where(running, expected)
        running = running & ~following["done"].squeeze(-1)
        one = following.exclude("reward")
    assert torch.allclose(after["reward"], total)
    assert torch.equal(after["done"].squeeze(-1), ~running)
    assert torch.equal(after["state", "step"], expected["state", "step"])
    assert torch.allclose(after["state", "level"], expected["state", "level"])


def test_decide_is_called_once_for_each_action():
    env = tanks(hold="episode")
    root, before = env.reset(), env.decided
    env.step(env.rand_action(root))
    assert env.decided == before + 1


def test_a_time_limit_terminates_only_where_the_action_lasts_for_the_episode():
    """A critic must not look beyond an action that was held to the end; elsewhere limits truncate."""
    for hold, name in ((4, "truncated"), ("episode", "terminated")):
        env = tanks(hold=hold, ends=False)
        last = env.rollout(3, break_when_any_done=True)["next"][:, -1]
        assert last[name].all()
        assert (last["state", "step"] == 10).all()


@pytest.mark.parametrize("hold", [2, 7, "episode"])
def test_the_contract_holds(hold):
    check_graph_env(tanks(hold=hold, num_envs=4))


@pytest.mark.parametrize("hold", [0, -1, 1.5, True, "day"])
def test_other_holds_are_refused(hold):
    class Odd(Tanks):
        def setup(self):
            super().setup()
            self.hold = hold

    with pytest.raises(ConfigError, match=r"hold is .* expected a number of steps"):
        tanks(Odd)


def test_an_episode_without_a_limit_cannot_be_held():
    class Endless(Tanks):
        def setup(self):
            super().setup()
            self.max_steps = None

    with pytest.raises(ConfigError, match="no time limit"):
        tanks(Endless, hold="episode")


def test_a_stage_may_change_how_long_actions_are_held():
    env = tanks(hold=2, ends=False)
    env.apply_stage(hold=5)
    after = env.step(env.rand_action(env.reset()))["next"]
    assert (after["state", "step"] == 5).all()


@pytest.mark.parametrize("name", ["ppo", "reinforce", "evolution"])
@pytest.mark.parametrize("hold", [5, "episode"])
def test_held_decisions_are_learnt(name, hold):
    """Valves learn the opening that keeps tanks half full: a constant one, of which rewards are sums."""
    env = tanks(hold=hold, ends=False, num_envs=128)
    torch.manual_seed(0)
    model = make_actor_critic(env.graph, env.actions, SMALL)
    if name == "ppo":
        config = PPOConfig(learning_rate=2e-3, gamma=0.5, minibatch_size=256, entropy_coefficient=0.0)
        algorithm = PPO(model, config)
    elif name == "reinforce":
        algorithm = REINFORCE(model.actor, ReinforceConfig(learning_rate=2e-3, starts=8))
    else:
        algorithm = Evolution(model.actor, EvolutionConfig(learning_rate=0.03, sigma=0.1))
    collector = algorithm.make_collector(env, rollout_length=2) or Rollout(
        env, algorithm.policy, rollout_length=2
    )
    for _ in range(30 if name == "evolution" else 45):
        algorithm.learn(collector.collect())
    fresh = tanks(hold="episode", ends=False, num_envs=256, seed=5)

    def earned(opening):
        fresh.set_seed(5)
        root = fresh.reset()
        with torch.no_grad():
            action = (
                algorithm.policy.get_dist(root).mode if opening is None else torch.full((256, 3), opening)
            )
        return fresh.step(root.set("action", action))["next", "reward"].mean().item()

    best = max(earned(opening) for opening in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8))
    assert earned(None) > best - 0.15 * abs(best)
    assert earned(0.95) < best - 0.3 * abs(best)
