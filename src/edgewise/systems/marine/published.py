"""Published policies as runs: their networks, settings and weights.

The weights are those of Lin et al. (https://arxiv.org/abs/2412.09466), one file for each agent, with the
tensor names of the published programs. Observations are in metres, metres per second, radians and newtons.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from edgewise.config import sources
from edgewise.config.errors import DataError
from edgewise.experiments.imported import Imported
from edgewise.experiments.load import load_config

LARGEST = 1 << 26
"""Largest accepted size of a file, in bytes."""

ENCODER = {"self_encoder.0": "features.own", "object_encoder.0": "features.objects"}
ACTOR = {**ENCODER, "hidden_layer": "hidden.0", "hidden_layer_2": "hidden.2"}
LAYERS: Mapping[str, Mapping[str, str]] = {
    "ac-iqn": {**ACTOR, "output_layer": "output"},
    "ddpg": {**ACTOR, "output_layer": "output"},
    "sac": {**ACTOR, "output_layer_mu": "output", "output_layer_log_std": "output"},
    "dqn": {**ACTOR, "output_layer": "choices"},
    "iqn": {
        **ENCODER,
        "cos_embedding": "levels.mix",
        "hidden_layer": "first",
        "hidden_layer_2": "second",
        "output_layer": "choices",
    },
}
"""Published layers of each agent, and the layers of the networks here; two with one name are stacked."""
NETWORK = {"dqn": "network", "iqn": "network"}
"""Name of the network that acts; `actor` for the others."""

PUBLISHED: Mapping[str, Any] = {
    "n_step": 1,
    "learning_rate": 1e-4,
    "max_grad_norm": 0.5,
    "minibatch_size": 64,
    "updates_per_transition": 0.125,
    "tau": 1.0,
    "target_interval": 2500,
    "prioritised": False,
}
"""Settings that all published agents share."""
QUANTILES: Mapping[str, Any] = {"quantiles": 8, "target_quantiles": 8}
OWN: Mapping[str, Mapping[str, Any]] = {
    "ac-iqn": {"action_noise": 0.0, "target_noise": 0.0, "risk": "mean", **QUANTILES},
    "ddpg": {"action_noise": 0.0, "target_noise": 0.0, "huber_delta": 1.0},
    "sac": {"initial_temperature": 0.078},
    "dqn": {"double": False, "dueling": False, "huber_delta": 1.0},
    "iqn": {"double": False, "risk": "mean", "acting_quantiles": 32, **QUANTILES},
}
"""Settings in which one agent differs from the recipe here."""


def read_published(file: Path, *, algorithm: str | None = None) -> Imported:
    """Read the weights of a published agent.

    Args:
        file: safetensors with the published names.
        algorithm: of the agent; found from the name of the file if not given.

    Raises:
        DataError: the file cannot be read, or does not hold the layers of that agent.
    """
    name = algorithm or file.stem.lower().replace("_", "-")
    if name not in LAYERS:
        raise DataError(
            f"{file}: {name} is not the name of a published agent",
            hint=f"give one with --algorithm: {', '.join(LAYERS)}",
        )
    tensors = _read(file)
    _check_names(file, name, tensors)
    network = NETWORK.get(name, "actor")
    weights: dict[str, Tensor] = {}
    for theirs, ours in LAYERS[name].items():
        for kind in ("weight", "bias"):
            key, value = f"{network}.{ours}.{kind}", tensors[f"{theirs}.{kind}"].float()
            weights[key] = torch.cat((weights[key], value)) if key in weights else value
    return Imported(_config(name), weights)


def _config(name: str) -> Any:
    """Return the recipe's config with the published network, inputs and settings."""
    algorithm = {f"algorithm.{key}": value for key, value in {**PUBLISHED, **OWN[name]}.items()}
    keywords = {
        "name": f"marine-published-{name}",
        "env.normalise": False,
        "model.inputs": "raw",
        **algorithm,
    }
    return load_config(f"marine-{name}", keywords=keywords)


def _read(file: Path) -> dict[str, Tensor]:
    try:
        with safe_open(sources.check(file, largest=LARGEST), framework="pt") as opened:
            tensors = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from error
    except SafetensorError as error:
        raise DataError(
            f"{file}: not a safetensors file: {error}",
            hint="docs/how-to/published-weights.md shows how to make one from a traced program",
        ) from error
    for key, value in tensors.items():
        if not value.is_floating_point() or not value.isfinite().all():
            raise DataError(f"{file}: {key}: expected finite real numbers")
    return tensors


def _check_names(file: Path, algorithm: str, tensors: Mapping[str, Tensor]) -> None:
    expected = {f"{layer}.{kind}" for layer in LAYERS[algorithm] for kind in ("weight", "bias")}
    missing, foreign = sorted(expected - tensors.keys()), sorted(tensors.keys() - expected)
    if missing or foreign:
        parts = [f"has no {', '.join(missing)}"] if missing else []
        parts += [f"has {', '.join(foreign[:5])} too"] if foreign else []
        raise DataError(
            f"{file}: not the weights of {algorithm}: it {' and '.join(parts)}",
            hint="choose the agent with --algorithm",
        )
