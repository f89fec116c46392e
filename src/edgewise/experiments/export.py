"""Writes policies of agents for other programs: an exported program, weights, and a card of its inputs."""

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
from edgewise.algorithms.world_deciders import ego_spec
from edgewise.config.errors import ConfigError
from edgewise.config.plugins import environment
from edgewise.experiments.measure import Trained, load_trained
from edgewise.models.agents.ego import EgoSpec

PROGRAM, WEIGHTS, CARD = "policy.pt2", "policy.safetensors", "policy.json"
TRIED = (1, 2, 17)
"""Numbers of agents on which the exported program is compared with the policy."""


@dataclass(frozen=True)
class Exported:
    """The files that were written, and the largest difference between program and policy."""

    folder: Path
    files: tuple[str, ...]
    largest_difference: float


class AgentProgram(nn.Module):
    """A policy as a function of tensors: observations of `M` agents to their actions, without exploration.

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
    """Write the policy of a run as a program of `torch.export` and as safetensors, and check both.

    Args:
        run: a run folder, or a checkpoint's folder within one.
        folder: for the files; created if absent.
        which: the `best` checkpoint or the `latest`.

    Raises:
        ConfigError: the policy does not act on `agents.ego`, or the program differs from it.
    """
    trained = load_trained(run, which=which, device="cpu")
    if not isinstance(trained.policy, EgoPolicy):
        raise ConfigError(
            f"{run} was trained by {trained.config.recipe}, whose policy sees whole graphs",
            hint="export takes policies that act on `agents.ego`, such as those of DQN or SAC",
        )
    spec = _spec(trained)
    program = AgentProgram(trained.policy).eval()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {folder}: {error.strerror}") from error
    agents = Dim("agents", min=1)
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        traced = torch.export.export(program, seen(spec, 3), dynamic_shapes=({0: agents},) * 3, strict=False)
        torch.export.save(traced, folder / PROGRAM)
        save_file(module_state(program.networks), folder / WEIGHTS)
        (folder / CARD).write_text(json.dumps(_card(trained, spec), indent=2) + "\n", encoding="utf-8")
        difference = _tried(program, folder, spec)
    if difference > 1e-5:
        raise ConfigError(f"{folder / PROGRAM} differs from the policy by {difference:g}: do not use it")
    return Exported(folder, (PROGRAM, WEIGHTS, CARD), difference)


def seen(spec: EgoSpec, agents: int, *, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return a random observation of `agents` agents."""
    draw = torch.Generator().manual_seed(seed)
    return (
        torch.randn(agents, spec.own, generator=draw),
        torch.randn(agents, spec.slots, spec.features, generator=draw),
        torch.rand(agents, spec.slots, generator=draw) < 0.5,
    )


def _tried(program: AgentProgram, folder: Path, spec: EgoSpec) -> float:
    """Return the largest difference between the policy and the program and weights on disk."""
    loaded = torch.export.load(folder / PROGRAM).module()
    weights, own = load_file(folder / WEIGHTS), module_state(program.networks)
    differences = [(weights[name] - value).abs().max() for name, value in own.items()]
    for agents in TRIED:
        given = seen(spec, agents, seed=agents)
        differences.append((loaded(*given).double() - program(*given).double()).abs().max())
    return float(torch.stack([difference.double() for difference in differences]).max())


def _spec(trained: Trained) -> EgoSpec:
    """Return how much each agent of a run observes."""
    config = trained.config
    env = environment(config.env_name).load("env")(config.env, num_envs=1, seed=0)
    spec = ego_spec(env)
    assert spec is not None, "a policy on `agents.ego` was trained in an environment that has it"
    return spec


def _card(trained: Trained, spec: EgoSpec) -> dict[str, Any]:
    """Return the description of the program's inputs."""
    return {
        "recipe": trained.config.recipe,
        "frames": trained.frames,
        "inputs": {
            "own": ["agents", spec.own],
            "objects": ["agents", spec.slots, spec.features],
            "mask": ["agents", spec.slots],
        },
        "env": trained.config.env.to_plain(),
        "model": trained.config.model.to_plain(),
    }
