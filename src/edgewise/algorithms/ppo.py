"""Proximal policy optimisation (https://arxiv.org/abs/1707.06347) on graphs, for one or many agents."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Self

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.algorithm import Algorithm, Metrics
from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.decisions import (
    corrected,
    log_ratio_of,
    loss_weights,
    max_ratio,
    minibatches_of,
    times,
)
from edgewise.algorithms.gradients import clip_grad_norm
from edgewise.algorithms.prior import apply_prior_weight
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.data.chunks import split_into_chunks
from edgewise.data.episodes import EpisodeRollout
from edgewise.data.instance_batch import is_instance_batch, with_step_values
from edgewise.data.intervention import INTERVENED
from edgewise.envs.base import GraphEnv
from edgewise.graphs.keys import ACTIVE, STALENESS, STEPS
from edgewise.graphs.masks import unless_all
from edgewise.models.actor_critic import Actor, ActorCritic, ValuingActor
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.models.instance_actor import InstanceActorCritic
from edgewise.objectives.alignment import expand_agent_mask, match_shape
from edgewise.objectives.average_reward import AverageReward
from edgewise.objectives.graph_gae import GraphGAE
from edgewise.objectives.instance_values import valued_steps
from edgewise.objectives.masked import explained_variance, masked_mean
from edgewise.objectives.policy_gradient import (
    approximate_kl,
    clip_fraction,
    clipped_surrogate,
    clipped_value_error,
    value_error,
)
from edgewise.objectives.value_norm import ValueNorm
from edgewise.scale.processes.group import ALONE, Group

LEARNT_FROM = ("action", "action_log_prob", "advantage", "value_target", "state_value", ACTIVE, INTERVENED)
"""What the loss reads of a sample, beside the inputs of actor and critic."""
VALUED_AT_ONCE = 16_384
"""Largest number of steps whose values are computed at once in a batch of instances."""
RATIO_TOLERANCE = 1e-3
"""Largest deviation of the ratio from 1 before the first update that is explained by rounding."""

_logger = logging.getLogger(__name__)


class PPO(Algorithm):
    """Proximal policy optimisation of an actor and a critic.

    A sample is one step of one world with its whole graph and all its agents. For recurrent models it is a
    chunk of consecutive steps. Losses are averaged over the decisions of active agents.

    Args:
        actor_critic: the actor and the critic, see `make_actor_critic`.
        config: see `PPOConfig`.
        seed: random seed of the order of samples.
        device: device of the actor and the critic.
        group: the processes that learn together, each from its share of the worlds. Statistics of a batch
            and gradients are those of all of them.

    Example:
        >>> import edgewise as ew
        >>> from edgewise.data.rollout import Rollout
        >>> from edgewise.models.actor_critic import make_actor_critic
        >>> env = ew.make_env("graphwalk", num_envs=8)
        >>> algorithm = PPO(make_actor_critic(env.graph, env.actions), PPOConfig(), seed=0)
        >>> rollout = Rollout(env, algorithm.policy, rollout_length=32)
        >>> metrics = algorithm.learn(rollout.collect())
    """

    rank_keys = ("generator",)

    def __init__(
        self,
        actor_critic: ActorCritic,
        config: PPOConfig,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        group: Group = ALONE,
    ) -> None:
        self.config, self.device, self.group = config, torch.device(device), group
        self.actor_critic = actor_critic.to(self.device)
        self.value_norm = ValueNorm().to(self.device) if config.normalise_value else None
        self.average_reward = AverageReward().to(self.device) if config.average_reward else None
        # V-trace, which corrects for older weights, is for discounted rewards of one player without memory.
        instances = isinstance(actor_critic, InstanceActorCritic)
        self.takes_older_steps = not (
            config.two_player or config.average_reward or actor_critic.recurrent or instances
        )
        self.generator = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.Adam(
            self.actor_critic.parameters(), lr=config.learning_rate, eps=config.adam_epsilon, fused=True
        )
        apply_prior_weight(self.actor_critic.actor, config.prior_weight)
        # Actor and critic are clipped separately. Otherwise the large early gradients of the critic would
        # scale down those of the actor, and Adam would make too large steps once the critic has converged.
        parts = (actor_critic,) if actor_critic.shared else (actor_critic.actor, actor_critic.critic)
        self._clip_groups = [list(part.parameters()) for part in parts]
        own_model = isinstance(actor_critic, ActorCritic)
        self._valuing_actor = actor_critic.valuing_actor() if own_model else None
        self._warned = False

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run."""
        return cls(setup.make_model(), setup.config, seed=setup.seed, device=setup.device, group=setup.group)

    @property
    def policy(self) -> Actor:
        """The policy, a TensorDict module that writes `action` and `action_log_prob`."""
        return self.actor_critic.actor

    @property
    def behaviour(self) -> Actor | ValuingActor:
        """The policy to collect with; it also writes `state_value` if that costs no further encoder pass.

        `learn` then does not compute these values again, unless newer weights learn than collected.
        """
        return self.policy if self._valuing_actor is None else self._valuing_actor

    @property
    def acting_module(self) -> nn.Module:
        """The module with all weights that `behaviour` depends on."""
        return self.behaviour

    def make_collector(self, env: GraphEnv[Any], *, rollout_length: int) -> EpisodeRollout | None:
        """Return what collects whole episodes, if the environment describes an instance once."""
        if env.graph.step is None:
            return None
        return EpisodeRollout(env, self.policy, rollout_length=rollout_length, keep_next=True)

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Update actor and critic on a rollout `[num_envs, T]`, time last; once per batch.

        Returns:
            0-d tensors, means over all updates. Two of them are the largest probability ratio before any
            update, as a check that the behaviour policy is the policy that learns. `ratio_start` is over the
            last step, evaluated with the batch shape of the collection: exactly 1 unless collecting and
            learning differ (dropout, batch norm, another precision). `ratio_first` is over the first
            minibatch, where another batch shape may change the rounding.

            If the batch has `staleness`, older weights may have made it. V-trace then corrects advantages and
            value targets, and the ratio is to the weights before the first update instead of those that
            collected. `importance` and its kin are the ratios between these two.
        """
        batch, size = batch.to(self.device), self.config.minibatch_size
        with torch.no_grad():
            batch, importance = corrected(batch, self.policy, minibatch_size=size, group=self.group)
            ratio_start = self._ratio_start(batch if is_instance_batch(batch) else batch[..., -1])
            samples, explained = self._advantages(batch)
            if self.config.epochs > 1 and not is_instance_batch(samples):
                samples = self._with_edges(samples)
        updates: list[Metrics] = []
        for _ in range(self.config.epochs):
            updates += (epoch := [self._update(minibatch) for minibatch in self._minibatches(samples)])
            if self._exceeds_target_kl(epoch):
                break
        values = {name: torch.stack([update[name] for update in updates]) for name in updates[0]}
        values["ratio"] = self.group.max(values["ratio"])
        return (
            {name: value.mean() for name, value in values.items()}
            | importance
            | {
                "explained_variance": explained,
                "ratio_start": self.group.max(ratio_start),
                "ratio_first": values["ratio"][0],
                "updates": torch.tensor(float(len(updates))),
            }
            | ({} if self.average_reward is None else {"average_reward": self.average_reward.mean.clone()})
        )

    def _ratio_start(self, step: TensorDictBase) -> Tensor:
        """Return the largest ratio over one step of all worlds, before any update; see `learn`."""
        if is_instance_batch(step):
            step = step[: max(1, self.config.minibatch_size // step[STEPS].batch_size[1])]
        ratio = max_ratio(log_ratio_of(self.policy.get_dist(step), step.get(STEPS, step))[0])
        if ratio.device.type == "cpu" and ratio > 1 + RATIO_TOLERANCE and not self._warned:
            self._warned = True
            _logger.warning(
                "the probabilities of collected actions differ by a factor of up to %.4g before the first "
                "update; possible causes are dropout, batch norm or another precision in the actor",
                ratio,
            )
        return ratio

    def _advantages(self, batch: TensorDictBase) -> tuple[TensorDictBase, Tensor]:
        """Compute advantages and value targets of a batch, and the critic's explained variance.

        Returns:
            Samples `[num_envs * T]`, chunks `[num_envs * T / L, L]` for recurrent models, or instances `[I]`
            with their steps; and the explained variance, 0-d.
        """
        config, norm, critic = self.config, self.value_norm, self.actor_critic.critic
        collected, has_instances = batch, is_instance_batch(batch)
        if has_instances:
            batch = valued_steps(batch, critic, steps_at_once=VALUED_AT_ONCE)
        estimate = GraphGAE(
            gamma=config.gamma,
            lmbda=config.lmbda,
            value_network=None if has_instances else critic,
            average_gae=True,
            value_chunk_size=config.value_chunk_size,
            two_player=config.two_player,
            value_transform=None if norm is None else norm.denormalise,
            boundary_budget=config.boundary_budget,
            reuse_values=self._has_values(batch),
            average_reward=self.average_reward,
            group=self.group,
        )
        batch = estimate(batch.copy())
        value, target = batch["state_value"], batch["value_target"]
        value_mask = expand_agent_mask(batch.get(ACTIVE, None), value, batch_dims=batch.batch_dims)
        predicted = value if norm is None else norm.denormalise(value)
        explained = explained_variance(predicted, target, value_mask, group=self.group)
        if norm is not None:
            norm.update(target, value_mask, group=self.group)
            batch["value_target"] = norm.normalise(target)
        read = (*self.actor_critic.actor.in_keys, *critic.in_keys)
        if has_instances:
            computed = ("advantage", "value_target", "state_value")
            return with_step_values(collected, batch, computed, keys=(*read, *LEARNT_FROM)), explained
        if not self.actor_critic.recurrent:
            return batch.select(*read, *LEARNT_FROM, strict=False).reshape(-1), explained
        kept = batch.select(*read, *LEARNT_FROM, ("next", "done"), strict=False)
        return split_into_chunks(kept, config.chunk_length), explained

    def _with_edges(self, samples: TensorDictBase) -> TensorDictBase:
        """Find edges once, if actor and critic have them in common."""
        actor, critic = (getattr(each, "encoder", None) for each in (self.policy, self.actor_critic.critic))
        if not isinstance(actor, GraphEncoder) or not isinstance(critic, GraphEncoder):
            return samples
        return actor.with_edges(samples) if actor.graph.edges == critic.graph.edges else samples

    def _has_values(self, batch: TensorDictBase) -> bool:
        """Return whether `behaviour` has written values with the weights that learn now."""
        written = batch.get("state_value", None) is not None and batch.get(STALENESS, None) is None
        return written and self._valuing_actor is not None

    def _minibatches(self, samples: TensorDictBase) -> Iterator[TensorDictBase]:
        """Shuffle the samples and split them into minibatches of nearly equal size; once per epoch.

        Every process splits its own samples into as many parts, one of each minibatch.
        """
        order = torch.randperm(len(samples), generator=self.generator).to(self.device, non_blocking=True)
        count = round(samples.get(STEPS, samples).numel() * self.group.size / self.config.minibatch_size)
        parts = order.tensor_split(min(max(1, count), len(samples)))
        return minibatches_of(samples, parts, group=self.group)

    def _loss(self, samples: TensorDictBase) -> tuple[Tensor, Metrics]:
        """Compute the PPO loss of a minibatch and its metrics."""
        distribution, value = self.actor_critic.evaluate(samples)
        of_policy, of_value = loss_weights(samples)
        samples = samples.get(STEPS, samples)
        config, lead = self.config, samples.batch_dims
        value_error = self._value_error(value, samples)
        log_ratio, action_mask = log_ratio_of(distribution, samples)
        advantage = match_shape(samples["advantage"], log_ratio, batch_dims=lead, name="the advantage")
        value_mask = unless_all(expand_agent_mask(samples.get(ACTIVE, None), value, batch_dims=lead))
        surrogate = clipped_surrogate(log_ratio, advantage, clip=config.clip)
        policy_loss = times(of_policy, masked_mean(surrogate, action_mask))
        value_loss = times(of_value, masked_mean(value_error, value_mask))
        with torch.set_grad_enabled(config.entropy_coefficient != 0):
            entropy = times(of_policy, masked_mean(distribution.entropy(), action_mask))
        loss = policy_loss + config.value_coefficient * value_loss - config.entropy_coefficient * entropy
        with torch.no_grad():
            clipped = clip_fraction(log_ratio, clip=config.clip)
            metrics = {
                "policy_loss": policy_loss,
                "value_loss": value_loss,
                "entropy": entropy,
                "kl": times(of_policy, masked_mean(approximate_kl(log_ratio), action_mask)),
                "clipped": times(of_policy, masked_mean(clipped, action_mask)),
                "ratio": max_ratio(log_ratio),
                "loss": loss,
            }
        return loss, metrics

    def _value_error(self, value: Tensor, samples: TensorDictBase) -> Tensor:
        clip, delta, target = self.config.value_clip, self.config.huber_delta, samples["value_target"]
        if clip is None:
            return value_error(value, target, delta=delta)
        return clipped_value_error(value, target, old=samples["state_value"], clip=clip, delta=delta)

    def _update(self, samples: TensorDictBase) -> Metrics:
        """Make one optimizer step; once per minibatch."""
        loss, metrics = self._loss(samples)
        self.optimizer.zero_grad()
        loss.backward()
        self.group.average_gradients(self.actor_critic.parameters())
        norms = [clip_grad_norm(part, self.config.max_grad_norm) for part in self._clip_groups]
        self.optimizer.step()
        return {name: value.detach() for name, value in metrics.items()} | {
            "gradient_norm": torch.stack(norms).norm()
        }

    def _exceeds_target_kl(self, epoch: list[Metrics]) -> bool:
        """Return whether the mean KL of an epoch exceeds `target_kl`; synchronises a GPU once per epoch."""
        if self.config.target_kl is None:
            return False
        mean = self.group.mean(torch.stack([update["kl"] for update in epoch]).mean())
        return bool(mean > self.config.target_kl)

    def apply_config(self) -> None:
        """Pass changed numbers on to the optimizer and the policy."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate
        apply_prior_weight(self.actor_critic.actor, self.config.prior_weight)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next `learn` depends on, as nested dicts of tensors and numbers."""
        return {
            "actor_critic": module_state(self.actor_critic),
            "value_norm": None if self.value_norm is None else module_state(self.value_norm),
            "average_reward": None if self.average_reward is None else module_state(self.average_reward),
            "optimizer": optimizer_state(self.optimizer, self.actor_critic),
            "generator": self.generator.get_state(),
            "scalars": self.scalars(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next `learn` is then bit-equal to that of the saved algorithm."""
        load_module_state(self.actor_critic, state["actor_critic"], name="actor_critic")
        load_optimizer_state(self.optimizer, self.actor_critic, state["optimizer"])
        if self.value_norm is not None:
            load_module_state(self.value_norm, state["value_norm"] or {}, name="value_norm")
        if self.average_reward is not None:
            load_module_state(self.average_reward, state["average_reward"] or {}, name="average_reward")
        self.generator.set_state(state["generator"].cpu())
        self.load_scalars(state["scalars"])
