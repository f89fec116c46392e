"""Published weights: each network against a plain one in double precision, the verb, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file
from tensordict import TensorDict
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.cli.main import main
from edgewise.config.errors import DataError
from edgewise.experiments.build import Builder
from edgewise.experiments.imported import set_weights
from edgewise.experiments.load import load_config
from edgewise.systems.marine.published import LAYERS, read_published

WEIGHTS = Path(__file__).parents[4] / "shared" / "data" / "marine_weights"
SIZES = {
    "self_encoder.0": (56, 7),
    "object_encoder.0": (40, 5),
    "cos_embedding": (256, 64),
    "hidden_layer": (128, 256),
    "hidden_layer_2": (128, 128),
    "output_layer_mu": (2, 128),
    "output_layer_log_std": (2, 128),
}


def random_file(folder, algorithm, seed=0):
    """A file of random weights with the published names, as large as trained ones."""
    generator = torch.Generator().manual_seed(seed)
    outputs = 25 if algorithm in ("dqn", "iqn") else 2
    tensors = {}
    for layer in LAYERS[algorithm]:
        shape = SIZES.get(layer, (outputs, 128))
        tensors[f"{layer}.weight"] = torch.randn(shape, generator=generator).double() / shape[1] ** 0.5
        tensors[f"{layer}.bias"] = torch.randn(shape[0], generator=generator).double()
    path = folder / f"{algorithm.replace('-', '_')}.safetensors"
    save_file(tensors, path)
    return path, {name: value.numpy() for name, value in tensors.items()}


def layer(weights, name, inputs):
    return inputs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def relu(values):
    return np.maximum(values, 0)


def plain(algorithm, weights, own, objects, mask):
    """What the published network gives for one robot: an action, or the value of each of 25 actions."""
    seen = relu(layer(weights, "object_encoder.0", objects)) * mask[:, None]
    features = np.concatenate((relu(layer(weights, "self_encoder.0", own)), seen.reshape(-1)))
    if algorithm == "iqn":
        levels = (np.arange(32) + 0.5) / 32
        cosines = np.cos(np.pi * np.arange(64) * levels[:, None])
        features = features * relu(layer(weights, "cos_embedding", cosines))
    h = relu(layer(weights, "hidden_layer_2", relu(layer(weights, "hidden_layer", features))))
    if algorithm == "iqn":
        return layer(weights, "output_layer", h).mean(0)
    if algorithm == "dqn":
        return layer(weights, "output_layer", h)
    name = "output_layer_mu" if algorithm == "sac" else "output_layer"
    return 2 / np.pi * np.arctan(layer(weights, name, h))


def observations(count, seed=0):
    """Robots with zero to five objects, in metres, metres per second, radians and newtons."""
    generator = np.random.default_rng(seed)
    own = generator.normal(size=(count, 7)) * [15, 15, 1, 1, 0.3, 500, 500]
    objects = generator.normal(size=(count, 5, 5)) * [10, 10, 1, 1, 1]
    mask = np.arange(5) < generator.integers(0, 6, size=(count, 1))
    return own, objects * mask[..., None], mask


def agent_of(imported):
    config = imported.config
    small = config.model_copy(update={"algorithm": config.algorithm.model_copy(update={"replay_size": 64})})
    agent = Builder(small, num_envs=1).algorithm
    set_weights(agent, imported.weights)
    return agent


@pytest.mark.parametrize("algorithm", LAYERS)
@pytest.mark.parametrize("source", ["random", "published"])
def test_a_policy_acts_as_the_published_network(algorithm, source, tmp_path):
    path, weights = random_file(tmp_path, algorithm)
    if source == "published":
        path = WEIGHTS / path.name
        if not path.exists():
            pytest.skip(f"{path.name} is not here")
        weights = load_file(path)
    own, objects, mask = observations(64)
    agent = agent_of(read_published(path))
    ego = {
        "self": torch.tensor(own).float(),
        "objects": torch.tensor(objects).float(),
        "mask": torch.tensor(mask),
    }
    seen = TensorDict(ego, [len(own)])
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        found = agent.scores(seen) if algorithm in ("dqn", "iqn") else agent.act(seen)
    expected = np.stack([plain(algorithm, weights, *row) for row in zip(own, objects, mask, strict=True)])
    np.testing.assert_allclose(found.numpy(), expected, rtol=2e-4, atol=2e-4)


def test_networks_and_inputs_are_those_that_were_published(tmp_path):
    config = read_published(random_file(tmp_path, "dqn")[0]).config
    assert (config.algorithm.dueling, config.algorithm.double, config.algorithm.n_step) == (False, False, 1)
    assert (config.env.normalise, config.model.inputs, config.name) == (False, "raw", "marine-published-dqn")


def test_target_networks_get_the_weights_too(tmp_path):
    agent = agent_of(read_published(random_file(tmp_path, "dqn")[0]))
    state = agent.state_dict()
    for name, value in state["targets"].items():
        assert torch.equal(value, state["networks"][name])


@pytest.mark.thorough
def test_the_verb_writes_a_run_that_others_take(tmp_path, capsys):
    path, _ = random_file(tmp_path, "ddpg")
    run = tmp_path / "run"
    assert main(["marine", "import", str(path), "--out", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == str(run)
    assert main(["eval", str(run), "--episodes", "2", "--against", "rvo", "--measures", "success"]) == 0
    assert main(["report", str(run)]) == 0
    assert main(["verify", str(run)]) == 0
    assert main(["export", str(run), "--to", "pt2", "--out", str(tmp_path / "out")]) == 0
    assert load_config(run / "config.json").name == "marine-published-ddpg"


def broken_files(folder):
    """Files that are refused: by name, by layers, by numbers, by format; and what the message says."""
    good, _ = random_file(folder, "iqn")
    named = folder / "actor.safetensors"
    named.write_bytes(good.read_bytes())
    other = folder / "ddpg.safetensors"
    other.write_bytes(good.read_bytes())
    infinite = folder / "dqn.safetensors"
    save_file({"self_encoder.0.weight": torch.tensor([torch.inf])}, infinite)
    text = folder / "sac.safetensors"
    text.write_text("{}")
    return {
        named: "not the name of a published agent",
        other: "not the weights of ddpg: it has cos_embedding.bias",
        infinite: "expected finite real numbers",
        text: "not a safetensors file",
        folder / "ac_iqn.safetensors": "cannot be read",
    }


def test_other_files_are_refused_in_words(tmp_path, capsys):
    for path, message in broken_files(tmp_path).items():
        with pytest.raises(DataError, match=message):
            read_published(path)
        run = tmp_path / "run"
        assert main(["marine", "import", str(path), "--out", str(run)]) == 2
        assert str(path) in capsys.readouterr().err
        assert not run.exists()


def test_weights_of_another_shape_are_refused(tmp_path, capsys):
    path, weights = random_file(tmp_path, "ddpg")
    save_file({**{k: torch.tensor(v) for k, v in weights.items()}, "output_layer.bias": torch.zeros(3)}, path)
    assert main(["marine", "import", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "actor.output.bias: got shape [3], but the network has shape [2]" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("algorithm", LAYERS)
def test_a_published_agent_has_none_of_the_changes_of_its_recipe(tmp_path, algorithm):
    settings = read_published(random_file(tmp_path, algorithm)[0]).config.algorithm
    assert (settings.n_step, settings.prioritised, settings.max_grad_norm) == (1, False, 0.5)
    assert getattr(settings, "risk", "mean") == "mean"
    assert getattr(settings, "huber_delta", 1.0) == 1.0
    assert getattr(settings, "target_noise", 0.0) == 0.0
    assert getattr(settings, "quantiles", 8) == getattr(settings, "target_quantiles", 8) == 8
