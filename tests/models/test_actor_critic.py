"""Actor-critics: how critics see, what is shared, how acting is steered, and other devices."""

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import ProbabilisticTensorDictModule, ProbabilisticTensorDictSequential, TensorDictModule
from tests.models.worlds import NODES, explicit_spec, observation, radius_spec
from tests.objectives.action_values import QNetwork
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import AgentsDiscrete, ChooseNode, EdgesDiscrete
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.models.distributions.masked import MaskedCategorical

ENCODER = EncoderConfig(hidden=8, heads=2, layers=1)
AGENTS = AgentsDiscrete(2, 3)


def model(layout=AGENTS, *, spec=None, **options):
    torch.manual_seed(0)
    return make_actor_critic(spec or radius_spec(), layout, ModelConfig(encoder=ENCODER, **options))


def seen(*lead, seed=0, **options):
    return observation(radius_spec(), *lead, agents=2, seed=seed, **options)


def test_exploration_type_decides_between_chance_and_mode():
    parts, states = model(policy_gain=1.0), seen(500)
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        first, second = parts.actor(states.copy())["action"], parts.actor(states.copy())["action"]
    assert torch.equal(first, second)
    assert torch.equal(first, parts.actor.get_dist(states).mode)
    for kind in (ExplorationType.RANDOM, None):
        with set_exploration_type(kind):
            assert not torch.equal(parts.actor(states.copy())["action"], parts.actor(states.copy())["action"])


def test_the_global_generator_decides_draws():
    parts, states = model(), seen(50)
    torch.manual_seed(5)
    first = parts.actor(states.copy())["action"]
    torch.manual_seed(5)
    assert torch.equal(first, parts.actor(states.copy())["action"])


def test_a_stored_action_keeps_its_log_prob_exactly():
    parts = model(policy_gain=1.0)
    states = seen(6, 4)
    with torch.no_grad():
        parts.actor(states)
    again = parts.actor.get_dist(states).log_prob(states["action"])
    assert torch.equal((again - states["action_log_prob"]).exp(), torch.ones(6, 4, 2))


@pytest.mark.parametrize("critic", ["graph", "node", "central"])
def test_critics_see_what_they_should(critic):
    """A node far from everybody changes what pools, and nothing else."""
    parts, states = model(critic=critic), seen(3)
    states["graph", "pos"][..., -1, :] = 100.0
    moved = states.clone()
    moved["graph", "x"][..., -1, :] += 1
    before, after = parts.critic(states)["state_value"], parts.critic(moved)["state_value"]
    assert before.shape == ((3, 1) if critic == "graph" else (3, 2, 1))
    assert torch.equal(before, after) == (critic == "node")


def test_an_actor_is_decentralised():
    parts, states = model(policy_gain=1.0), seen(3)
    states["graph", "pos"][..., -1, :] = 100.0
    moved = states.clone()
    moved["graph", "x"][..., -1, :] += 1
    assert torch.equal(parts.actor.get_dist(states).logits, parts.actor.get_dist(moved).logits)


def test_auto_critic_values_agents_where_they_act_and_graphs_elsewhere():
    assert model().critic(seen(3))["state_value"].shape == (3, 2, 1)
    assert model(ChooseNode()).critic(seen(3))["state_value"].shape == (3, 1)


def test_values_of_absent_agents_are_zero():
    states = seen(4)
    states["graph", "node_mask"][:, 1] = False
    for critic in ("node", "central"):
        value = model(critic=critic).critic(states.copy())["state_value"]
        assert (value[:, 1] == 0).all()
        assert (value[:, 0] != 0).all()


def test_a_critic_of_agents_needs_agents():
    with pytest.raises(ConfigError, match=r"model\.critic: node values each agent, and ChooseNode has none"):
        model(ChooseNode(), critic="node")


@pytest.mark.parametrize("shared", [False, True])
def test_trunk_is_shared_or_not_and_evaluate_is_both_at_once(shared):
    parts, states = model(shared_trunk=shared), seen(3)
    assert parts.shared == shared
    names = {name for name, _ in parts.named_parameters()}
    assert any(name.startswith("critic.encoder") for name in names) != shared
    dist, value = parts.evaluate(states)
    torch.testing.assert_close(dist.logits, parts.actor.get_dist(states).logits)
    torch.testing.assert_close(value, parts.critic(states.copy())["state_value"])


def test_weights_load_into_a_model_of_another_size():
    small, large = (
        model(),
        make_actor_critic(radius_spec(nodes=30), AgentsDiscrete(9, 3), ModelConfig(encoder=ENCODER)),
    )
    large.load_state_dict(small.state_dict())
    states = seen(3)
    torch.testing.assert_close(large.actor.get_dist(states).logits, small.actor.get_dist(states).logits)


def test_retarget_changes_the_rule_for_encoder_critic_and_head():
    parts = model(EdgesDiscrete(2))
    states = seen(20)
    crowded = parts.actor.get_dist(states).counted.sum()
    value = parts.critic(states.copy())["state_value"]
    parts.set_graph(radius_spec(radius=0.01))
    assert crowded > 0
    assert parts.actor.get_dist(states).counted.sum() == 0
    assert not torch.equal(parts.critic(states.copy())["state_value"], value)


def test_distributions_serve_tensordicts_own_probabilistic_modules():
    spec = explicit_spec()
    parts = model(ChooseNode(), spec=spec)
    states = observation(spec, 4)
    logits = TensorDictModule(
        lambda graph: parts.actor.head.score(parts.actor.encoder(graph)).squeeze(-1), ["graph"], ["logits"]
    )
    policy = ProbabilisticTensorDictSequential(
        logits,
        ProbabilisticTensorDictModule(
            ["logits"],
            ["action"],
            distribution_class=MaskedCategorical,
            return_log_prob=True,
            default_interaction_type=ExplorationType.RANDOM,
        ),
    )
    assert policy(states)["action"].shape == (4,)
    assert torch.equal(policy.get_dist(states).mode, parts.actor.get_dist(states).mode)


def test_q_network_takes_the_best_allowed_node_and_values_finished_games_zero():
    spec = explicit_spec()
    network = QNetwork(spec, ChooseNode(), ModelConfig(encoder=ENCODER))
    states = observation(spec, 3)
    states["action_mask"] = torch.rand(3, NODES) < 0.5
    states["action_mask"][0] = False
    states["action_mask"][1, 2] = True
    states["action_mask"][2, 3] = True
    network(states)
    allowed = states["action_mask"]
    values = states["action_value"][1:]
    assert (values[~allowed[1:]] < -1e30).all()
    assert allowed[1:].gather(-1, states["action"][1:].unsqueeze(-1)).all()
    torch.testing.assert_close(states["chosen_action_value"][1:, 0], values.amax(-1))
    assert states["chosen_action_value"][0] == 0


@pytest.mark.parametrize("layout", [AGENTS, ChooseNode()], ids=str)
def test_models_run_on_another_device(layout, fake_device):
    spec = radius_spec()
    parts = make_actor_critic(spec, layout, ModelConfig(encoder=ENCODER)).to(fake_device)
    graph = spec.zeros(4, device=fake_device)
    states = TensorDict({"graph": graph}, [4], device=fake_device)
    states["action_mask"] = torch.ones(
        (4, 2, 3) if layout is AGENTS else (4, NODES), dtype=torch.bool, device=fake_device
    )
    parts.actor(states)
    parts.critic(states)
    (states["action_log_prob"].sum() + states["state_value"].sum()).backward()
    assert states["action"].device == fake_device
    assert all(parameter.grad.device == fake_device for parameter in parts.parameters())
    found = parts.actor.encoder.diagnostics(states["graph"])
    assert {value.device for value in found.values()} == {fake_device}
