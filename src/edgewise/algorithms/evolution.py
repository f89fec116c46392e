"""Evolution strategies (https://arxiv.org/abs/1703.03864) with antithetic noise and ranked returns.

Of all that a policy does only the return of its episodes is used. So it learns decisions whose single effects
are not seen in rewards, such as those that a rule executes for a whole episode, and policies by their mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from edgewise.algorithms.algorithm import Algorithm, Metrics
from edgewise.algorithms.config import EvolutionConfig
from edgewise.algorithms.prior import apply_prior_weight
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.config.errors import ConfigError
from edgewise.data.candidates import CANDIDATE, NOISE, Act, CandidateEpisodes
from edgewise.data.episodes import INSTANCE
from edgewise.envs.base import GraphEnv
from edgewise.graphs.keys import ACTIVE
from edgewise.models.actor_critic import Actor
from edgewise.objectives.ranks import centred_ranks
from edgewise.scale.processes.group import ALONE, Group


class Evolution(Algorithm):
    """Evolution strategies: one optimizer step per batch, by the returns of candidates near the policy.

    Candidates come in pairs with the weights `w + sigma e` and `w - sigma e`, where e is normal. All of them
    act by their mode in the same worlds with the same random numbers. With u the centred ranks of their
    returns, the gradient is the mean of `(u+ - u-) e / (2 sigma)` over pairs.

    Args:
        actor: the policy.
        config: see `EvolutionConfig`.
        seed: random seed of the candidates.
        device: of the policy.
        group: the processes that learn together. Each plays all candidates in its share of the worlds.

    Example:
        >>> import edgewise as ew
        >>> from edgewise.models.actor_critic import make_actor_critic
        >>> env = ew.make_env("graphwalk", num_envs=64, seed=0)
        >>> actor = make_actor_critic(env.graph, env.actions).actor
        >>> algorithm = Evolution(actor, EvolutionConfig(pairs=8))
        >>> rollout = algorithm.make_collector(env, rollout_length=1)
        >>> metrics = algorithm.learn(rollout.collect())
    """

    rank_keys = ()

    def __init__(
        self,
        actor: Actor,
        config: EvolutionConfig,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        group: Group = ALONE,
    ) -> None:
        self.config, self.device, self.group = config, torch.device(device), group
        self.actor = actor.to(self.device)
        self.seed = int(group.broadcast(seed))
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
                f"evolution cannot learn {setup.env.name}, a game of two players", hint="use --algorithm ppo"
            )
        model = setup.make_model()
        if getattr(model, "recurrent", False):
            raise ConfigError(
                "model.recurrent: candidates of evolution have no memory", hint="use --algorithm ppo"
            )
        return cls(model.actor, setup.config, seed=setup.seed, device=setup.device, group=setup.group)

    @property
    def policy(self) -> Actor:
        """The policy, a TensorDict module that writes `action` and `action_log_prob`."""
        return self.actor

    def make_collector(self, env: GraphEnv[Any], *, rollout_length: int) -> CandidateEpisodes:
        """Return what plays the candidates.

        Raises:
            ConfigError: there are fewer worlds than candidates.
        """
        candidates = 2 * self.config.pairs
        if env.num_envs < candidates:
            raise ConfigError(
                f"num_envs: got {env.num_envs * self.group.size}, but each of {candidates} candidates plays "
                f"in one world or more"
                f"{f' of every process ({self.group.size})' if self.group.size > 1 else ''}",
                hint=f"use num_envs {candidates * self.group.size} or more, or fewer algorithm.pairs",
            )
        return CandidateEpisodes(
            env,
            self.actor,
            self.draw,
            candidates=candidates,
            rollout_length=rollout_length,
            longest=self.config.longest_episode,
            seed=self.seed,
        )

    def draw(self, seed: int) -> list[Act]:
        """Return the candidates that follow from a seed, first those with `+e`, then those with `-e`."""
        weights = parameters_to_vector(self.actor.parameters()).detach()
        step = self.config.sigma * self._noise(seed, len(weights))
        return [partial(self._act, weights, candidate) for candidate in torch.cat((step, -step))]

    def _noise(self, seed: int, size: int) -> Tensor:
        """Return the noise of all pairs, `[pairs, size]`."""
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(self.config.pairs, size, generator=generator)
        return noise.to(self.device, non_blocking=True)

    def _act(self, weights: Tensor, step: Tensor, root: TensorDictBase) -> Tensor:
        """Return the actions of the candidate with the weights `weights + step`, by its mode."""
        parameters = list(self.actor.parameters())
        vector_to_parameters(weights + step, parameters)
        action: Tensor = self.actor.get_dist(root.select(*self.actor.in_keys, ACTIVE, strict=False)).mode
        vector_to_parameters(weights, parameters)
        return action

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Make one optimizer step on the episodes of candidates, `[1, S]`.

        Returns:
            0-d tensors: the mean `return` over candidates, their standard deviation as `spread`, and
            `gradient_norm`.
        """
        seed = batch.get(NOISE, None)
        if seed is None:
            raise ValueError(f"evolution needs `{NOISE}` in the batch: collect it with `make_collector`")
        returns = candidate_returns(batch.to(self.device), candidates=2 * self.config.pairs)
        means = self.group.mean(returns.mean(1))
        score = self.group.mean(centred_ranks(returns).mean(1)) if self.config.ranks == "world" else means
        plus, minus = centred_ranks(score.unsqueeze(1)).squeeze(1).chunk(2)
        size = sum(parameter.numel() for parameter in self.actor.parameters())
        noise = self._noise(int(seed.reshape(-1)[0]), size)
        gradient = (plus - minus) @ noise / (2 * self.config.pairs * self.config.sigma)
        self._climb(gradient)
        return {"return": means.mean(), "spread": means.std(), "gradient_norm": gradient.norm()}

    @torch.no_grad()
    def _climb(self, gradient: Tensor) -> None:
        """Make one optimizer step along a gradient of the return by all weights."""
        parameters = list(self.actor.parameters())
        parts = gradient.split([parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            decay = self.config.weight_decay * parameter
            parameter.grad = decay - part.view_as(parameter)
        self.optimizer.step()

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


def candidate_returns(batch: TensorDictBase, *, candidates: int) -> Tensor:
    """Return the return of every candidate in every world, `[candidates, W]`; of agents the sum."""
    reward: Tensor = batch["next", "reward"].reshape(batch.numel(), -1).sum(1)
    candidate, instance = batch[CANDIDATE].reshape(-1), batch[INSTANCE].reshape(-1)
    found = reward.new_zeros(candidates, int(instance.max()) + 1)
    return found.index_put_((candidate, instance), reward, accumulate=True)
