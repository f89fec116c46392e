"""State by parameter name: nothing pickled, shared weights once, and clear words where it does not fit."""

import json

import pytest
import torch
from safetensors.torch import load, save
from tests.algorithms.worlds import SETTINGS, batches, learner, toy
from torch import nn

from edgewise.algorithms.state import (
    load_module_state,
    load_optimizer_state,
    module_state,
    optimizer_state,
)
from edgewise.config.errors import CheckpointError
from edgewise.models.config import EncoderConfig, ModelConfig

SHARED = ModelConfig(encoder=EncoderConfig(hidden=16, layers=1, heads=2), shared_trunk=True)


def leaves(state, path=()):
    for key, value in state.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def test_every_leaf_is_a_tensor_or_plain_json():
    env = toy("signals")
    algorithm = learner(env, config=SETTINGS.model_copy(update={"normalise_value": True}))
    for batch in batches(env, algorithm, 1):
        algorithm.learn(batch)
    found = dict(leaves(algorithm.state_dict()))
    json.dumps({"/".join(path): value for path, value in found.items() if not torch.is_tensor(value)})
    assert ("value_norm", "mean") in found
    assert ("optimizer", "exp_avg", "actor.encoder.trunk.norm.weight") in found
    assert sum(map(torch.is_tensor, found.values())) > 20


def test_shared_weights_are_kept_once_and_go_through_safetensors():
    algorithm = learner(toy("marked"), model=SHARED)
    state = module_state(algorithm.actor_critic)
    assert any(name.startswith("actor.encoder") for name in state)
    assert not any(name.startswith("critic.encoder") for name in state)
    other = learner(toy("marked"), model=SHARED, seed=5)
    load_module_state(other.actor_critic, load(save(state)), name="model")
    assert torch.equal(
        other.actor_critic.critic.encoder.trunk.embed.mix.weight,
        algorithm.actor_critic.actor.encoder.trunk.embed.mix.weight,
    )


def test_a_saved_state_does_not_change_when_training_goes_on():
    env = toy("marked")
    algorithm = learner(env)
    state = algorithm.state_dict()
    kept = {name: value.clone() for name, value in state["actor_critic"].items()}
    for batch in batches(env, algorithm, 1):
        algorithm.learn(batch)
    assert all(torch.equal(value, kept[name]) for name, value in state["actor_critic"].items())


def test_what_does_not_fit_is_named():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    state = module_state(model)
    with pytest.raises(CheckpointError, match=r"policy lacks 0\.bias, 1\.bias, 1\.weight"):
        load_module_state(model, {"0.weight": state["0.weight"]}, name="policy")
    with pytest.raises(CheckpointError, match=r"has extra, which the model does not have"):
        load_module_state(model, state | {"extra": torch.zeros(1)}, name="policy")
    with pytest.raises(
        CheckpointError, match=r"policy\.0\.weight has shape \(3, 9\) .* \(3, 2\) in the model"
    ):
        load_module_state(model, state | {"0.weight": torch.zeros(3, 9)}, name="policy")
    optimizer = torch.optim.Adam(model.parameters())
    with pytest.raises(CheckpointError, match=r"exp_avg in the checkpoint has 7\.weight"):
        load_optimizer_state(optimizer, model, {"exp_avg": {"7.weight": torch.zeros(1)}})


def test_nothing_is_half_loaded():
    """A misfit is found before the first weight is touched."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = module_state(model)
    state = {name: value + 1 for name, value in before.items()} | {"1.bias": torch.zeros(9)}
    with pytest.raises(CheckpointError):
        load_module_state(model, state, name="policy")
    assert all(torch.equal(value, before[name]) for name, value in module_state(model).items())


def test_an_optimiser_before_its_first_step_has_no_state():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    assert optimizer_state(optimizer, model) == {}
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = optimizer_state(optimizer, model)
    assert set(state) == {"step", "exp_avg", "exp_avg_sq"}
    load_optimizer_state(optimizer, model, {})
    assert optimizer_state(optimizer, model) == {}
