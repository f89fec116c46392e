"""Estimates the size of a run, in parameters and bytes, without training."""

from __future__ import annotations

from typing import Any

from tensordict import TensorDictBase
from torch import nn

from edgewise.algorithms.off_policy import OffPolicy
from edgewise.config.run import AnyRun
from edgewise.experiments.build import Builder
from edgewise.graphs.ragged import stored_bytes
from edgewise.scale.division import shares

WORLDS = 2
"""The smallest number of worlds that every run can have: a gate plays pairs of games."""


def sizes(config: AnyRun) -> dict[str, Any]:
    """Return the parameters of the model and the bytes of a rollout, measured on two worlds and one step."""
    small = Builder(config, num_envs=WORLDS, rollout_length=1)
    batch = small.collector.collect()
    frame = stored_bytes(batch) // batch.numel()
    training = config.training
    frames = training.num_envs * training.rollout_length
    return {
        "parameters": sum(parameter.numel() for parameter in parameters_of(small.algorithm)),
        "bytes_per_frame": frame,
        "frames_per_batch": frames,
        "bytes_per_rollout": frame * frames,
        "batches": -(-training.total_frames // frames),
        **_replay_sizes(small.algorithm, batch),
        **shares(config),
    }


def _replay_sizes(algorithm: Any, batch: TensorDictBase) -> dict[str, int]:
    """Return the bytes of a stored transition and of a full replay buffer, for algorithms that have one."""
    if not isinstance(algorithm, OffPolicy):
        return {}
    each = algorithm.transition_bytes(batch)
    return {"bytes_per_transition": each, "bytes_of_replay": each * algorithm.config.replay_size}


def parameters_of(algorithm: Any) -> list[nn.Parameter]:
    """Return every parameter that an algorithm learns, each once, without target networks."""
    modules = [value for value in vars(algorithm).values() if isinstance(value, nn.Module)]
    found = dict.fromkeys(parameter for module in modules for parameter in module.parameters())
    return [parameter for parameter in found if parameter.requires_grad]
