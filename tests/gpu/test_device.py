"""On a real device: every recipe learns and is evaluated, a run goes on, and numbers agree with the CPU."""

import shutil

import pytest
import torch
from torchrl.envs import ExplorationType, set_exploration_type

import edgewise as ew
from edgewise.config.errors import ConfigError, DataError
from edgewise.data.rollout import Rollout
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.plugins import environments, recipes

pytestmark = pytest.mark.gpu

SMALL = {
    "training": {"total_frames": 96, "num_envs": 4, "rollout_length": 8},
    "model": {"encoder": {"hidden": 8, "heads": 2, "layers": 1}},
    "evaluation": {"every": None, "episodes": 4},
    "logging": {"tensorboard": False},
    "checkpoint": {"every": 40},
}


@pytest.mark.parametrize("name", list(recipes()))
def test_a_recipe_learns_there(device, name):
    try:
        config = load_config(name, keywords={"device": str(device)})
        parts = Builder(config, num_envs=4, rollout_length=8, episodes=4).parts()
    except (ConfigError, DataError) as error:
        pytest.skip(f"{name} needs data that is not here: {error.message}")
    batch = parts.rollout.collect()
    assert batch.device.type == device.type
    metrics = parts.algorithm.learn(batch)
    assert all(bool(value.isfinite()) for value in metrics.values())
    assert parts.evaluate(parts.algorithm.policy).episodes >= 4


@pytest.mark.parametrize("name", list(environments()))
def test_an_environment_keeps_its_contract_there(device, name):
    try:
        env = ew.make_env(name, num_envs=4, seed=0, device=str(device))
    except (ConfigError, DataError) as error:
        pytest.skip(f"{name} needs data that is not here: {error.message}")
    ew.check_graph_env(env)


def test_a_step_and_a_decision_do_not_wait_for_the_device(device):
    if device.type != "cuda":
        pytest.skip("only CUDA reports when the host waits")
    env = ew.make_env("graphwalk", num_envs=8, seed=0, device=str(device))
    actor_critic = ew.make_actor_critic(env.graph, env.actions, ew.ModelConfig()).to(device)
    rollout = Rollout(env, actor_critic.actor, rollout_length=8)
    rollout.collect()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        rollout.collect()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_policy_decides_as_on_the_cpu(device, tmp_path):
    run = ew.train("graphwalk-ppo", folder=tmp_path / "run", progress=False, device=str(device), **SMALL)
    root = ew.make_env("graphwalk", num_envs=64, seed=3).reset()
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        here, there = (run.policy(device=name).act(root.to(name)) for name in ("cpu", str(device)))
    assert (here == there.cpu()).float().mean() > 0.95


def test_a_run_goes_on_from_its_checkpoint_and_moves_to_the_cpu(device, tmp_path):
    run = ew.train("graphwalk-ppo", folder=tmp_path / "run", progress=False, device=str(device), **SMALL)
    shutil.copytree(run.path, tmp_path / "copy")
    assert run.resume(total_frames=192, progress=False).metrics["frames"][-1] == 192
    moved = ew.open_run(tmp_path / "copy").resume(total_frames=192, device="cpu", progress=False)
    assert moved.metrics["frames"][-1] == 192
