"""Every convolution trains in PPO through TorchRL's own Collector, and with TorchRL's own loss."""

import pytest
import torch
from torchrl.collectors import Collector
from torchrl.objectives import ClipPPOLoss

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.envs.registry import make_env
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.objectives.graph_gae import GraphGAE

CONVS = ["GATv2Conv", "TransformerConv", "GINEConv", "SAGEConv", "GENConv", "GCNConv"]

WITHOUT_GRADIENT = {"TransformerConv": "conv.lin_key.bias", "GINEConv": "conv.lin.weight"}
"""A key's bias shifts all logits of a softmax alike; edges without features feed zeros to their layer."""


def parts(conv):
    env = make_env("graphwalk", num_envs=8, seed=0, num_nodes=(4, 12))
    encoder = EncoderConfig(kind="gnn", conv=conv, hidden=16, layers=2, heads=2)
    torch.manual_seed(0)
    return env, make_actor_critic(env.graph, env.actions, ModelConfig(encoder=encoder))


def collected(env, policy, *, batches):
    frames = env.num_envs * 10
    collector = Collector(
        env,
        policy,
        frames_per_batch=frames,
        total_frames=frames * batches,
        auto_register_policy_transforms=False,
    )
    try:
        yield from collector
    finally:
        collector.shutdown()


def copies(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


@pytest.mark.parametrize("conv", CONVS)
def test_every_convolution_trains_through_the_collector(conv):
    env, actor_critic = parts(conv)
    algorithm = PPO(actor_critic, PPOConfig(epochs=2, minibatch_size=40), seed=0)
    before = copies(actor_critic)
    for batch in collected(env, algorithm.policy, batches=3):
        assert batch["action_mask"].gather(-1, batch["action"].unsqueeze(-1)).all()
        metrics = algorithm.learn(batch)
        assert all(value.isfinite() for value in metrics.values())
        assert metrics["ratio_start"] == 1.0
    pairs = zip(before, actor_critic.named_parameters(), strict=True)
    still = [name for old, (name, new) in pairs if torch.equal(old, new)]
    assert not [name for name in still if not name.endswith(WITHOUT_GRADIENT.get(conv, "none"))]


def test_torchrls_loop_trains_too():
    """Collector, GraphGAE, ClipPPOLoss and an optimiser, as in TorchRL's own examples."""
    env, actor_critic = parts("GATv2Conv")
    advantages = GraphGAE(gamma=0.99, lmbda=0.95, value_network=actor_critic.critic, average_gae=True)
    loss = ClipPPOLoss(actor_critic.actor, actor_critic.critic)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    before = copies(actor_critic)
    for batch in collected(env, actor_critic.actor, batches=2):
        terms = loss(advantages(batch).reshape(-1))
        total = terms["loss_objective"] + terms["loss_critic"] + terms["loss_entropy"]
        total.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert total.isfinite()
    assert not all(torch.equal(*pair) for pair in zip(before, actor_critic.parameters(), strict=True))
