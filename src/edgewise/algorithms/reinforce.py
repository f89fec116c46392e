"""REINFORCE (Williams 1992) on graphs, with the baselines of neural combinatorial optimisation.

`shared` is the baseline of POMO (https://arxiv.org/abs/2010.16011), `greedy` the greedy-rollout baseline of
the attention model (https://arxiv.org/abs/1803.08475).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.algorithm import Algorithm, Metrics
from edgewise.algorithms.config import ReinforceConfig
from edgewise.algorithms.greedy_baseline import GreedyBaseline
from edgewise.algorithms.prior import apply_prior_weight
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.config.errors import ConfigError
from edgewise.data.episodes import BASELINE_RETURN, INSTANCE, PROPOSAL, EpisodeRollout
from edgewise.data.instance_batch import (
    COUNTED,
    is_instance_batch,
    select_steps,
    steps_of,
    with_step_values,
)
from edgewise.data.intervention import INTERVENED
from edgewise.envs.base import GraphEnv
from edgewise.graphs.keys import ACTIVE, STEPS
from edgewise.models.actor_critic import Actor
from edgewise.objectives.alignment import expand_agent_mask, match_shape
from edgewise.objectives.episodes import (
    episode_index,
    episode_returns,
    is_best_of_instance,
    mean_over_instance,
)
from edgewise.objectives.masked import mean_of_all, variance_of_all
from edgewise.scale.processes.group import ALONE, Group


class REINFORCE(Algorithm):
    """REINFORCE on whole episodes: one optimizer step per batch.

    The loss is `-1/E Σ_e (R_e - b_e) Σ_t log π(a_t | s_t)` over the E episodes of a batch, where R is the
    return of the episode from its start and b the baseline. Agents count separately. With `credit`, the best
    episode of each instance counts more, or it alone, as `-1/I Σ_i Σ_t log π(a_t | s_t)` over I instances.

    Args:
        actor: the policy.
        config: see `ReinforceConfig`.
        device: of the policy.
        group: the processes that learn together, each from its share of the worlds.

    Example:
        >>> import edgewise as ew
        >>> from edgewise.models.actor_critic import make_actor_critic
        >>> env = ew.make_env("graphwalk", num_envs=16, seed=0)
        >>> algorithm = REINFORCE(make_actor_critic(env.graph, env.actions).actor, ReinforceConfig())
        >>> rollout = algorithm.make_collector(env, rollout_length=1)
        >>> metrics = algorithm.learn(rollout.collect())
    """

    rank_keys = ()

    def __init__(
        self,
        actor: Actor,
        config: ReinforceConfig,
        *,
        device: torch.device | str = "cpu",
        group: Group = ALONE,
    ) -> None:
        self.config, self.device, self.group = config, torch.device(device), group
        self.actor = actor.to(self.device)
        self.optimizer = torch.optim.Adam(self.actor.parameters(), lr=config.learning_rate, fused=True)
        apply_prior_weight(self.actor, config.prior_weight)

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run; the critic of the model is not used.

        Raises:
            ConfigError: the environment is a game, or the model is recurrent.
        """
        if setup.env.observation_spec.get("player", None) is not None:
            raise ConfigError(
                f"reinforce cannot learn {setup.env.name}, a game of two players", hint="use --algorithm ppo"
            )
        model = setup.make_model()
        if getattr(model, "recurrent", False):
            raise ConfigError(
                "model.recurrent: reinforce learns from single steps", hint="use --algorithm ppo"
            )
        return cls(model.actor, setup.config, device=setup.device, group=setup.group)

    @property
    def policy(self) -> Actor:
        """The policy, a TensorDict module that writes `action` and `action_log_prob`."""
        return self.actor

    def make_collector(self, env: GraphEnv[Any], *, rollout_length: int) -> EpisodeRollout:
        """Return what collects whole episodes in `env`.

        Raises:
            ConfigError: episodes do not end, their first actions cannot be listed, the environment has fewer
                symmetries, or the episodes of an instance do not fit into the worlds of one process.
        """
        config = self.config
        if self.group.size > 1 and config.starts > env.num_envs:
            raise ConfigError(
                f"algorithm.starts: one process plays the {config.starts} episodes of an instance, and each "
                f"of {self.group.size} processes has {env.num_envs} worlds",
                hint=f"use num_envs {config.starts * self.group.size} or more, or fewer processes",
            )
        return EpisodeRollout(
            env,
            self.policy,
            rollout_length=rollout_length,
            starts=config.starts,
            different=config.first_actions == "different",
            symmetries=config.symmetries,
            longest=config.longest_episode,
            baseline=GreedyBaseline(self.actor, config, group=self.group)
            if config.baseline == "greedy"
            else None,
        )

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Make one optimizer step on whole episodes, `[*B, T]`, one after another along T.

        Returns:
            0-d tensors: `policy_loss`, `entropy` per decision, `gradient_norm`, the mean of `baseline` over
            episodes, and the standard deviation of the `advantage`.

        Raises:
            ValueError: an episode is cut off, or the baseline needs entries that the batch does not have.
        """
        batch = batch.to(self.device)
        with torch.no_grad():
            flat = steps_of(batch).reshape(-1)
            advantage, episodes, metrics = self._advantages(flat)
            samples, size = self._samples(batch, flat, advantage)
        self.optimizer.zero_grad()
        parts = []
        for part in samples.split(size):
            loss, numbers = self._loss(part, episodes, self.config.entropy_coefficient)
            loss.backward()
            parts.append({name: value.detach() for name, value in numbers.items()})
        self.group.average_gradients(self.actor.parameters())
        norm = nn.utils.clip_grad_norm_(self.actor.parameters(), self.config.max_grad_norm)
        self.optimizer.step()
        sums = {name: torch.stack([part[name] for part in parts]).sum() for name in parts[0]}
        decisions = self.group.mean(sums["decisions"])
        return {
            "policy_loss": sums["policy_loss"],
            "entropy": sums["entropy"] / decisions.clamp_min(1),
            "gradient_norm": norm,
            **metrics,
        }

    def _samples(
        self, batch: TensorDictBase, flat: TensorDictBase, advantage: Tensor
    ) -> tuple[TensorDictBase, int]:
        """Return what the loss reads, with `advantage`, and how many samples a backward pass takes.

        Samples are steps `[S]`, or instances `[I]` with all their steps.

        Args:
            batch: as collected.
            flat: its steps, `[S]`.
            advantage: of these, `[S]` or `[S, A]`.
        """
        read, size = (*self.actor.in_keys, "action", ACTIVE, INTERVENED, PROPOSAL), self.config.minibatch_size
        flat.set("advantage", advantage)
        if not is_instance_batch(batch):
            return flat.select(*read, "advantage", strict=False), size
        samples = with_step_values(batch, flat, ["advantage"], keys=read)
        steps = samples[STEPS]
        teaches = steps[COUNTED]
        if self.config.credit == "best" and not self.config.entropy_coefficient:
            teaches = teaches & (steps["advantage"] != 0).reshape(*steps.batch_size, -1).any(-1)
        if steps.get(INTERVENED, None) is not None:
            teaches = teaches & ~steps[INTERVENED]
        samples = select_steps(samples, teaches)
        return samples, max(1, size // samples[STEPS].batch_size[1])

    def _advantages(self, samples: TensorDictBase) -> tuple[Tensor, Tensor, Metrics]:
        """Return the advantages of steps `[S]`; the number of episodes; and metrics.

        The number is the mean over processes, so that the mean of their gradients is that of all episodes.
        """
        done, reward = samples["next", "done"].squeeze(-1), samples["next", "reward"].squeeze(-1)
        if done.device.type == "cpu" and not done[-1]:
            raise ValueError("the last episode is cut off: REINFORCE learns from whole episodes")
        returns, acted = episode_returns(
            reward, done, active=samples.get(ACTIVE, None), gamma=self.config.gamma
        )
        episode = episode_index(done)
        first = torch.zeros_like(episode).scatter_reduce(
            0, episode, torch.arange(len(done), device=done.device), "amin", include_self=False
        )
        is_episode = torch.arange(len(done), device=done.device) < done.sum()
        baseline = self._baseline(samples, returns, acted, first)
        counted = acted & is_episode.reshape(-1, *[1] * (acted.ndim - 1))
        advantage = self._weights(samples, returns, returns - baseline, first, is_episode)
        return (
            advantage[episode],
            self.group.mean(done.sum()),
            {
                "baseline": mean_of_all(baseline, counted, group=self.group),
                "advantage": variance_of_all(advantage, counted, group=self.group).sqrt(),
            },
        )

    def _weights(
        self, samples: TensorDictBase, returns: Tensor, advantage: Tensor, first: Tensor, is_episode: Tensor
    ) -> Tensor:
        """Return the weight of the actions of every episode, in the shape of `returns`: see `credit`."""
        if self.config.credit == "advantage":
            return advantage
        given = samples.get(INSTANCE, None)
        if given is None:
            raise ValueError(f"credit needs `{INSTANCE}` in the batch: collect it with `make_collector`")
        ranked = returns.masked_fill(~is_episode.reshape(-1, *[1] * (returns.ndim - 1)), -torch.inf)
        best = is_best_of_instance(ranked, given[first]) & is_episode
        best = best.reshape(-1, *[1] * (returns.ndim - 1)).expand_as(returns)
        if self.config.credit == "best":
            return best.to(returns.dtype) * self.config.starts
        return torch.where(best, self.config.leader_weight * advantage, advantage)

    def _baseline(self, samples: TensorDictBase, returns: Tensor, acted: Tensor, first: Tensor) -> Tensor:
        """Return the baseline of every episode, in the shape of `returns`; `first` is its first step."""
        kind = self.config.baseline
        if kind == "none":
            return torch.zeros_like(returns)
        if kind == "mean":
            return mean_of_all(returns, acted, group=self.group).expand_as(returns)
        name = INSTANCE if kind == "shared" else BASELINE_RETURN
        given = samples.get(name, None)
        if given is None:
            raise ValueError(f"baseline {kind} needs `{name}` in the batch: collect it with `make_collector`")
        if kind == "shared":
            return mean_over_instance(returns, acted, given[first])
        return given[first]

    def _loss(
        self, samples: TensorDictBase, episodes: Tensor, entropy_weight: float
    ) -> tuple[Tensor, Metrics]:
        """Return the part of the loss of some samples, and sums for the metrics."""
        distribution = self.actor.get_dist(samples)
        samples = samples.get(STEPS, samples)
        log_prob = distribution.log_prob(samples["action"])
        with torch.set_grad_enabled(entropy_weight != 0):
            entropy = distribution.entropy()
        lead = samples.batch_dims
        advantage = match_shape(samples["advantage"], log_prob, batch_dims=lead, name="the advantage")
        advantage = advantage * self._importance(samples, log_prob.detach())
        own = expand_agent_mask(samples.get(ACTIVE, None), log_prob, batch_dims=lead)
        own = torch.ones_like(log_prob, dtype=torch.bool) if own is None else own
        forced = samples.get(INTERVENED, None)
        if forced is not None:
            own = own & ~match_shape(forced, log_prob, batch_dims=lead, name=INTERVENED)
        policy_loss = -torch.where(own, advantage * log_prob, 0.0).sum() / episodes
        entropy = torch.where(own, entropy, 0.0).sum()
        with torch.no_grad():
            metrics = {"policy_loss": policy_loss, "entropy": entropy, "decisions": own.sum()}
        return policy_loss - entropy_weight * entropy / episodes, metrics

    def _importance(self, samples: TensorDictBase, log_prob: Tensor) -> Tensor | float:
        """Return the importance weights of actions that were drawn in place of the policy.

        With them, these actions have the gradient that they had if the policy drew them. Later actions have
        weight one, so that the policy learns to continue each first action alike. An action to imitate needs
        no weight.
        """
        proposal = samples.get(PROPOSAL, None)
        if proposal is None or self.config.credit == "best":
            return 1.0
        drawn = match_shape(proposal, log_prob, batch_dims=samples.batch_dims, name=PROPOSAL)
        return torch.where(drawn > 0, log_prob.exp() / drawn, 1.0)

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
            "scalars": self.scalars(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next `learn` is then bit-equal to that of the saved algorithm."""
        load_module_state(self.actor, state["actor"], name="actor")
        load_optimizer_state(self.optimizer, self.actor, state["optimizer"])
        self.load_scalars(state["scalars"])
