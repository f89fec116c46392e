"""What all off-policy agents share: a replay, when to learn from it, target networks and exploration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torchrl.envs import ExplorationType
from torchrl.envs.utils import exploration_type

from edgewise.algorithms.ego_policy import EgoPolicy, idle_action
from edgewise.algorithms.off_policy_config import OffPolicyConfig
from edgewise.algorithms.scalars import scalars, with_scalar
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.config.errors import ConfigError
from edgewise.data.demonstrations import Mixture
from edgewise.data.replay_buffer import Replay
from edgewise.data.transitions import TransitionMaker, compact, expand
from edgewise.envs.base import GraphEnv
from edgewise.graphs.actions import ActionLayout, AgentsContinuous, AgentsDiscrete
from edgewise.graphs.keys import EGO
from edgewise.graphs.policy import Policy
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.config import EgoConfig

Metrics = dict[str, Tensor]
ConfigT = TypeVar("ConfigT", bound=OffPolicyConfig)


class OffPolicy(ABC, Generic[ConfigT]):
    """One policy for all robots, learnt from a replay of what each of them did.

    A subclass builds the networks, acts, and makes one update; everything else is here. Whatever an update
    draws, it draws from torch's own generator, which `learn` starts from the algorithm's own seed.

    Args:
        spec: how much a robot sees.
        actions: how robots act.
        config: see `OffPolicyConfig`.
        model: of the networks.
        seed: of everything that learning draws.
        device: where to learn, and where the replay is unless it is a file.
        compile: whether to compile losses, for subclasses that do.

    Attributes:
        networks: a module; each of its children has an optimiser of its own, by the child's name.
        targets: its slowly following copy, without gradients.
        frames: steps of single worlds so far.
        updates: updates so far.
    """

    def __init__(
        self,
        spec: EgoSpec,
        actions: ActionLayout,
        *,
        config: ConfigT,
        model: EgoConfig,
        seed: int = 0,
        device: torch.device | str = "cpu",
        compile: bool = False,
    ) -> None:
        self.config, self.actions, self.device = config, actions, torch.device(device)
        self.compile = compile
        self.networks = self.build(spec, actions, model=model).to(self.device)
        self.targets = self.build(spec, actions, model=model).to(self.device).requires_grad_(False)
        self.targets.load_state_dict(self.networks.state_dict())
        # Listed once: to look parameters up in their modules costs as much as a small layer.
        self._parameters = {name: list(part.parameters()) for name, part in self.networks.named_children()}
        self.optimizers = {name: self._adam(name) for name in self._parameters}
        self._followed = tuple(tuple(module.parameters()) for module in (self.networks, self.targets))
        self._copied = tuple(tuple(module.buffers()) for module in (self.networks, self.targets))
        self._policy = EgoPolicy(self.networks, self._choose, idle=idle_action(actions), returns=self.returns)
        self.generator = torch.Generator().manual_seed(seed)
        self.replay = Replay(
            config.replay_size,
            batch_size=config.minibatch_size,
            device=self.device,
            storage=config.replay_storage,
            prioritised=config.prioritised,
            alpha=config.alpha,
            beta=config.beta,
            seed=self._draw_seed(),
        )
        self._transitions = TransitionMaker(steps=config.n_step, discount=config.gamma)
        self.frames, self.updates, self._owed = 0, 0, 0.0
        self.expert: Policy | None = None

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run; `config.expert`, if set, names a baseline that helps to collect."""
        algorithm = cls(
            ego_spec(setup.env),
            setup.env.actions,
            config=setup.config,
            model=setup.model,  # type: ignore[arg-type]
            seed=setup.seed,
            device=setup.device,
            compile=setup.compile,
        )
        if setup.config.expert is not None:
            algorithm.expert = setup.make_baseline(setup.config.expert, field="algorithm.expert")
        return algorithm

    @property
    def behaviour(self) -> Policy:
        """The policy that collects: the learner, or it and the expert in turn."""
        if self.expert is None:
            return self.policy
        return Mixture(self.expert, self.policy, expert_share=lambda: self.config.expert_share)

    @property
    def policy(self) -> EgoPolicy:
        """What collects: a TensorDict module that writes `action`."""
        return self._policy

    @abstractmethod
    def build(self, spec: EgoSpec, actions: ActionLayout, *, model: EgoConfig) -> nn.Module:
        """The networks, as children of one module."""

    @abstractmethod
    def act(self, ego: TensorDictBase) -> Tensor:
        """What robots do that see `ego [*B]`: `[*B]` int64 or `[*B, dim]`.

        Called without gradients. `exploring()` says whether the algorithm's own noise is wanted; random
        actions of a share ε are added by the base.
        """

    @abstractmethod
    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """One step of every optimiser, by `descend`, on transitions `[M]`.

        Args:
            samples: `ego`, `action`, `reward`, `next_ego`, `discount` (already γᵐ, 0 at an end), `steps` and
                `weight`, see `agent_transitions` and `Replay`.

        Returns:
            0-d metrics without gradients, and each transition's error `[M]`, its new priority.
        """

    def returns(self, ego: TensorDictBase) -> Tensor | None:  # noqa: ARG002 - for those that know
        """Even quantiles of the return of what robots do that see `ego [M]`, `[M, Q]`, worst first.

        None from agents that learn means alone.
        """
        return None

    def imitation(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Losses that draw the policy to `samples["action"]`, each by the network that learns from it."""
        raise NotImplementedError(f"{type(self).__name__} has no cloning loss: set cloning_coefficient to 0")

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Store what robots did in a rollout `[num_envs, T]`, and make the updates that are due for it.

        Returns 0-d tensors: `transitions` stored from this batch, `stored` in all, `updates` made, and means
        over updates of whatever `update` measures; before learning starts, only the first three.
        """
        fresh = compact(self._transitions(batch.to(self.device)))
        self.replay.extend(fresh)
        self.frames += batch.numel()
        due = self._due(len(fresh))
        with self._own_randomness():
            metrics = _means(self._update() for _ in range(due))
        counts = {"transitions": len(fresh), "stored": len(self.replay), "updates": due}
        return metrics | {name: torch.tensor(float(count)) for name, count in counts.items()}

    def descend(self, part: str, loss: Tensor) -> Tensor:
        """One step of the optimiser of the network called `part`; returns the gradient's norm, 0-d.

        Only that network gets gradients, whatever else the loss runs through.
        """
        parameters = self._parameters[part]
        for parameter in parameters:
            parameter.grad = None
        loss.backward(inputs=parameters)
        norm = shorten(parameters, self.config.max_grad_norm)
        self.optimizers[part].step()
        return norm

    def _update(self) -> Metrics:
        """One update, from the draw to the new priorities; a GPU is never waited for."""
        samples = expand(self.replay.sample(), discount=self.config.gamma)
        metrics, error = self.update(samples)
        self.replay.update_priorities(samples["index"], error)
        if self.config.cloning_coefficient > 0:
            for part, loss in self.imitation(samples).items():
                self.descend(part, self.config.cloning_coefficient * loss)
                metrics[f"cloning_{part}"] = loss.detach()
        self.updates += 1
        if self.updates % self.config.target_interval == 0:
            self._move_targets()
        return metrics

    @torch.no_grad()
    def _move_targets(self) -> None:
        """Let the targets come nearer to the networks by a share `tau`."""
        here, there = self._followed
        torch._foreach_lerp_(there, here, self.config.tau)
        for own, other in zip(*self._copied, strict=True):
            other.copy_(own)

    def _due(self, fresh: int) -> int:
        """How many updates to make after `fresh` new transitions."""
        ready = self.frames >= self.config.learning_starts and len(self.replay) >= self.config.minibatch_size
        if not ready:
            return 0
        self._owed += fresh * self.config.updates_per_transition
        due = int(self._owed)
        self._owed -= due
        return due

    def _choose(self, ego: TensorDictBase) -> Tensor:
        """What the policy does, a share `epsilon` of it at random where it explores."""
        action = self.act(ego)
        epsilon = self.config.epsilon
        if epsilon == 0 or not exploring():
            return action
        at_random = torch.rand(ego.batch_size, device=action.device) < epsilon
        at_random = at_random.reshape(*at_random.shape, *[1] * (action.ndim - at_random.ndim))
        return torch.where(at_random, self._random_like(action), action)

    def _random_like(self, action: Tensor) -> Tensor:
        match self.actions:
            case AgentsDiscrete(num_actions=count):
                return torch.randint_like(action, count)
            case AgentsContinuous(low=low, high=high):
                return low + (high - low) * torch.rand_like(action)
        raise ValueError(
            f"robots act by AgentsDiscrete or AgentsContinuous, not {type(self.actions).__name__}"
        )

    def rate(self, part: str) -> float:  # noqa: ARG002 - for those whose networks differ
        """Step size of the network called `part`."""
        return self.config.learning_rate

    def _adam(self, part: str) -> torch.optim.Optimizer:
        parameters, epsilon = self._parameters[part], self.config.adam_epsilon
        return torch.optim.Adam(parameters, lr=self.rate(part), eps=epsilon, fused=True)

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """Whatever is drawn inside follows from the algorithm's own seed, and changes nothing outside."""
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(self._draw_seed())
            yield

    def _draw_seed(self) -> int:
        return int(torch.randint(2**62, (), generator=self.generator))

    def scalars(self) -> dict[str, float]:
        """The numbers of the config as they stand, by name; those that are off are left out."""
        return scalars(self.config)

    def set_scalar(self, name: str, value: float) -> None:
        """Give a number of the config another value from the next batch on, as schedules do."""
        self.config = with_scalar(self.config, name, value, owner=self)
        self.replay.beta = self.config.beta
        for part, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"], group["eps"] = self.rate(part), self.config.adam_epsilon

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next `learn` depends on; large entries of the replay are not copied."""
        return {
            "networks": module_state(self.networks),
            "targets": module_state(self.targets),
            "optimizer": {
                name: optimizer_state(optimizer, self.networks.get_submodule(name))
                for name, optimizer in self.optimizers.items()
            },
            "replay": self.replay.state_dict(),
            "transitions": self._transitions.state_dict(),
            "generator": self.generator.get_state(),
            "counts": {"frames": self.frames, "updates": self.updates, "owed": self._owed},
            "scalars": self.scalars(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue as the algorithm that gave `state` would have."""
        for name, value in state["scalars"].items():
            self.set_scalar(name, value)
        load_module_state(self.networks, state["networks"], name="networks")
        load_module_state(self.targets, state["targets"], name="targets")
        for name, optimizer in self.optimizers.items():
            moments = state["optimizer"].get(name, {})
            load_optimizer_state(optimizer, self.networks.get_submodule(name), moments)
        self.replay.load_state_dict(state["replay"])
        self._transitions.load_state_dict(state["transitions"])
        self.generator.set_state(state["generator"].cpu())
        counts = state["counts"]
        self.frames, self.updates, self._owed = counts["frames"], counts["updates"], float(counts["owed"])


def exploring() -> bool:
    """Whether a policy is to explore: where it collects, not where it is evaluated."""
    return exploration_type() in (ExplorationType.RANDOM, None)


@torch.no_grad()
def shorten(parameters: list[nn.Parameter], longest: float) -> Tensor:
    """Shorten the gradient over all `parameters` to `longest`; returns how long it was, 0-d.

    What `clip_grad_norm_` does, for parameters of one device and dtype, without sorting them by both.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    torch._foreach_mul_(gradients, (longest / (norm + 1e-6)).clamp(max=1.0))
    return norm


def _means(updates: Iterator[Metrics]) -> Metrics:
    """Means over updates of each metric; summed on the way, so that thousands of updates need no room."""
    total: Metrics = {}
    count = 0
    for count, metrics in enumerate(updates, start=1):
        total = {name: value if count == 1 else total[name] + value for name, value in metrics.items()}
    return {name: value / count for name, value in total.items()}


def ego_spec(env: GraphEnv[Any]) -> EgoSpec:
    """Return how much each agent of `env` observes by itself.

    Raises:
        ConfigError: the environment has no `agents.ego`.
    """
    seen = env.observation_spec.get(EGO, None)
    if seen is None:
        raise ConfigError(
            f"{env.name} does not say what each agent observes by itself",
            hint="use an environment with `agents.ego`",
        )
    return EgoSpec.of(seen.zero())
