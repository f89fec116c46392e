"""Expert iteration: a network learns what tree search makes of it (https://arxiv.org/abs/1705.08439).

The expert is `GumbelSearch` with the current networks, which plays all games against itself, or chooses all
actions of one player. The actor learns the improved policies of the search, and the critic the outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torchrl.data import TensorSpec

from edgewise.algorithms.algorithm import Algorithm, Metrics
from edgewise.algorithms.expert_iteration_config import ExpertIterationConfig
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.config.errors import ConfigError
from edgewise.data.position_buffer import OUTCOME, PositionBuffer
from edgewise.envs.base import GraphEnv
from edgewise.envs.generators import restore_generator
from edgewise.envs.policy import Policy
from edgewise.models.actor_critic import Actor, ActorCritic
from edgewise.models.distributions.joined import Joined
from edgewise.models.distributions.masked import MaskedCategorical
from edgewise.models.instance_actor import InstanceActor, InstanceActorCritic
from edgewise.objectives.value_norm import ValueNorm
from edgewise.scale.processes.group import ALONE, Group
from edgewise.search.gumbel import SEARCH_POLICY, SEARCH_VALUE, GumbelSearch
from edgewise.search.network import NetworkEvaluator

WEIGHT_DECAY = 1e-4
"""Decoupled weight decay of Adam."""


class ExpertIteration(Algorithm):
    """Learns a two-player game, or a problem of one player, from its own tree search.

    The state of every position is stored, not its observation, which is computed again for each minibatch.

    Args:
        actor_critic: the actor and the critic, see `make_actor_critic`.
        config: see `ExpertIterationConfig`.
        env: has deterministic transitions, one choice per step and an action mask; its rules are used for the
            search.
        seed: random seed of the search and of sampling from the buffer.
        device: device of the actor and the critic.
        group: the processes that learn together; each keeps the positions of its own games, and samples an
            equal part of every minibatch from them.

    Example:
        With `env`, a two-player environment:

        >>> model = make_actor_critic(env.graph, env.actions)
        >>> algorithm = ExpertIteration(model, ExpertIterationConfig(), env=env)
        >>> rollout = Rollout(env, algorithm.behaviour, rollout_length=32, keep_state=True)
        >>> metrics = algorithm.learn(rollout.collect())
    """

    needs_state = True
    takes_older_steps = True
    data_keys = ("positions",)
    rank_keys = ("generator", "noise")
    acting_generators = ("noise",)

    def __init__(
        self,
        actor_critic: ActorCritic | InstanceActorCritic,
        config: ExpertIterationConfig,
        *,
        env: GraphEnv[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        group: Group = ALONE,
    ) -> None:
        self.group = group
        mask = env.observation_spec.get("action_mask", None)
        if actor_critic.recurrent or env.num_agents or not isinstance(mask, TensorSpec) or mask.ndim != 2:
            raise ConfigError(
                "expert iteration searches one choice per step, with a mask and without memory, and "
                f"{env.name} has other actions, or the model is recurrent",
                hint="use --algorithm ppo",
            )
        self.config, self.env, self.device = config, env, torch.device(device)
        self.actor_critic = actor_critic.to(self.device)
        # Outcomes of games are in [-1, 1]; those of one player may have any range.
        is_game = env.observation_spec.get("player", None) is not None
        self.value_norm = None if is_game else ValueNorm().to(self.device)
        self.generator = torch.Generator().manual_seed(seed)
        self.noise = torch.Generator(self.device).manual_seed(seed)
        self.positions = PositionBuffer(group.part(config.buffer_size))
        self.optimizer = torch.optim.AdamW(
            self.actor_critic.parameters(),
            lr=config.learning_rate,
            weight_decay=WEIGHT_DECAY,
            fused=True,
        )

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run."""
        return cls(
            setup.make_model(),
            setup.config,
            env=setup.env,
            seed=setup.seed,
            device=setup.device,
            group=setup.group,
        )

    @property
    def policy(self) -> Actor | InstanceActor:
        """The learnt policy without search, a TensorDict module that writes `action`."""
        return self.actor_critic.actor

    @property
    def acting_module(self) -> ActorCritic | InstanceActorCritic:
        """The networks that the search uses."""
        return self.actor_critic

    @property
    def behaviour(self) -> Policy:
        """The policy that plays the games of training: search with the current networks."""
        return self._search_policy

    def searcher(self, *, noise: torch.Generator | None = None) -> GumbelSearch:
        """Build the search with the current networks and settings; without noise it plays its best move."""
        self.actor_critic.eval()
        return GumbelSearch(
            self.env,
            NetworkEvaluator(
                self.actor_critic,
                denormalise=None if self.value_norm is None else self.value_norm.denormalise,
            ),
            simulations=self.config.simulations,
            considered=self.config.considered,
            value_scale=self.config.value_scale,
            noise=noise,
        )

    def _search_policy(self, tensordict: TensorDictBase) -> TensorDictBase:
        return self.searcher(noise=self.noise)(tensordict)

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Store a rollout `[num_envs, T]` and update on positions of finished games; once per batch.

        Returns:
            0-d tensors, means over updates, zero until finished games fill a minibatch; `divergence` is the
            KL divergence of the improved policy from the actor's, `finished` counts positions to learn from.
        """
        batch = batch.to(self.device)
        kept = batch.select("state", "player", SEARCH_POLICY, SEARCH_VALUE, strict=False)
        following = batch["next"]
        self.positions.extend(
            kept, reward=following["reward"].squeeze(-1), done=following["done"].squeeze(-1)
        )
        finished = torch.tensor(float(self.positions.finished))
        found = {"finished": self.group.sum(finished)}
        zero = torch.zeros((), device=self.device)
        # Many updates on the few games that end first would only fit those.
        if self.group.min(finished) < self.group.part(self.config.minibatch_size):
            names = ("loss", "policy_loss", "value_loss", "divergence", "explained_variance", "gradient_norm")
            return found | dict.fromkeys(names, zero)
        self._reanalyse(round(self.config.reanalysis * batch.numel()), most=len(batch))
        if self.value_norm is not None:
            self.value_norm.update(self.positions.outcomes, group=self.group)
        self.actor_critic.train()
        updates = [self._update(self._sample()) for _ in range(self.config.updates)]
        self.actor_critic.eval()
        return found | {name: torch.stack([one[name] for one in updates]).mean() for name in updates[0]}

    def _reanalyse(self, count: int, *, most: int) -> None:
        """Search `count` stored positions again, at most `most` at once, and replace their policy targets."""
        while count > 0:
            samples = self.positions.sample(min(count, most), generator=self.generator)
            found = self.searcher(noise=self.noise)(self._observed(samples))
            for name in (SEARCH_POLICY, SEARCH_VALUE):
                self.positions.replace(samples["index"], name, found[name])
            count -= most

    def _sample(self) -> TensorDictBase:
        """Sample a minibatch with observations and value targets."""
        count = self.group.part(self.config.minibatch_size)
        samples = self.positions.sample(count, generator=self.generator)
        share = self.config.search_share
        target = (1 - share) * samples[OUTCOME] + share * samples[SEARCH_VALUE]
        target = target if self.value_norm is None else self.value_norm.normalise(target)
        return self._observed(samples).set("value_target", target)

    @torch.no_grad()
    def _observed(self, samples: TensorDictBase) -> TensorDict:
        """Return stored positions `[M]` with the observations of their states."""
        state = samples["state"]
        seen = {**self.env.whole_observation(state), "action_mask": self.env.mask(state)}
        return TensorDict({**seen, "state": state, SEARCH_POLICY: samples[SEARCH_POLICY]}, samples.batch_size)

    def _update(self, samples: TensorDictBase) -> Metrics:
        """Make one optimizer step; once per minibatch."""
        loss, metrics = self._loss(samples, self.config.value_coefficient)
        self.optimizer.zero_grad()
        loss.backward()
        self.group.average_gradients(self.actor_critic.parameters())
        norm = nn.utils.clip_grad_norm_(self.actor_critic.parameters(), self.config.max_grad_norm)
        self.optimizer.step()
        return {name: value.detach() for name, value in metrics.items()} | {"gradient_norm": norm}

    def _loss(self, samples: TensorDictBase, value_weight: float) -> tuple[Tensor, Metrics]:
        """Compute the cross-entropy to the improved policy and the squared error of the value."""
        distribution, value = self.actor_critic.evaluate(samples)
        assert isinstance(distribution, MaskedCategorical | Joined)
        target, goal = samples[SEARCH_POLICY], samples["value_target"]
        policy_loss = -(target * distribution.logits.masked_fill(target == 0, 0.0)).sum(-1).mean()
        value_loss = (value.squeeze(-1) - goal).square().mean()
        loss = policy_loss + value_weight * value_loss
        with torch.no_grad():
            entropy = -(target * target.clamp(min=1e-9).log()).sum(-1).mean()
            explained = 1 - value_loss / goal.var(correction=0).clamp(min=1e-4)
        return loss, {
            "loss": loss,
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "divergence": policy_loss - entropy,
            "explained_variance": explained,
        }

    def apply_config(self) -> None:
        """Pass changed numbers on to the optimizer."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next batch depends on, as nested dicts of tensors and numbers."""
        return {
            "actor_critic": module_state(self.actor_critic),
            "value_norm": None if self.value_norm is None else module_state(self.value_norm),
            "optimizer": optimizer_state(self.optimizer, self.actor_critic),
            "generator": self.generator.get_state(),
            "noise": self.noise.get_state(),
            "positions": self.positions.state_dict(),
            "scalars": self.scalars(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next batch and `learn` are then bit-equal to those of the saved algorithm."""
        load_module_state(self.actor_critic, state["actor_critic"], name="actor_critic")
        load_optimizer_state(self.optimizer, self.actor_critic, state["optimizer"])
        if self.value_norm is not None:
            load_module_state(self.value_norm, state["value_norm"] or {}, name="value_norm")
        restore_generator(self.generator, state["generator"])
        restore_generator(self.noise, state["noise"])
        if "positions" in state:
            self.positions.load_state_dict(state["positions"], device=self.device)
        self.load_scalars(state["scalars"])
