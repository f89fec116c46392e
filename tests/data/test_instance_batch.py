"""Batches that store an instance once have the same steps as batches that store it in every step."""

import torch

import edgewise as ew
from edgewise.data.episodes import EpisodeRollout
from edgewise.data.instance_batch import (
    cat_instance_batches,
    graphs_of,
    is_instance_batch,
    select_steps,
    steps_of,
    with_step_values,
)
from edgewise.data.random_policy import RandomPolicy


def collected(name="cvrp", *, length=1, starts=3, **settings):
    env = ew.make_env(name, num_envs=12, seed=0, **(settings or {"num_customers": (3, 6)}))
    policy = RandomPolicy(env.actions, env.graph, seed=0)
    return EpisodeRollout(env, policy, rollout_length=length, starts=starts).collect()


def test_every_instance_is_stored_once():
    batch = collected()
    assert is_instance_batch(batch)
    assert batch.batch_size == (4,)
    assert batch["graph"].batch_size == (4,)
    assert "graph" not in batch["steps"]
    assert graphs_of(batch, None) is batch["graph"]
    assert batch["steps", "instance"].eq(torch.arange(4).unsqueeze(-1)).all()


def test_steps_are_whole_episodes_one_after_another():
    batch = collected()
    steps = steps_of(batch)
    assert steps.batch_size[0] == 1
    assert steps.numel() == batch["steps", "counted"].sum()
    assert steps["next", "done"].sum() == 12
    assert steps["next", "done"][0, -1]
    ends = steps["next", "done"].squeeze().nonzero().squeeze(-1)
    assert torch.equal(steps["instance"][0, ends], torch.arange(4).repeat_interleave(3))


def test_rounds_are_joined_with_padding_that_does_not_count():
    one = collected()
    assert cat_instance_batches([one]) is one
    batch = collected(length=12)
    assert len(batch) > 4
    assert steps_of(batch)["next", "done"].sum() == 3 * len(batch)
    assert torch.equal(batch["steps", "instance"][:, 0], torch.arange(len(batch)))


def test_computed_values_return_to_their_steps():
    batch = collected()
    flat = steps_of(batch).copy()
    flat["number"] = torch.arange(flat.numel(), dtype=torch.float32).reshape(flat.batch_size)
    found = with_step_values(batch, flat, ["number"], keys=("action",))
    counted = batch["steps", "counted"]
    assert torch.equal(found["steps", "number"][counted], flat["number"][0])
    assert not found["steps", "number"][~counted].any()
    assert torch.equal(found["steps", "agents", "active"].squeeze(-1), counted)
    assert set(found["steps"].keys()) == {"action", "number", "agents", "counted"}


def test_selected_steps_keep_their_order():
    batch = collected()
    samples = with_step_values(batch, steps_of(batch), [], keys=("action", "instance"))
    kept = torch.rand(samples["steps"].batch_size, generator=torch.Generator().manual_seed(0)) < 0.4
    found = select_steps(samples, kept)
    assert found["steps"].batch_size[1] == kept.sum(1).max()
    assert torch.equal(found["steps", "action"][found["steps", "counted"]], samples["steps", "action"][kept])
    active = found["steps", "agents", "active"].squeeze(-1)
    assert active.sum() == (kept & samples["steps", "agents", "active"].squeeze(-1)).sum()
