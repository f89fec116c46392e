"""One system from import to training: what once stopped at a graph critic under vmap runs through."""

import importlib

import torch
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs.utils import check_env_specs
from torchrl.objectives import ClipPPOLoss

from edgewise.algorithms.config import SelfPlayConfig
from edgewise.algorithms.ppo import PPO
from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.objectives.graph_gae import GraphGAE
from edgewise.systems.hex.baselines import random_player
from edgewise.training.self_play.rollout import SelfPlayRollout

GATV2 = ModelConfig(encoder=EncoderConfig(kind="gnn", conv="GATv2Conv", hidden=16, layers=2))
MODULES = (
    "systems.hex.env",
    "models.actor_critic",
    "objectives.graph_gae",
    "algorithms.ppo",
    "training.self_play",
)


def worlds(count=8):
    return make_env("hex", size=(3, 4), opening_plies=1, num_envs=count, seed=0)


def test_the_whole_system_from_import_to_training():
    # 1. import
    for name in MODULES:
        importlib.import_module(f"edgewise.{name}")
    # 2. reset
    env = worlds()
    root = env.reset()
    assert root.batch_size == (8,)
    check_env_specs(worlds(2))
    # 3. step
    following = env.step(env.rand_action(root.copy()))["next"]
    assert torch.equal(following["player"], 1 - root["player"])
    # 4. model
    torch.manual_seed(0)
    model = make_actor_critic(env.graph, env.actions, GATV2)
    assert sum(parameter.numel() for parameter in model.parameters()) > 0
    # 5. forward in evaluation and in training mode
    for mode in (model.eval, model.train):
        mode()
        acted = model.critic(model.actor(root.copy()))
        assert root["action_mask"].gather(1, acted["action"].unsqueeze(-1)).all()
        assert acted["state_value"].shape == (8, 1)
    # 6. evaluation by self-play
    assert play_match(env, model.actor, model.actor, seed=0).score == 0.5
    assert 0 <= play_match(env, model.actor, random_player(env), seed=0).score <= 1
    assert model.training
    # 7. TorchRL's own components
    collector = Collector(env, model.actor, frames_per_batch=64, total_frames=64)
    batch = next(iter(collector))
    collector.shutdown()
    gae = GraphGAE(gamma=1.0, lmbda=0.95, value_network=model.critic, two_player=True)
    buffer = ReplayBuffer(storage=LazyTensorStorage(64), batch_size=16)
    buffer.extend(gae(batch).reshape(-1))
    loss = ClipPPOLoss(model.actor, model.critic)(buffer.sample())
    sum(value for name, value in loss.items() if name.startswith("loss_")).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    # 8. the mini training loop
    before = [parameter.clone() for parameter in model.parameters()]
    algorithm = PPO(model, SelfPlayConfig(epochs=1, minibatch_size=64), seed=0)
    rollout = SelfPlayRollout(worlds(), algorithm.policy, rollout_length=8, share=0.5)
    for _ in range(2):
        metrics = algorithm.learn(rollout.collect())
    assert all(torch.isfinite(value) for value in metrics.values())
    changed = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert all(changed)
