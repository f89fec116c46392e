"""Export as part of the contract of environments: policies of every kind of encoder can be exported."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from edgewise.config.errors import ConfigError
from edgewise.experiments.export import export_policy
from edgewise.experiments.export.check import WORLDS
from edgewise.experiments.export.program import need_packages
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import BUILT_IN_ENCODERS, EncoderConfig, ModelConfig

TINY = {"hidden": 16, "heads": 2, "layers": 1}


def check_export(
    env: Any, *, model: type[ModelConfig] = ModelConfig, encoders: tuple[str, ...] = tuple(BUILT_IN_ENCODERS)
) -> None:
    """Write untrained policies of an environment as ONNX, and compare them on two sizes not traced.

    Args:
        env: an environment with `WORLDS` worlds.
        model: class of the settings of its models.
        encoders: kinds of encoders, each with the head of the environment's action layout.

    Raises:
        AssertionError: a policy cannot be exported, with its encoder and what is wrong.
        ConfigError: a package is missing.
    """
    need_packages("onnx")
    if env.num_envs != WORLDS:
        raise ValueError(f"export is checked with {WORLDS} worlds, got {env.num_envs}")
    for kind in encoders:
        torch.manual_seed(0)
        config = model(encoder=EncoderConfig(kind=kind, **TINY))
        with tempfile.TemporaryDirectory() as folder:
            try:
                actor = make_actor_critic(env.graph, env.actions, config).actor.eval()
                export_policy(actor, env, Path(folder) / "policy")
            except ConfigError as error:
                raise AssertionError(
                    f"{env.name}: a policy with the encoder {kind} cannot be exported: {error}"
                ) from error
