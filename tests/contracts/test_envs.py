"""Every registered environment keeps the contract, plays its baselines, and runs on a device of its own."""

import pytest
import torch

from edgewise.data.random_policy import RandomPolicy
from edgewise.data.rollout import Rollout
from edgewise.envs.contract import check_graph_env
from edgewise.envs.registry import make_env
from edgewise.evaluation.replays.files import check
from edgewise.plugins import environment, environments


@pytest.mark.parametrize("name", environments())
def test_the_contract_is_kept(name):
    check_graph_env(make_env(name))


@pytest.mark.parametrize("name", environments())
def test_baselines_play_only_legal_moves_into_a_replay(name):
    for baseline, factory in environment(name).load_baselines().items():
        env = make_env(name, num_envs=3, seed=1)
        policy, root = factory(env), env.reset()
        states = [root["state"][0]]
        for _ in range(4):
            root = policy(root)
            mask, action = root.get("action_mask", None), root["action"]
            if mask is not None and not action.is_floating_point():
                legal = (
                    action <= mask if action.dtype == torch.bool else mask.gather(-1, action.unsqueeze(-1))
                )
                assert legal.all(), f"{baseline} plays an illegal move"
            states.append(env.step(root)["next", "state"][0])
            root = env.step_mdp(root)
        draw = environment(name).load("replay")
        if draw is not None:
            check(draw(torch.stack(states)))


@pytest.mark.parametrize("name", environments())
def test_a_rollout_on_another_device_never_mixes_or_waits(name, fake_device):
    env = make_env(name, num_envs=3).to(fake_device)
    batch = Rollout(env, RandomPolicy(env.actions, env.graph), rollout_length=2, keep_state=True).collect()
    assert {value.device for value in batch.values(True, True)} == {fake_device}
    root = env.reset(env.reset().set("_reset", torch.ones(3, 1, dtype=torch.bool, device=fake_device)))
    assert {value.device for value in root.values(True, True)} == {fake_device}
