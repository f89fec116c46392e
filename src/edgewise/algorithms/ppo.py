"""Proximal policy optimisation (https://arxiv.org/abs/1707.06347) on graphs, for one actor or many agents."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Self

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.distributions import Distribution

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.scalars import scalars, with_scalar
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.data.chunks import in_chunks
from edgewise.graphs.compile import compile_module
from edgewise.graphs.keys import ACTIVE
from edgewise.models.actor_critic import Actor, ActorCritic
from edgewise.objectives.alignment import fit, of_agents
from edgewise.objectives.average_reward import AverageReward
from edgewise.objectives.graph_gae import GraphGAE
from edgewise.objectives.masked import explained_variance, masked_mean
from edgewise.objectives.policy_gradient import (
    approximate_kl,
    clipped_share,
    clipped_surrogate,
    clipped_value_error,
    value_error,
)
from edgewise.objectives.value_norm import ValueNorm

Metrics = dict[str, Tensor]
INTERVENED = "intervened"
ROUNDING = 1e-3
"""A ratio this near to 1 before any update may be rounding; what is farther is another policy."""

_logger = logging.getLogger(__name__)


class PPO:
    """Learns an actor and a critic from rollouts.

    A sample is one step of one world with its whole graph and all its agents, so a critic that pools agents
    always sees them together; where agents remember, it is a chunk of such steps in a row. Losses are means
    over the decisions that count: those of active agents.

    Args:
        actor_critic: an actor and a critic, see `make_actor_critic`.
        config: see `PPOConfig`.
        seed: of the order of samples.
        device: where to learn.
        compile: whether to compile the loss.

    Example:
        >>> algorithm = PPO(make_actor_critic(env.graph, env.actions), PPOConfig(), seed=0)
        >>> rollout = Rollout(env, algorithm.policy, steps=32)
        >>> metrics = algorithm.learn(rollout.collect())
    """

    def __init__(
        self,
        actor_critic: ActorCritic,
        config: PPOConfig,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        compile: bool = False,
    ) -> None:
        self.config, self.device = config, torch.device(device)
        self.actor_critic = actor_critic.to(self.device)
        self.value_norm = ValueNorm(config.value_decay).to(self.device) if config.normalise_value else None
        self.average_reward = (
            AverageReward(config.average_decay).to(self.device) if config.average_reward else None
        )
        self.generator = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.Adam(
            self.actor_critic.parameters(), lr=config.learning_rate, eps=config.adam_epsilon, fused=True
        )
        # Clipped together, a critic's large early errors would shrink the actor's gradients, Adam would take
        # them for small ones, and the actor would leap as soon as the critic has settled.
        parts = (actor_critic,) if actor_critic.shared else (actor_critic.actor, actor_critic.critic)
        self._clipped_together = [list(part.parameters()) for part in parts]
        self._warned = False
        self._terms = compile_module(self._loss, enabled=compile)

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run."""
        return cls(
            setup.make_model(), setup.config, seed=setup.seed, device=setup.device, compile=setup.compile
        )

    @property
    def policy(self) -> Actor:
        """What collects: a TensorDict module that writes `action` and `action_log_prob`."""
        return self.actor_critic.actor

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Improve on a rollout `[num_envs, T]`, time last.

        Returns 0-d tensors, means over all updates. Two of them check that the policy starts as the one that
        collected, each the probability ratio farthest from 1: `ratio_start` over the last step, evaluated in
        the very shape in which it was collected, is exactly 1 unless collecting and learning differ (dropout,
        batch norm, another precision); `ratio_first` over the first minibatch, where another shape of the
        same product may round otherwise in the last bits.
        """
        batch = batch.to(self.device)
        with torch.no_grad():
            ratio_start = self._ratio_start(batch[..., -1])
            samples, explained = self._advantages(batch)
        updates: list[Metrics] = []
        for _ in range(self.config.epochs):
            updates += (epoch := [self._update(part) for part in self._minibatches(samples)])
            if self._moved_too_far(epoch):
                break
        means = {name: torch.stack([update[name] for update in updates]).mean() for name in updates[0]}
        return (
            means
            | {
                "explained_variance": explained,
                "ratio_start": ratio_start,
                "ratio_first": updates[0]["ratio"],
                "updates": torch.tensor(float(len(updates))),
            }
            | ({} if self.average_reward is None else {"average_reward": self.average_reward.mean.clone()})
        )

    def _advantages(self, batch: TensorDictBase) -> tuple[TensorDictBase, Tensor]:
        """Once per batch: what the updates need, and what the critic explained.

        Samples are single steps, `[num_envs * T]`; where agents remember, chunks, `[num_envs * T / L, L]`.
        """
        config, norm = self.config, self.value_norm
        estimate = GraphGAE(
            gamma=config.gamma,
            lmbda=config.lmbda,
            value_network=self.actor_critic.critic,
            average_gae=config.normalise_advantage,
            value_chunk_size=config.value_chunk_size,
            two_player=config.two_player,
            value_transform=None if norm is None else norm.denormalise,
            boundary_budget=config.boundary_budget,
            average_reward=self.average_reward,
        )
        batch = estimate(batch.copy())
        value, target = batch["state_value"], batch["value_target"]
        valued = of_agents(batch.get(ACTIVE, None), value, batch_dims=batch.batch_dims)
        explained = explained_variance(value if norm is None else norm.denormalise(value), target, valued)
        if norm is not None:
            norm.update(target, valued)
            batch["value_target"] = norm.normalise(target)
        written = (
            "action",
            "action_log_prob",
            "advantage",
            "value_target",
            "state_value",
            ACTIVE,
            INTERVENED,
        )
        read = (*self.actor_critic.actor.in_keys, *self.actor_critic.critic.in_keys)
        if not self.actor_critic.recurrent:
            return batch.select(*read, *written, strict=False).reshape(-1), explained
        kept = batch.select(*read, *written, ("next", "done"), strict=False)
        return in_chunks(kept, config.chunk_length), explained

    def _minibatches(self, samples: TensorDictBase) -> Iterator[TensorDictBase]:
        """Once per epoch: the samples in a new order, in parts of nearly equal size."""
        order = torch.randperm(len(samples), generator=self.generator).to(self.device)
        parts = round(samples.numel() / self.config.minibatch_size)
        for part in order.tensor_split(min(max(1, parts), len(samples))):
            yield samples[part]

    def _update(self, samples: TensorDictBase) -> Metrics:
        """Once per minibatch: one step of the optimiser."""
        config = self.config
        loss, metrics = self._terms(
            samples,
            config.clip,
            value_weight=config.value_coefficient,
            entropy_weight=config.entropy_coefficient,
        )
        self.optimizer.zero_grad()
        loss.backward()
        norms = [nn.utils.clip_grad_norm_(part, config.max_grad_norm) for part in self._clipped_together]
        self.optimizer.step()
        return {name: value.detach() for name, value in metrics.items()} | {
            "gradient_norm": torch.stack(norms).norm()
        }

    def _loss(
        self, samples: TensorDictBase, clip: float, *, value_weight: float, entropy_weight: float
    ) -> tuple[Tensor, Metrics]:
        """The loss of one minibatch and its parts; numbers that a schedule moves come as arguments."""
        distribution, value = self.actor_critic.evaluate(samples)
        log_ratio, acted = _log_ratio(distribution, samples)
        lead = samples.batch_dims
        advantage = fit(samples["advantage"], log_ratio, batch_dims=lead, name="the advantage")
        valued = of_agents(samples.get(ACTIVE, None), value, batch_dims=lead)
        policy_loss = masked_mean(clipped_surrogate(log_ratio, advantage, clip=clip), acted)
        value_loss = masked_mean(self._value_error(value, samples), valued)
        entropy = masked_mean(distribution.entropy(), acted)
        with torch.no_grad():
            metrics = {
                "policy_loss": policy_loss,
                "value_loss": value_loss,
                "entropy": entropy,
                "kl": masked_mean(approximate_kl(log_ratio), acted),
                "clipped": masked_mean(clipped_share(log_ratio, clip=clip), acted),
                "ratio": _farthest(log_ratio),
            }
        loss = policy_loss + value_weight * value_loss - entropy_weight * entropy
        return loss, metrics | {"loss": loss}

    def _value_error(self, value: Tensor, samples: TensorDictBase) -> Tensor:
        clip, delta, target = self.config.value_clip, self.config.huber_delta, samples["value_target"]
        if clip is None:
            return value_error(value, target, delta=delta)
        return clipped_value_error(value, target, old=samples["state_value"], clip=clip, delta=delta)

    def _ratio_start(self, step: TensorDictBase) -> Tensor:
        """The ratio farthest from 1 in one step of all worlds, before any update; see `learn`."""
        ratio = _farthest(_log_ratio(self.policy.get_dist(step), step)[0])
        if ratio.device.type == "cpu" and ratio > 1 + ROUNDING and not self._warned:
            self._warned = True
            _logger.warning(
                "the policy that learns is not the one that collected: a probability differs at the start "
                "by a factor of %.4g; dropout, batch norm or another precision in the actor does this",
                ratio,
            )
        return ratio

    def _moved_too_far(self, epoch: list[Metrics]) -> bool:
        """Whether the policy has left the one that collected; a GPU waits for the answer once per epoch."""
        if self.config.target_kl is None:
            return False
        return bool(torch.stack([update["kl"] for update in epoch]).mean() > self.config.target_kl)

    def scalars(self) -> dict[str, float]:
        """The numbers of the config as they stand, by name; those that are off are left out."""
        return scalars(self.config)

    def set_scalar(self, name: str, value: float) -> None:
        """Give a number of the config another value from the next `learn` on, as schedules do.

        Whole numbers are rounded to; what the config does not allow raises `ValueError`.
        """
        self.config = with_scalar(self.config, name, value, owner=self)
        for group in self.optimizer.param_groups:
            group["lr"], group["eps"] = self.config.learning_rate, self.config.adam_epsilon
        if self.value_norm is not None:
            self.value_norm.decay = self.config.value_decay
        if self.average_reward is not None:
            self.average_reward.decay = self.config.average_decay

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next `learn` depends on: nested dicts of tensors and numbers."""
        return {
            "actor_critic": module_state(self.actor_critic),
            "value_norm": None if self.value_norm is None else module_state(self.value_norm),
            "average_reward": None if self.average_reward is None else module_state(self.average_reward),
            "optimizer": optimizer_state(self.optimizer, self.actor_critic),
            "generator": self.generator.get_state(),
            "scalars": self.scalars(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue as the algorithm that gave `state` would have."""
        load_module_state(self.actor_critic, state["actor_critic"], name="actor_critic")
        load_optimizer_state(self.optimizer, self.actor_critic, state["optimizer"])
        if self.value_norm is not None:
            load_module_state(self.value_norm, state["value_norm"] or {}, name="value_norm")
        if self.average_reward is not None:
            load_module_state(self.average_reward, state["average_reward"] or {}, name="average_reward")
        self.generator.set_state(state["generator"].cpu())
        for name, value in state["scalars"].items():
            self.set_scalar(name, value)


def _log_ratio(distribution: Distribution, samples: TensorDictBase) -> tuple[Tensor, Tensor | None]:
    """New less old log-probability of what was done, zero where the policy did not act, and where it did."""
    log_ratio = distribution.log_prob(samples["action"]) - samples["action_log_prob"]
    acted = of_agents(samples.get(ACTIVE, None), log_ratio, batch_dims=samples.batch_dims)
    intervened = samples.get(INTERVENED, None)
    if intervened is not None:
        own = ~fit(intervened, log_ratio, batch_dims=samples.batch_dims, name=INTERVENED)
        acted = own if acted is None else acted & own
    return log_ratio if acted is None else log_ratio.masked_fill(~acted, 0.0), acted


def _farthest(log_ratio: Tensor) -> Tensor:
    """The ratio that is farthest from 1 up or down, as a ratio of at least 1, 0-d."""
    return log_ratio.abs().amax().exp()
