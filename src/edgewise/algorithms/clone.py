"""Imitation of an expert: behaviour cloning and DAgger (https://arxiv.org/abs/1011.0686).

Both learn the expert's action in the collected states. Behaviour cloning collects with the expert. DAgger
collects more and more with the learner, so that the expert labels the states that the learner visits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.algorithm import Algorithm, Metrics
from edgewise.algorithms.config import CloneConfig
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.config.errors import ConfigError
from edgewise.data.demonstrations import ExpertMixture
from edgewise.data.episodes import EpisodeRollout
from edgewise.data.instance_batch import (
    COUNTED,
    cat_instance_batches,
    is_instance_batch,
    make_instance_batch,
    restored,
    steps_with_graphs,
    with_step_values,
)
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.graphs.keys import ACTIVE, GRAPH, STEPS
from edgewise.models.actor_critic import Actor, ActorCritic
from edgewise.objectives.alignment import expand_agent_mask
from edgewise.objectives.imitation import exact_match, negative_log_likelihood
from edgewise.objectives.masked import masked_mean, mean_of_all
from edgewise.scale.processes.group import ALONE, Group

EXPERT_ACTION = "expert_action"


class Clone(Algorithm):
    """Behaviour cloning or DAgger of an expert.

    The expert labels every collected state once. Labelled states go to a buffer, from which minibatches are
    sampled. The loss is the negative log-likelihood of the expert's action. A critic that does not share the
    actor's encoder is not trained. Where an environment describes an instance once, the buffer and
    minibatches have whole episodes, so that every instance is stored and encoded once.

    Args:
        actor_critic: the actor and the critic, see `make_actor_critic`.
        config: see `CloneConfig`.
        expert: sets `action` in states `[S]`. Most experts read `state`: collect with `keep_state=True`.
        seed: random seed of sampling from the buffer.
        device: device of the actor and the critic.
        group: the processes that learn together; each has a buffer of its own states, and samples an equal
            part of every minibatch from it.

    Example:
        >>> algorithm = Clone(make_actor_critic(env.graph, env.actions), CloneConfig(), expert=expert)
        >>> rollout = Rollout(env, algorithm.behaviour, rollout_length=32, keep_state=True)
        >>> metrics = algorithm.learn(rollout.collect())
    """

    needs_state = True
    takes_older_steps = True
    data_keys = ("buffer",)
    rank_keys = ("generator",)

    def __init__(
        self,
        actor_critic: ActorCritic,
        config: CloneConfig,
        *,
        expert: Policy,
        seed: int = 0,
        device: torch.device | str = "cpu",
        group: Group = ALONE,
    ) -> None:
        self.group = group
        self.config, self.device, self.expert = config, torch.device(device), expert
        self.actor_critic = actor_critic.to(self.device)
        self.generator = torch.Generator().manual_seed(seed)
        self.buffer: TensorDictBase | None = None
        self._masked = False
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=config.learning_rate, fused=True)

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run; `config.expert` names the baseline to imitate.

        Raises:
            ConfigError: the model is recurrent.
        """
        model = setup.make_model()
        if getattr(model, "recurrent", False):
            raise ConfigError(
                "model.recurrent: clone learns from single steps, whose hidden states are those of older "
                "weights",
                hint="use --algorithm ppo",
            )
        return cls(
            model,
            setup.config,
            expert=setup.make_baseline(setup.config.expert, field="algorithm.expert"),
            seed=setup.seed,
            device=setup.device,
            group=setup.group,
        )

    @property
    def behaviour(self) -> Policy:
        """The behaviour policy: a mixture of the expert and the learner."""
        return ExpertMixture(self.expert, self.policy, expert_share=self.expert_share)

    def make_collector(self, env: GraphEnv[Any], *, rollout_length: int) -> EpisodeRollout | None:
        """Return what collects whole episodes, if the environment describes an instance once."""
        if env.graph.step is None:
            return None
        return EpisodeRollout(env, self.behaviour, rollout_length=rollout_length, keep_state=True)

    @property
    def policy(self) -> Actor:
        """The learnt policy, a TensorDict module that writes `action` and `action_log_prob`."""
        return self.actor_critic.actor

    def expert_share(self) -> float:
        """Return the current share of steps in which the expert acts."""
        return self.config.expert_share

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Label a rollout `[num_envs, T]`, add it to the buffer and update the actor; once per batch.

        Returns:
            0-d tensors: `match` is the share of decisions in this batch, before learning from it, in which
            the actor's mode is the expert's action; `loss` and `gradient_norm` are means over updates.
        """
        samples = self.label(batch)
        match = self.match(samples)
        self._add_to_buffer(samples)
        updates = [self._update(self._sample()) for _ in range(self.config.updates)]
        means = {name: torch.stack([update[name] for update in updates]).mean() for name in updates[0]}
        return means | {
            "match": match,
            "buffered": self.group.sum(torch.tensor(float(self._size))),
            "expert_share": torch.tensor(self.config.expert_share),
        }

    @torch.no_grad()
    def label(self, batch: TensorDictBase) -> TensorDictBase:
        """Return the actor's inputs in the states of a batch, `[S]` or `[I]`, with the expert's actions."""
        batch, kept = batch.to(self.device).exclude("next"), (*self.policy.in_keys, ACTIVE)
        if not is_instance_batch(batch):
            states = batch.reshape(-1)
            action = self.expert(states.copy()).get("action")
            return states.select(*kept, strict=False).set(EXPERT_ACTION, action)
        states = steps_with_graphs(batch).reshape(-1)
        action = self.expert(states.exclude("next")).get("action")
        steps = batch[STEPS].copy().set(EXPERT_ACTION, action.unflatten(0, batch[STEPS].batch_size))
        labelled = make_instance_batch(batch[GRAPH], steps, steps[COUNTED])
        return with_step_values(labelled, steps, [], keys=(*kept, EXPERT_ACTION))

    @torch.no_grad()
    def match(self, samples: TensorDictBase) -> Tensor:
        """Compute the share of labelled decisions in which the actor's mode is the expert's action, 0-d."""
        steps = samples.get(STEPS, samples)
        match = exact_match(self.policy.get_dist(samples), steps[EXPERT_ACTION])
        mask = expand_agent_mask(steps.get(ACTIVE, None), match, batch_dims=steps.batch_dims)
        self._masked = mask is not None
        return mean_of_all(match, mask, group=self.group)

    @property
    def _size(self) -> int:
        """The number of steps in the buffer."""
        return 0 if self.buffer is None else self.buffer.get(STEPS, self.buffer).numel()

    def _rows(self, steps: int) -> int:
        """Return how many rows of the buffer have about so many steps."""
        assert self.buffer is not None
        return max(1, round(steps * len(self.buffer) / self._size))

    def _add_to_buffer(self, samples: TensorDictBase) -> None:
        """Append to the buffer and drop the oldest samples beyond its size."""
        if self.buffer is None:
            self.buffer = samples.clone()
        elif is_instance_batch(samples):
            self.buffer = cat_instance_batches([self.buffer, samples])
        else:
            self.buffer = torch.cat((self.buffer, samples))
        limit = (
            None if self.config.buffer_size is None else self._rows(self.group.part(self.config.buffer_size))
        )
        if limit is not None and len(self.buffer) > limit:
            self.buffer = self.buffer[-limit:].clone()

    def _sample(self) -> TensorDictBase:
        """Sample a minibatch uniformly from the buffer, single steps or whole episodes."""
        assert self.buffer is not None
        count = self._rows(self.group.part(self.config.minibatch_size))
        rows = torch.randint(len(self.buffer), (count,), generator=self.generator)
        return self.buffer[rows.to(self.device, non_blocking=True)]

    def _update(self, samples: TensorDictBase) -> Metrics:
        """Make one optimizer step; once per minibatch."""
        loss = self._loss(samples)
        if self._masked:
            loss = loss * self.group.weights(samples.get(STEPS, samples)[ACTIVE].sum())
        self.optimizer.zero_grad()
        loss.backward()
        self.group.average_gradients(self.policy.parameters())
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.max_grad_norm)
        self.optimizer.step()
        return {"loss": loss.detach(), "gradient_norm": norm}

    def _loss(self, samples: TensorDictBase) -> Tensor:
        steps = samples.get(STEPS, samples)
        loss = negative_log_likelihood(self.policy.get_dist(samples), steps[EXPERT_ACTION])
        active = expand_agent_mask(steps.get(ACTIVE, None), loss, batch_dims=steps.batch_dims)
        return masked_mean(loss, active)

    def apply_config(self) -> None:
        """Pass changed numbers on to the optimizer."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next `learn` depends on, as nested dicts of tensors and numbers."""
        return {
            "actor_critic": module_state(self.actor_critic),
            "optimizer": optimizer_state(self.optimizer, self.actor_critic),
            "generator": self.generator.get_state(),
            "buffer": {} if self.buffer is None else self.buffer.to_dict(),
            "scalars": self.scalars(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next `learn` is then bit-equal to that of the saved algorithm."""
        load_module_state(self.actor_critic, state["actor_critic"], name="actor_critic")
        load_optimizer_state(self.optimizer, self.actor_critic, state["optimizer"])
        self.generator.set_state(state["generator"].cpu())
        if "buffer" in state:
            self.buffer = restored(state["buffer"], device=self.device) if state["buffer"] else None
        self.load_scalars(state["scalars"])
