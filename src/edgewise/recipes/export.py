"""Policies of robots for other programs: an exported program, plain weights, and what they expect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.export import Dim
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.algorithms.ego_policy import EgoPolicy
from edgewise.algorithms.state import module_state
from edgewise.config.errors import ConfigError
from edgewise.data.transitions import EGO
from edgewise.models.ego import EgoSpec
from edgewise.recipes.measure import Trained, load_trained

PROGRAM, WEIGHTS, CARD = "policy.pt2", "policy.safetensors", "policy.json"
TRIED = (1, 2, 17)
"""Numbers of robots on which the exported program is compared with the policy."""


@dataclass(frozen=True)
class Exported:
    """What was written, and how far the program was from the policy on what both were tried on."""

    folder: Path
    files: tuple[str, ...]
    largest_difference: float


class RobotProgram(nn.Module):
    """A policy as a function of tensors: what `M` robots see in, what they do out, without exploration.

    Args:
        policy: of a run.
    """

    def __init__(self, policy: EgoPolicy) -> None:
        super().__init__()
        self.networks, self._policy = policy.networks, [policy]

    def forward(self, own: Tensor, objects: Tensor, mask: Tensor) -> Tensor:
        """Actions `[M]` or `[M, dim]` from `own [M, 7]`, `objects [M, K, 5]` and `mask [M, K]` bool."""
        return self._policy[0].decide({"self": own, "objects": objects, "mask": mask})


def export(run: Path, folder: Path, *, which: str = "best") -> Exported:
    """Write the policy of a run as a program of `torch.export` and as safetensors, and try both.

    Args:
        run: a run folder, or a checkpoint's folder within one.
        folder: where the files go; made if absent.
        which: the `best` checkpoint or the `latest`.

    Raises:
        ConfigError: the policy does not act by what one robot sees, or the program does not do what it does.
    """
    trained = load_trained(run, which=which, device="cpu")
    if not isinstance(trained.policy, EgoPolicy):
        raise ConfigError(
            f"{run} was trained by {trained.config.recipe}, whose policy sees whole graphs",
            hint="export takes policies of single robots, such as those of the marine recipes",
        )
    spec = _spec(trained)
    program = RobotProgram(trained.policy).eval()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {folder}: {error.strerror}") from error
    robots = Dim("robots", min=1)
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        traced = torch.export.export(program, seen(spec, 3), dynamic_shapes=({0: robots},) * 3, strict=False)
        torch.export.save(traced, folder / PROGRAM)
        save_file(module_state(program.networks), folder / WEIGHTS)
        (folder / CARD).write_text(json.dumps(_card(trained, spec), indent=2) + "\n", encoding="utf-8")
        difference = _tried(program, folder, spec)
    if difference > 1e-5:
        raise ConfigError(f"{folder / PROGRAM} differs from the policy by {difference:g}: do not use it")
    return Exported(folder, (PROGRAM, WEIGHTS, CARD), difference)


def seen(spec: EgoSpec, robots: int, *, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Something for `robots` robots to see."""
    draw = torch.Generator().manual_seed(seed)
    return (
        torch.randn(robots, spec.own, generator=draw),
        torch.randn(robots, spec.slots, spec.features, generator=draw),
        torch.rand(robots, spec.slots, generator=draw) < 0.5,
    )


def _tried(program: RobotProgram, folder: Path, spec: EgoSpec) -> float:
    """The largest difference of the program on disk, and of the weights on disk, to the policy."""
    loaded = torch.export.load(folder / PROGRAM).module()
    weights, own = load_file(folder / WEIGHTS), module_state(program.networks)
    differences = [(weights[name] - value).abs().max() for name, value in own.items()]
    for robots in TRIED:
        given = seen(spec, robots, seed=robots)
        differences.append((loaded(*given).double() - program(*given).double()).abs().max())
    return float(torch.stack([difference.double() for difference in differences]).max())


def _spec(trained: Trained) -> EgoSpec:
    """How much the robots of a run see."""
    from edgewise.envs.registry import entry
    from edgewise.recipes.registry import recipe

    env = entry(recipe(trained.config.recipe).env).env_class()(trained.config.env, num_envs=1, seed=0)
    return EgoSpec.of(env.observation_spec[EGO].zero())


def _card(trained: Trained, spec: EgoSpec) -> dict[str, Any]:
    """What someone needs to know to feed the program."""
    return {
        "recipe": trained.config.recipe,
        "frames": trained.frames,
        "inputs": {
            "own": ["robots", spec.own],
            "objects": ["robots", spec.slots, spec.features],
            "mask": ["robots", spec.slots],
        },
        "env": trained.config.env.to_plain(),
        "model": trained.config.model.to_plain(),
    }
