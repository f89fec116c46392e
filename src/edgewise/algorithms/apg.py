"""Analytic policy gradients: differentiate the return through a differentiable environment.

As in https://arxiv.org/abs/2209.13052, without a critic: the return of a window of a few steps is maximised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.algorithm import Algorithm, Metrics
from edgewise.algorithms.config import APGConfig
from edgewise.algorithms.prior import apply_prior_weight
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.generators import restore_generator
from edgewise.graphs.keys import ACTIVE, STATE
from edgewise.models.actor_critic import Actor
from edgewise.models.agents.actions import ActionBox
from edgewise.objectives.alignment import expand_agent_mask
from edgewise.objectives.masked import masked_mean


class APG(Algorithm):
    """Analytic policy gradients for environments whose rewards have gradients by the actions.

    A batch only gives the states to start from. From a sample of them, the environment is simulated for
    `horizon` steps with the mode of the policy, and the sum of rewards is differentiated through all steps.
    Agents are one team: the gradient is that of their mean reward, so an action counts for all of them.

    Args:
        actor: the policy; its standard deviation serves exploration only, and is not trained.
        config: see `APGConfig`.
        env: environment to simulate.
        seed: random seed of sampling states.
        device: of the policy.

    Example:
        >>> algorithm = APG(make_actor_critic(env.graph, env.actions).actor, APGConfig(), env=env)
        >>> rollout = Rollout(env, algorithm.policy, rollout_length=25, keep_state=True)
        >>> metrics = algorithm.learn(rollout.collect())
    """

    needs_state = True

    def __init__(
        self,
        actor: Actor,
        config: APGConfig,
        *,
        env: GraphEnv[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.config, self.device, self.env = config, torch.device(device), env
        self.actor = actor.to(self.device)
        self.generator = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.Adam(self.actor.parameters(), lr=config.learning_rate, fused=True)
        apply_prior_weight(self.actor, config.prior_weight)

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run; the critic of the model is not used.

        Raises:
            ConfigError: actions are not continuous, or the model is recurrent.
        """
        ActionBox.of(setup.env.actions)
        model = setup.make_model()
        if getattr(model, "recurrent", False):
            raise ConfigError("model.recurrent: apg learns from single states", hint="use --algorithm ppo")
        return cls(model.actor, setup.config, env=setup.env, seed=setup.seed, device=setup.device)

    @property
    def policy(self) -> Actor:
        """The policy, a TensorDict module that writes `action` and `action_log_prob`."""
        return self.actor

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Make the optimizer steps of a batch with `state`, `[*B]`.

        Returns:
            0-d tensors, means over updates: `window_reward` per step of the windows, and `gradient_norm`.

        Raises:
            ConfigError: no gradient gets from the rewards to the actions.
        """
        starts = batch.to(self.device).select(*self.actor.in_keys, ACTIVE, STATE, strict=False).reshape(-1)
        with self._own_randomness():
            updates = [self._update(self._sample(starts)) for _ in range(self.config.updates)]
        return {name: torch.stack([update[name] for update in updates]).mean() for name in updates[0]}

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """Simulate with random numbers of the algorithm; the environment then goes on as if it had not."""
        generator = self.env.generator
        kept = generator.get_state()
        generator.manual_seed(int(torch.randint(2**62, (), generator=self.generator)))
        try:
            yield
        finally:
            restore_generator(generator, kept)

    def _sample(self, starts: TensorDictBase) -> TensorDictBase:
        """Sample states to start from, with replacement."""
        rows = torch.randint(len(starts), (self.config.minibatch_size,), generator=self.generator)
        return starts[rows.to(self.device, non_blocking=True)]

    def _update(self, starts: TensorDictBase) -> Metrics:
        """Make one optimizer step; once per minibatch."""
        reward = self.window_reward(starts)
        if not reward.requires_grad:
            raise ConfigError(
                f"apg needs rewards that are differentiable by the actions; those of {self.env.name} are not",
                hint="use --algorithm ppo",
            )
        self.optimizer.zero_grad()
        (-reward).backward()
        norm = nn.utils.clip_grad_norm_(self.actor.parameters(), self.config.max_grad_norm)
        self.optimizer.step()
        return {"window_reward": reward.detach(), "gradient_norm": norm}

    def window_reward(self, starts: TensorDictBase) -> Tensor:
        """Simulate `horizon` steps from `starts` `[M]`; return the mean reward per step and agent, 0-d.

        Time limits do not end a window. After its termination, a world has no rewards.
        """
        root, counted = starts, torch.ones(len(starts), 1, dtype=torch.bool, device=self.device)
        rewards = []
        for _ in range(self.config.horizon):
            root = self.env.simulate(root.set("action", self.actor.get_dist(self._observed(root)).mode))
            ended = (~counted).view(-1, *[1] * (root["reward"].ndim - 1))
            rewards.append(root["reward"].masked_fill(ended, 0.0))
            counted = counted & ~root["terminated"]
        reward = torch.stack(rewards).mean(0)
        return masked_mean(reward, expand_agent_mask(starts.get(ACTIVE, None), reward, batch_dims=1))

    def _observed(self, root: TensorDictBase) -> TensorDictBase:
        """Return what the policy acts on, without a gradient unless it passes through observations."""
        if self.config.through_observations:
            return root
        return root.select(*self.actor.in_keys, strict=False).detach()

    def apply_config(self) -> None:
        """Pass changed numbers on to the optimizer and the policy."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate
        apply_prior_weight(self.actor, self.config.prior_weight)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next `learn` depends on, as nested dicts of tensors and numbers."""
        return {
            "actor": module_state(self.actor),
            "optimizer": optimizer_state(self.optimizer, self.actor),
            "generator": self.generator.get_state(),
            "scalars": self.scalars(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next `learn` is then bit-equal to that of the saved algorithm."""
        load_module_state(self.actor, state["actor"], name="actor")
        load_optimizer_state(self.optimizer, self.actor, state["optimizer"])
        self.generator.set_state(state["generator"].cpu())
        self.load_scalars(state["scalars"])
