"""Mistakes that swarms of graphs have been built with, each shown to be absent here.

The list with what is tested elsewhere, and what does not apply, is in docs/systems/swarm.md.
"""

import math
import re
from pathlib import Path

import pytest
import torch
from tensordict import TensorDict
from tests.systems.swarm.worlds import padded, swarm

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.swarm.config import SwarmConfig
from edgewise.systems.swarm.models.config import Remedies
from edgewise.systems.swarm.models.informarl import InforMARLTrunk
from edgewise.systems.swarm.recipes.mappo import RECIPE

MODEL = RECIPE.config.model


def model_for(env, config=MODEL):
    torch.manual_seed(0)
    return make_actor_critic(env.graph, env.actions, config)


def first_batch(env, config=MODEL, steps=5):
    algorithm = PPO(model_for(env, config), PPOConfig(epochs=1, minibatch_size=10_000))
    return algorithm, Rollout(env, algorithm.policy, rollout_length=steps).collect()


@pytest.mark.parametrize("agents", [3, 7, 20, (2, 9)])
def test_the_ratio_is_one_at_identical_weights(agents):
    algorithm, batch = first_batch(swarm(num_envs=8, num_agents=agents))
    metrics = algorithm.learn(batch)
    assert float(metrics["ratio_start"]) == 1.0
    assert float(metrics["ratio_first"]) == pytest.approx(1.0, abs=1e-5)
    assert float(metrics["clipped"]) == 0.0


@pytest.mark.parametrize("agents", [3, 20])
def test_dropout_would_show_before_anything_is_learnt(agents):
    config = MODEL.model_copy(update={"policy_gain": 3.0})
    algorithm, batch = first_batch(swarm(num_envs=8, num_agents=agents), config)
    algorithm.policy.encoder.register_forward_hook(
        lambda encoder, _, h: torch.nn.functional.dropout(h, 0.3, encoder.training)
    )
    assert float(algorithm.learn(batch)["clipped"]) > 0.0


def test_acting_and_learning_share_one_precision_and_no_dropout():
    actor_critic = model_for(swarm())
    assert {parameter.dtype for parameter in actor_critic.parameters()} == {torch.float32}
    assert not [module for module in actor_critic.modules() if isinstance(module, torch.nn.Dropout)]


def test_every_norm_is_an_object_of_its_own():
    actor_critic = model_for(swarm(), ModelConfig(encoder=EncoderConfig(layers=3)))
    norms = [module for module in actor_critic.modules() if isinstance(module, torch.nn.LayerNorm)]
    listed = [name for name in actor_critic.state_dict() if "norm" in name and name.endswith("weight")]
    assert len(norms) == len(listed)


def test_what_has_no_path_to_an_agent_cannot_change_what_it_does():
    env = swarm(num_envs=1, num_agents=4, num_obstacles=1, sensing_radius=0.5)
    root = env.reset()
    place = torch.tensor([[[0.0, 0.0], [0.3, 0.0], [9.0, 9.0], [9.2, 9.0], [0.0, 0.3]]])
    root["graph", "pos"] = place
    encoder = model_for(env).actor.encoder
    before = encoder(root["graph"])
    moved = root["graph"].clone()
    moved["pos"][:, 2:4] += 0.1
    moved["x"][:, 2:4] += 1.0
    after = encoder(moved)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2:4], after[:, 2:4])
    encoder.register_forward_hook(lambda _, inputs, h: h - h.mean(1, keepdim=True))  # over the whole graph
    assert not torch.equal(encoder(root["graph"])[:, :2], encoder(moved)[:, :2])


def test_an_agent_without_neighbours_still_sees_its_goal_and_learns():
    env = swarm(num_envs=4, num_agents=1, num_obstacles=0)
    root = env.reset()
    encoder = model_for(env).actor.encoder
    h = encoder(root["graph"])
    assert h.isfinite().all()
    assert h.std(0).max() > 0
    h.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters())


def test_the_time_limit_bootstraps_though_nobody_sees_the_time():
    env = swarm(num_envs=4, max_steps=5)
    algorithm, batch = first_batch(env)
    assert batch["next", "truncated"][:, -1].all()
    samples, _ = algorithm._advantages(batch)
    target = samples["value_target"].view(4, 5, 3)[:, -1]
    with torch.no_grad():
        following = algorithm.actor_critic.critic(batch["next"][:, -1].copy())["state_value"].squeeze(-1)
    last = batch["next", "reward"][:, -1].squeeze(-1)
    assert torch.allclose(target, last + 0.99 * following, atol=1e-4)
    assert not torch.allclose(target, last, atol=1e-3)


def test_padding_never_reaches_a_real_agent_nor_a_gradient():
    exact = swarm(num_envs=6, num_agents=3, num_obstacles=2, seed=4)
    root = exact.reset()
    roomy = swarm(num_envs=6, num_agents=3, num_obstacles=2, max_agents=9, max_obstacles=6, seed=4)
    wide = roomy.observe(TensorDict(padded(root["state"]), [6]))["graph"]
    wide = TensorDict(wide, [6])
    actor = model_for(exact).actor
    narrow_rows, wide_rows = actor.encoder(root["graph"])[:, :3], actor.encoder(wide)[:, :3]
    assert torch.allclose(narrow_rows, wide_rows, atol=1e-5)
    wide["x"].requires_grad_(True)
    actor.encoder(wide)[:, :3].sum().backward()
    assert wide["x"].grad.isfinite().all()
    assert (wide["x"].grad[:, 3:9] == 0).all()


def test_settings_say_what_they_do():
    config = SwarmConfig()
    assert (config.goal_threshold, config.goal_reward, config.collision_cost) == (0.05, 5.0, 5.0)
    assert (config.max_steps, config.sensing_radius, config.num_obstacles) == (25, 1.0, 3)
    assert RECIPE.config.algorithm.normalise_value
    assert not SwarmConfig(one_way=False).one_way


def test_the_size_of_returns_does_not_grow_with_the_team_where_asked():
    worth = {}
    for reward in ("shared", "mean", "individual"):
        for agents in (3, 30):
            env = swarm(num_envs=32, num_agents=agents, reward=reward, collision_cost=0.0)
            batch = env.rollout(5, env.rand_action)
            worth[reward, agents] = float(batch["next", "reward"].abs().mean())
    assert worth["shared", 30] / worth["shared", 3] == pytest.approx(10, rel=0.3)
    for reward in ("mean", "individual"):
        assert math.isclose(worth[reward, 30], worth[reward, 3], rel_tol=0.3)


def test_the_second_residual_acts_around_every_attention():
    torch.manual_seed(0)
    with_it, without = InforMARLTrunk(Remedies(residual=0.1)), InforMARLTrunk()
    with_it.load_state_dict(without.state_dict())
    h, distance = torch.randn(2, 5, 16), torch.rand(2, 5, 5)
    for ours, theirs in zip(with_it.layers, without.layers, strict=True):
        added = ours(h, distance, distance > 0.3)[0] - theirs(h, distance, distance > 0.3)[0]
        assert torch.allclose(added, 0.1 * h, atol=1e-6)


def test_clamped_activations_have_no_gradient_and_stay_out_of_our_encoder():
    torch.manual_seed(0)
    layer = InforMARLTrunk(Remedies(clamp=0.1)).layers[0]
    h = (10 * torch.randn(1, 4, 16)).requires_grad_()
    out = layer(h, torch.ones(1, 4, 4), torch.ones(1, 4, 4, dtype=torch.bool))[0]
    beyond = out.abs() >= 0.1
    assert beyond.any()
    out[beyond].sum().backward()
    assert (h.grad == 0).all()
    assert not {"clamp", "logit_clip"} & set(EncoderConfig.model_fields)


def test_the_list_of_traps_is_complete_and_names_tests_that_exist():
    root = Path(__file__).parents[3]
    page = (root / "docs" / "systems" / "swarm.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+(?:, \d+)*) (.*)$", page.partition("## Known traps")[2], re.MULTILINE)
    listed = [int(number) for numbers, _ in rows for number in numbers.split(", ")]
    assert listed == list(range(1, 19))
    for _, row in rows:
        named = re.findall(r"`(test_\w+\.py)`", row)
        assert named or "not applicable" in row or "command" in row
        assert all(list((root / "tests").rglob(name)) for name in named)
