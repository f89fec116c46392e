"""TorchRL's estimators and losses on graphs: forward and backward, and no module harmed by a vmap."""

import logging

import pytest
import torch
from tensordict import TensorDict
from tests.objectives.action_values import ActionCritic, DeterministicActor, QNetwork
from tests.objectives.rollouts import SPEC, random_rollout
from torchrl.objectives import ClipPPOLoss, DDPGLoss, DQNLoss, SACLoss
from torchrl.objectives.multiagent import MAPPOLoss
from torchrl.objectives.value import GAE

from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete, ChooseNode
from edgewise.models import vmap_guard
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.objectives.graph_gae import GraphGAE
from edgewise.objectives.without_vmap import without_vmap

AGENTS = 2
CONVS = ["GATv2Conv", "TransformerConv", "GINEConv", "SAGEConv", "GENConv", "GCNConv"]
DISCRETE, CONTINUOUS = AgentsDiscrete(AGENTS, 3), AgentsContinuous(AGENTS, 2)
SETTINGS = {"gamma": 0.9, "lmbda": 0.8}

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def model(*, compact=False, conv="GATv2Conv"):
    encoder = EncoderConfig(kind="gnn", conv=conv, hidden=16, layers=2, heads=2, compact=compact)
    return ModelConfig(encoder=encoder)


def observed(agents=0, *, seed=0):
    """A rollout `[3, 5]` with what an environment adds to graphs: masks, or agents, some inactive."""
    rollout = random_rollout(3, 5, seed=seed, agents=agents)
    generator = torch.Generator().manual_seed(seed)
    for part in (rollout, rollout["next"]):
        if agents:
            active = torch.rand(3, 5, agents, generator=generator) < 0.8
            part["agents"] = TensorDict({"active": active, "terminated": ~active}, [3, 5])
        else:
            part["action_mask"] = part["graph", "node_mask"].clone()
    return rollout


def acted(policy, rollout):
    with torch.no_grad():
        return policy(rollout)


def clip_ppo(compact):
    parts = make_actor_critic(SPEC, ChooseNode(), model(compact=compact))
    loss = ClipPPOLoss(parts.actor, parts.critic)
    loss.make_value_estimator(**SETTINGS)
    return loss, acted(parts.actor, observed())


def mappo(compact):
    parts = make_actor_critic(SPEC, DISCRETE, model(compact=compact))
    loss = MAPPOLoss(parts.actor, parts.critic)
    loss.make_value_estimator(**SETTINGS)
    return loss, acted(parts.actor, observed(AGENTS))


def dqn(compact):
    network = QNetwork(SPEC, ChooseNode(), model(compact=compact))
    loss = DQNLoss(network, action_space="categorical", double_dqn=True, delay_value=True)
    return loss, acted(network, observed()).reshape(-1)


def with_agent_done(batch):
    """The batch with ends of agents, in the shape of their rewards, as TorchRL's losses need them."""
    following = batch["next"].copy()
    own = following["agents", "terminated"].unsqueeze(-1)
    for name in ("done", "terminated"):
        following[name] = following[name].unsqueeze(-2) | own
    return batch.copy().set("next", following)


def dqn_of_agents(compact):
    network = QNetwork(SPEC, DISCRETE, model(compact=compact))
    loss = DQNLoss(network, action_space="categorical", delay_value=True)
    return loss, with_agent_done(acted(network, observed(AGENTS))).reshape(-1)


def sac(compact):
    actor = make_actor_critic(SPEC, CONTINUOUS, model(compact=compact)).actor
    critic = ActionCritic(SPEC, CONTINUOUS, model(compact=compact))
    loss = SACLoss(actor, critic, num_qvalue_nets=2, target_entropy=-2.0)
    return loss, with_agent_done(acted(actor, observed(AGENTS))).reshape(-1)


def ddpg(compact):
    actor = make_actor_critic(SPEC, CONTINUOUS, model(compact=compact)).actor
    loss = DDPGLoss(DeterministicActor(actor), ActionCritic(SPEC, CONTINUOUS, model(compact=compact)))
    return loss, with_agent_done(acted(actor, observed(AGENTS))).reshape(-1)


LOSSES = [clip_ppo, mappo, dqn, dqn_of_agents, sac, ddpg]


def total(loss, data):
    found = loss(data.copy())
    return sum(value for name, value in found.items() if name.startswith("loss"))


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("build", LOSSES, ids=lambda build: build.__name__)
def test_every_loss_runs_forward_and_backward(build, compact):
    loss, data = build(compact)
    value = total(without_vmap(loss), data)
    value.backward()
    trained = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    assert value.isfinite()
    assert trained
    assert sum(parameter.grad.abs().sum() for parameter in trained if parameter.grad is not None) > 0
    assert all(parameter.grad.isfinite().all() for parameter in trained if parameter.grad is not None)


def test_the_estimator_of_a_loss_is_without_vmap_too():
    loss, _ = clip_ppo(False)
    assert not loss.value_estimator.deactivate_vmap
    assert without_vmap(loss).value_estimator.deactivate_vmap


@pytest.mark.parametrize("build", [dqn, dqn_of_agents, ddpg, clip_ppo, mappo], ids=lambda each: each.__name__)
def test_the_loss_is_the_same_with_vmap(build):
    loss, data = build(False)
    torch.manual_seed(1)
    expected = total(loss, data)
    torch.manual_seed(1)
    torch.testing.assert_close(total(without_vmap(loss), data), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("conv", CONVS)
def test_torchrls_estimator_agrees_with_and_without_vmap(conv):
    critic = make_actor_critic(SPEC, ChooseNode(), model(conv=conv)).critic
    rollout = observed()
    looped = without_vmap(GAE(value_network=critic, **SETTINGS))(rollout.clone())["advantage"]
    ours = GraphGAE(value_network=critic, **SETTINGS)(rollout.clone())["advantage"]
    torch.testing.assert_close(looped, ours, rtol=1e-5, atol=1e-5)
    if conv != "GCNConv":  # its degree normalisation adds in place, which vmap does not allow
        vmapped = GAE(value_network=critic, **SETTINGS)(rollout)["advantage"]
        torch.testing.assert_close(vmapped, ours, rtol=1e-5, atol=1e-5)


def test_plain_gae_with_a_compacting_critic_says_what_to_do_and_harms_nothing():
    critic, rollout = make_actor_critic(SPEC, ChooseNode(), model(compact=True)).critic, observed()
    expected = acted(critic, rollout.clone())["state_value"]
    with pytest.raises(RuntimeError, match=r"deactivate_vmap=True .* GraphGAE"):
        GAE(value_network=critic, **SETTINGS)(rollout.clone())
    assert torch.equal(acted(critic, rollout.clone())["state_value"], expected)
    without_vmap(GAE(value_network=critic, **SETTINGS))(rollout)


@pytest.mark.parametrize("build", LOSSES, ids=lambda build: build.__name__)
def test_a_loss_that_vmaps_parameters_leaves_a_compacting_network_unharmed(build, caplog):
    """TensorDict does not put parameters back after an error, so there must be none."""
    vmap_guard._warn_padded.cache_clear()
    loss, data = build(True)
    with caplog.at_level(logging.WARNING):
        torch.manual_seed(1)
        vmapped = total(loss, data)
    assert not [record for record in caplog.records if "deactivate_vmap" not in record.message]
    torch.manual_seed(1)
    torch.testing.assert_close(total(without_vmap(loss), data), vmapped, rtol=1e-4, atol=1e-5)


def test_the_warning_of_a_vmapped_estimator_in_a_loss(caplog):
    vmap_guard._warn_padded.cache_clear()
    loss, data = clip_ppo(True)
    with caplog.at_level(logging.WARNING):
        total(loss, data)
    assert "deactivate_vmap=True" in caplog.text


def test_advantages_from_graph_gae_go_straight_into_the_loss():
    parts = make_actor_critic(SPEC, ChooseNode(), model(compact=True))
    rollout = acted(parts.actor, observed())
    within = ClipPPOLoss(parts.actor, parts.critic, functional=False)
    within.make_value_estimator(GraphGAE(value_network=parts.critic, **SETTINGS))
    ready = GraphGAE(value_network=parts.critic, **SETTINGS)(rollout.clone())
    torch.testing.assert_close(total(within, ready.reshape(-1)), total(within, rollout))
