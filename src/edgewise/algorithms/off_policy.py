"""Base of the off-policy algorithms: replay buffer, update schedule, target networks and exploration."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Self, TypeVar

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torchrl.envs import ExplorationType
from torchrl.envs.utils import exploration_type

from edgewise.algorithms import recurrence
from edgewise.algorithms.algorithm import Algorithm, Metrics
from edgewise.algorithms.deciders import Deciders, deciders_of
from edgewise.algorithms.gradients import clip_grad_norm
from edgewise.algorithms.learner_policy import LearnerPolicy
from edgewise.algorithms.off_policy_config import OffPolicyConfig, SequenceConfig
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.data.demonstrations import ExpertMixture
from edgewise.data.episodes import EpisodeRollout
from edgewise.data.instance_batch import COUNTED, is_instance_batch
from edgewise.data.instance_transitions import MADE, STEPS_PER_ROW
from edgewise.data.replay_buffer import ReplayBuffer
from edgewise.data.transitions import Transitions
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.graphs.keys import STEPS
from edgewise.graphs.ragged import stored_bytes
from edgewise.objectives.masked import masked_mean
from edgewise.scale.processes.group import ALONE, Group

ConfigT = TypeVar("ConfigT", bound=OffPolicyConfig)


class OffPolicy(Algorithm, Generic[ConfigT]):
    """Off-policy learning of one policy for all deciders, from a replay buffer of transitions.

    D stands for the dimensions of an action: `[M]`, or `[M, A]` for A deciders in each of M worlds. A
    subclass builds the networks (`build`), acts (`act`) and makes one update (`update`). Updates sample
    from torch's global generator, which `learn` seeds from the algorithm's own generator.

    Args:
        deciders: who decides, on what they observe; see `deciders_of`.
        config: see `OffPolicyConfig`.
        seed: random seed of learning.
        device: device of the networks, and of the replay buffer unless it is a file.
        group: the processes that learn together; each has its share of the replay buffer and of every
            minibatch.

    Attributes:
        networks: the online networks; each child module has its own optimizer, by its name.
        targets: the target networks, a Polyak average of the online networks.
        frames: environment steps so far, counted per world.
        updates: updates so far.
    """

    takes_older_steps = True
    data_keys = ("replay_buffer", "transitions")
    rank_keys = ("generator",)

    def __init__(
        self,
        deciders: Deciders,
        *,
        config: ConfigT,
        seed: int = 0,
        device: torch.device | str = "cpu",
        group: Group = ALONE,
    ) -> None:
        self.group = group
        self.config, self.deciders, self.device = config, deciders, torch.device(device)
        self.like = torch.zeros((), device=self.device)
        self.networks = self.build(deciders).to(self.device)
        self.targets = self.build(deciders).to(self.device).requires_grad_(False)
        self.targets.load_state_dict(self.networks.state_dict())
        self.by_instance = deciders.has_instances and not deciders.recurrent and not needs_paths(config)
        self.steps_per_row = STEPS_PER_ROW if self.by_instance else 1
        if deciders.recurrent:
            self.steps_per_row = recurrence.prepare(self)
        # Cached, because iterating over a module's parameters costs as much as a small layer.
        self._parameters = {name: list(part.parameters()) for name, part in self.networks.named_children()}
        self.optimizers = {name: self._adam(name) for name in self._parameters}
        self._averaged = tuple(tuple(module.parameters()) for module in (self.networks, self.targets))
        self._copied = tuple(tuple(module.buffers()) for module in (self.networks, self.targets))
        self._policy = LearnerPolicy(self)
        self.generator = torch.Generator().manual_seed(seed)
        self._sample_size = max(1, group.part(config.minibatch_size) // self.steps_per_row)
        self.replay_buffer = ReplayBuffer(
            max(1, group.part(config.replay_size) // self.steps_per_row),
            batch_size=self._sample_size,
            device=self.device,
            storage=config.replay_storage,
            prioritised=config.prioritised,
            alpha=config.alpha,
            beta=config.beta,
            seed=self._next_seed(),
            group=group,
        )
        self._transitions = self._make_transitions(config.n_step)
        self.frames, self.updates, self._pending_updates = 0, 0, 0.0
        self.expert: Policy | None = None
        self._weight: Tensor | None = None

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run; `config.expert` names a baseline that collects too.

        Raises:
            ConfigError: the run asks for what the environment cannot give.
        """
        mixing, paths = getattr(setup.config, "mixing", "none"), needs_paths(setup.config)
        algorithm = cls(
            deciders_of(setup.env, setup.model, mixing=mixing, paths=paths),  # type: ignore[arg-type]
            config=setup.config,
            seed=setup.seed,
            device=setup.device,
            group=setup.group,
        )
        if setup.config.expert is not None:
            algorithm.expert = setup.make_baseline(setup.config.expert, field="algorithm.expert")
        return algorithm

    @abstractmethod
    def build(self, deciders: Deciders) -> nn.Module:
        """Build the networks as children of one module."""

    @abstractmethod
    def act(self, observation: TensorDictBase) -> Tensor:
        """Return the actions of the deciders, `[*D]` int64 or `[*D, dim]`.

        Called without gradients. Noise of the algorithm's own is added if `exploring()`; the base class adds
        ε-greedy exploration.
        """

    @abstractmethod
    def update(self, samples: TensorDictBase) -> tuple[Metrics, Tensor]:
        """Make one `optimizer_step` of every network on transitions `[M]`.

        Args:
            samples: `observation`, `action [*D]`, `reward [*D]`, `next_observation`, `discount [*D]` (± γᵐ,
                or 0 at a termination), `steps [M]`, `weight [*D]`, see `Transitions` and `ReplayBuffer`; and
                `counted [*D]` bool, if some deciders do not count. With a mixer, all of `[*D]` are `[M]`.

        Returns:
            0-d metrics without gradients, and the error of each decision `[*D]`, whose mean is the new
            priority.
        """

    def scores(self, observation: TensorDictBase) -> Tensor | None:  # noqa: ARG002 - for subclasses
        """Return what the greedy action of every decider maximises, `[*D, K]`; None if it is continuous."""
        return None

    def return_quantiles(self, observation: TensorDictBase) -> Tensor | None:  # noqa: ARG002 - for subclasses
        """Return evenly spaced quantiles of the return of every decider, `[*D, Q]`, ascending.

        None if the algorithm learns only mean returns.
        """
        return None

    def imitation_loss(self, samples: TensorDictBase) -> dict[str, Tensor]:
        """Compute losses that imitate `samples["action"]`, by the name of the network that they train."""
        raise NotImplementedError(
            f"{type(self).__name__} has no imitation loss: set cloning_coefficient to 0"
        )

    def learning_rate(self, part: str) -> float:  # noqa: ARG002 - for subclasses
        """Return the learning rate of the network called `part`."""
        return self.config.learning_rate

    @property
    def behaviour(self) -> Policy:
        """The behaviour policy: the learner, or a mixture of the expert and the learner."""
        if self.expert is None:
            return self.policy
        return ExpertMixture(self.expert, self.policy, expert_share=lambda: self.config.expert_share)

    def make_collector(self, env: GraphEnv[Any], *, rollout_length: int) -> EpisodeRollout | None:
        """Return what collects whole episodes, if instances are stored once."""
        if not self.by_instance:
            return None
        return EpisodeRollout(env, self.behaviour, rollout_length=rollout_length, keep_next=True)

    @property
    def policy(self) -> LearnerPolicy:
        """The policy, a TensorDict module that writes `action`."""
        return self._policy

    def explore(self, observation: TensorDictBase) -> Tensor:
        """Return the actions of `act`; while exploring, replace a share ε of them by random legal actions."""
        action = self.act(observation)
        epsilon = self.config.epsilon
        if epsilon == 0 or not exploring():
            return action
        decisions = action.shape[:-1] if action.is_floating_point() else action.shape
        at_random = torch.rand(decisions, device=action.device) < epsilon
        at_random = at_random.reshape(*decisions, *[1] * (action.ndim - len(decisions)))
        return torch.where(at_random, self.deciders.random_like(action, observation), action)

    def mean(self, loss: Tensor, samples: TensorDictBase) -> Tensor:
        """Return the weighted mean of a loss `[*D]` over the deciders that count, 0-d."""
        weighted, counted = samples["weight"] * loss, samples.get("counted", None)
        return weighted.mean() if counted is None else self.masked_mean(weighted, counted)

    def masked_mean(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return the mean of values `[*D, ...]` over those of the deciders that count, 0-d.

        It is weighted so that its mean over processes is the mean over the deciders of all of them.
        """
        mean = masked_mean(values, mask)
        return mean if self._weight is None else mean * self._weight

    def mean_counted(self, values: Tensor, samples: TensorDictBase) -> Tensor:
        """Return the plain mean of values `[*D]` or `[*D, Q]` over the deciders that count, 0-d."""
        counted = self.deciders.counted(samples["observation"])
        if counted is None or values.dim() < counted.dim():
            return values.mean()
        mask = counted.reshape(*counted.shape, *[1] * (values.dim() - counted.dim()))
        return self.masked_mean(values, mask.expand_as(values))

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Store the transitions of a rollout `[num_envs, T]` and make the due updates; once per batch.

        Returns:
            0-d tensors: `transitions` stored from this batch, `stored` in total, `updates` made, and the mean
            over updates of every metric of `update` if there were any. The counts are over all processes.
        """
        fresh = self._transitions.stored(batch.to(self.device))
        self.replay_buffer.extend(fresh)
        size = len(self.replay_buffer)
        rows = self.steps_per_row
        own = [batch.numel(), rows * len(fresh), rows * size, size < self._sample_size]
        if is_instance_batch(batch):
            own[:2] = [int(batch[STEPS, COUNTED].sum()), int(fresh[MADE].sum())]
        frames, added, stored, lacking = self.group.sum(torch.tensor(own)).tolist()
        self.frames += frames
        due = 0 if lacking else self._updates_due(added)
        with self._seeded():
            metrics = _means(self._update() for _ in range(due))
        counts = {"transitions": added, "stored": stored, "updates": due}
        return metrics | {name: torch.tensor(float(count)) for name, count in counts.items()}

    def transition_bytes(self, batch: TensorDictBase) -> int:
        """Return the size of a stored transition in bytes, from a rollout `[num_envs, T]` of any length."""
        # The size does not depend on n, unless all n steps are stored.
        make = self._make_transitions(self.config.n_step if needs_paths(self.config) else 1)
        stored = make.stored(batch.to(self.device))
        return stored_bytes(stored) // max(1, len(stored) * self.steps_per_row)

    def _make_transitions(self, steps: int) -> Transitions:
        """Build what makes transitions of `steps` steps."""
        config = self.config
        if isinstance(config, SequenceConfig) and self.deciders.recurrent:
            length, burn_in = config.chunk_length, config.burn_in
            return self.deciders.sequences(length=length, burn_in=burn_in, discount=config.gamma)
        return self.deciders.transitions(steps=steps, discount=config.gamma, paths=needs_paths(config))

    def _updates_due(self, fresh: int) -> int:
        """Return the number of updates after `fresh` new transitions; fractions are carried over."""
        if self.frames < self.config.learning_starts:
            return 0
        self._pending_updates += fresh * self.config.updates_per_transition
        due = int(self._pending_updates)
        self._pending_updates -= due
        return due

    def _update(self) -> Metrics:
        """Sample a minibatch and update networks, priorities and targets; never synchronises with a GPU."""
        samples = self._prepare(self._transitions.expand(self.replay_buffer.sample()))
        metrics, error = self.update(samples)
        if error.dim() > 1:
            counted = samples.get("counted", None)
            error = row_means(error.flatten(1), None if counted is None else counted.flatten(1))
        self.replay_buffer.update_priorities(samples["index"], error)
        if self.config.cloning_coefficient > 0:
            for part, loss in self.imitation_loss(samples).items():
                self.optimizer_step(part, self.config.cloning_coefficient * loss)
                metrics[f"cloning_{part}"] = loss.detach()
        self.updates += 1
        if self.updates % self.config.target_interval == 0:
            self._update_targets()
        return metrics

    def _prepare(self, samples: TensorDictBase) -> TensorDictBase:
        """Give reward, discount and weight the shape of the decisions, and add which deciders count."""
        counted, is_team = self.deciders.counted(samples["observation"]), self.deciders.mixing != "none"
        if self.by_instance:
            made = samples[MADE]
            counted = made if counted is None or is_team else counted & made.unsqueeze(-1)
        if self.deciders.recurrent:
            recurrence.remember(samples, self.networks, self.targets)
            counted = recurrence.learnt_from(counted, self.steps_per_row, team=is_team)
        self._weight = None if counted is None else self.group.weights(counted.sum())
        if counted is None or (is_team and self.steps_per_row == 1):
            return samples
        for name in ("reward", "discount", "weight"):
            value = samples[name]
            value = value.reshape(*value.shape, *[1] * (counted.dim() - value.dim()))
            samples.set(name, value.expand(counted.shape))
        return samples.set("counted", counted)

    def optimizer_step(self, part: str, loss: Tensor) -> Tensor:
        """Make one optimizer step of the network called `part`, with gradient clipping.

        Only this network receives gradients, whatever else the loss depends on.

        Returns:
            The norm of the gradient before clipping, 0-d.
        """
        return self.optimizer_steps({part: loss})[part]

    def optimizer_steps(self, losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Make one `optimizer_step` of several networks, by the names of their losses.

        All gradients are those of the weights before the steps, and processes exchange them at once.

        Returns:
            The norms of the gradients before clipping, 0-d each.
        """
        for part, loss in losses.items():
            for parameter in self._parameters[part]:
                parameter.grad = None
            loss.backward(inputs=self._parameters[part])
        self.group.average_gradients([each for part in losses for each in self._parameters[part]])
        norms = {part: clip_grad_norm(self._parameters[part], self.config.max_grad_norm) for part in losses}
        for part in losses:
            self.optimizers[part].step()
        return norms

    @torch.no_grad()
    def _update_targets(self) -> None:
        """Polyak-average the target networks with weight `tau`, and copy buffers."""
        online, target = self._averaged
        torch._foreach_lerp_(target, online, self.config.tau)
        for source, copy in zip(*self._copied, strict=True):
            copy.copy_(source)

    def _adam(self, part: str) -> torch.optim.Optimizer:
        parameters, epsilon = self._parameters[part], self.config.adam_epsilon
        return torch.optim.Adam(parameters, lr=self.learning_rate(part), eps=epsilon, fused=True)

    @contextmanager
    def _seeded(self) -> Iterator[None]:
        """Seed torch's global generators from the algorithm's own, and restore them afterwards."""
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(self._next_seed())
            yield

    def _next_seed(self) -> int:
        return int(torch.randint(2**62, (), generator=self.generator))

    def apply_config(self) -> None:
        """Pass changed numbers on to the optimizer."""
        self.replay_buffer.beta = self.config.beta
        for part, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = self.learning_rate(part)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next `learn` depends on; large entries of the buffer are not copied."""
        return {
            "networks": module_state(self.networks),
            "targets": module_state(self.targets),
            "optimizer": {
                name: optimizer_state(optimizer, self.networks.get_submodule(name))
                for name, optimizer in self.optimizers.items()
            },
            "replay_buffer": self.replay_buffer.state_dict(),
            "transitions": self._transitions.state_dict(),
            "generator": self.generator.get_state(),
            "counts": {
                "frames": self.frames,
                "updates": self.updates,
                "pending_updates": self._pending_updates,
            },
            "scalars": self.scalars(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next `learn` is then bit-equal to that of the saved algorithm.

        The state of a packed policy has no targets: they are then equal to the networks.
        """
        self.load_scalars(state["scalars"])
        load_module_state(self.networks, state["networks"], name="networks")
        load_module_state(self.targets, state.get("targets", state["networks"]), name="targets")
        for name, optimizer in self.optimizers.items():
            moments = state["optimizer"].get(name, {})
            load_optimizer_state(optimizer, self.networks.get_submodule(name), moments)
        if "replay_buffer" in state:
            self.replay_buffer.load_state_dict(state["replay_buffer"])
            self._transitions.load_state_dict(state["transitions"])
        self.generator.set_state(state["generator"].cpu())
        counts = state["counts"]
        self.frames, self.updates = counts["frames"], counts["updates"]
        self._pending_updates = float(counts["pending_updates"])


def needs_paths(config: OffPolicyConfig) -> bool:
    """Return whether targets read all steps of a transition, as those of Retrace do."""
    return getattr(config, "retrace", None) is not None


def exploring() -> bool:
    """Return whether the policy should explore: while collecting, but not in an evaluation."""
    return exploration_type() in (ExplorationType.RANDOM, None)


def row_means(values: Tensor, counted: Tensor | None) -> Tensor:
    """Return the means `[M]` of values `[M, A]` over the deciders that count; zero if none does."""
    if counted is None:
        return values.mean(-1)
    return values.masked_fill(~counted, 0.0).sum(-1) / counted.sum(-1).clamp(min=1)


def _means(updates: Iterator[Metrics]) -> Metrics:
    """Average each metric over updates; running sums bound the memory."""
    total: Metrics = {}
    count = 0
    for count, metrics in enumerate(updates, start=1):
        total = {name: value if count == 1 else total[name] + value for name, value in metrics.items()}
    return {name: value / count for name, value in total.items()}
