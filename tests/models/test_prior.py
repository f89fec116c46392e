"""Priors: a policy with a zero correction is the rule, for choices and numbers, and its weight can fade."""

import pytest
import torch
from tests.algorithms.worlds import SMALL
from tests.envs.test_hold import TankConfig, Tanks
from tests.systems.swarm.worlds import swarm
from torch import nn

from edgewise.algorithms.config import EvolutionConfig, PPOConfig
from edgewise.algorithms.evolution import Evolution
from edgewise.algorithms.ppo import PPO
from edgewise.config.errors import ConfigError
from edgewise.envs.contract import check_graph_env
from edgewise.graphs.actions import Amount, Category, ChooseNode, Joint, PerNode
from edgewise.models.actor_critic import make_actor_critic
from edgewise.systems.swarm.baselines import BASELINES

WITH_PRIOR = SMALL.model_copy(update={"prior": 1.0})


def without_correction(env, model=WITH_PRIOR):
    """An actor whose last layers are zero, so that only the prior is left."""
    torch.manual_seed(0)
    actor = make_actor_critic(env.graph, env.actions, model).actor
    for module in actor.head.modules():
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.weight)
            nn.init.zeros_(module.bias)
    return actor


@pytest.mark.parametrize("rule", ["straight", "cautious"])
@pytest.mark.parametrize("continuous", [True, False])
def test_the_first_policy_is_the_rule(rule, continuous):
    env = swarm(num_envs=8, num_agents=(2, 4), num_obstacles=2, continuous=continuous, prior=rule)
    actor, policy, root = without_correction(env), BASELINES[rule](env), env.reset()
    for _ in range(4):
        wanted = policy(root.clone())["action"]
        active = root["agents", "active"]
        found = actor.get_dist(root).mode
        if continuous:
            assert torch.allclose(found[active], wanted[active], atol=1e-3)
        else:
            assert torch.equal(found[active], wanted[active])
        root = env.step(root.set("action", wanted))["next"].exclude("reward")


def test_swarms_with_a_prior_keep_the_contract():
    check_graph_env(swarm(num_envs=4, num_agents=(2, 4), continuous=True, prior="straight"))


def test_without_a_prior_in_the_environment_the_model_says_what_to_do():
    env = swarm(num_envs=2, num_agents=2, continuous=True)
    with pytest.raises(ConfigError, match="gives no action_prior"):
        without_correction(env).get_dist(env.reset())


class RuledConfig(TankConfig):
    prior: str = "half"
    """Rule whose action is observed."""


class Ruled(Tanks):
    """Tanks with rules of their own, given as a mapping."""

    rules = {"half": lambda env: env.half, "odd": lambda env: env.half}  # noqa: RUF012
    layout = PerNode(Amount(0.0, 1.0))

    def setup(self):
        super().setup()
        self.actions = self.layout

    def half(self, root):
        return root.set("action", torch.full((len(root), 3), 0.25))


def test_any_environment_may_name_its_rules():
    env = Ruled(RuledConfig(), num_envs=4, seed=0)
    root = env.reset()
    assert torch.equal(root["action_prior"], torch.full((4, 3), 0.25))
    assert torch.allclose(without_correction(env).get_dist(root).mode, torch.full((4, 3), 0.25), atol=1e-5)
    check_graph_env(env)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ConfigError, match="got third, which is no rule of ruled"):
        Ruled(RuledConfig(prior="third"), num_envs=4)


class Parts(Ruled):
    """An action of three parts."""

    layout = Joint(node=ChooseNode(), valve=PerNode(Category(4)), amount=Amount(-1.0, 3.0))

    def half(self, root):
        count = len(root)
        return root.set(
            "action",
            self.actions.pack(
                node=torch.full((count,), 2),
                valve=torch.tensor([[3, 0, 1]]).expand(count, 3),
                amount=torch.full((count,), 2.5),
            ),
        )

    def decide(self, state, action):
        return action["amount"].unsqueeze(-1).expand(-1, 3) / 6


def test_composed_actions_begin_as_the_rule_in_all_parts():
    env = Parts(RuledConfig(), num_envs=4, seed=0)
    root = env.reset()
    parts = env.actions.unpack(without_correction(env).get_dist(root).mode, env.graph)
    assert (parts["node"] == 2).all()
    assert (parts["valve"] == torch.tensor([3, 0, 1])).all()
    assert torch.allclose(parts["amount"], torch.tensor(2.5), atol=1e-5)
    check_graph_env(env)


def test_a_weight_fades():
    """From the rule to the middle of the range, which a zero correction alone gives."""
    env = Ruled(RuledConfig(), num_envs=4, seed=0)
    root, actor = env.reset(), without_correction(env)
    found = []
    for weight in (1.0, 0.5, 0.0):
        actor.head.set_weight_of_prior(weight)
        found.append(actor.get_dist(root).mode[0, 0].item())
    assert found[0] == pytest.approx(0.25, abs=1e-5)
    assert found[0] < found[1] < found[2] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("kind", ["ppo", "evolution"])
def test_algorithms_set_the_weight_as_scheduled(kind):
    env = Ruled(RuledConfig(), num_envs=8, seed=0)
    torch.manual_seed(0)
    model = make_actor_critic(env.graph, env.actions, WITH_PRIOR)
    algorithm = PPO(model, PPOConfig()) if kind == "ppo" else Evolution(model.actor, EvolutionConfig(pairs=2))
    assert algorithm.policy.head.weight_of_prior().item() == pytest.approx(1.0)
    algorithm.set_scalar("prior_weight", 0.25)
    assert algorithm.policy.head.weight_of_prior().item() == pytest.approx(0.25)
    other = PPO(make_actor_critic(env.graph, env.actions, WITH_PRIOR), PPOConfig(prior_weight=2.0))
    assert other.policy.head.weight_of_prior().item() == pytest.approx(2.0)


def test_a_weight_of_no_prior_is_refused():
    env = Ruled(RuledConfig(), num_envs=4, seed=0)
    algorithm = PPO(make_actor_critic(env.graph, env.actions, SMALL), PPOConfig())
    with pytest.raises(ValueError, match=r"set model\.prior"):
        algorithm.set_scalar("prior_weight", 0.5)
