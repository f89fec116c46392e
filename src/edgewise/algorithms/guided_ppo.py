"""PPO that an expert guides at first: what the expert would do counts for less and less, rewards decide."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torch.distributions import Distribution

from edgewise.algorithms.config import GuidedPPOConfig
from edgewise.algorithms.ppo import ACTIVE, PPO
from edgewise.models.actor_critic import ActorCritic
from edgewise.objectives.alignment import of_agents
from edgewise.objectives.imitation import surprise
from edgewise.objectives.masked import masked_mean

Expert = Callable[[TensorDictBase], TensorDictBase]
WANTED = "expert_action"


class GuidedPPO(PPO):
    """Adds the negative log-probability of an expert's action to the loss, in the learner's own states.

    With its weight `guidance` scheduled from 1 to 0 this begins much like DAgger and ends as plain PPO, so
    the expert saves the search and does not bound the result. Actions of the expert that the actor could
    never draw are left out.

    Args:
        actor_critic: an actor and a critic, see `make_actor_critic`.
        config: see `GuidedPPOConfig`.
        expert: sets `action` in many states `[S]`; may be set later. Most read `state`: collect with
            `keep_state=True`.
        seed: of the order of samples.
        device: where to learn.
        compile: whether to compile the loss.
    """

    config: GuidedPPOConfig

    def __init__(
        self,
        actor_critic: ActorCritic,
        config: GuidedPPOConfig,
        *,
        expert: Expert | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
        compile: bool = False,
    ) -> None:
        super().__init__(actor_critic, config, seed=seed, device=device, compile=compile)
        self.expert = expert

    def _advantages(self, batch: TensorDictBase) -> tuple[TensorDictBase, Tensor]:
        """As PPO's, with what the expert would do in every state while that still counts."""
        samples, explained = super()._advantages(batch)
        if self.config.guidance > 0:
            if self.expert is None:
                raise ValueError("a guided PPO needs an expert: give it one, or set guidance to 0")
            states = batch.exclude("next").reshape(-1)
            samples.set(WANTED, self.expert(states.copy()).get("action"))
        return samples, explained

    def _guidance(self, distribution: Distribution, samples: TensorDictBase) -> Tensor | float:
        """The weighted surprise at what the expert would do, 0-d."""
        wanted = samples.get(WANTED, None)
        if wanted is None:
            return 0.0
        each = surprise(distribution, wanted)
        counted = each < torch.finfo(each.dtype).max / 2
        active = of_agents(samples.get(ACTIVE, None), each, batch_dims=samples.batch_dims)
        return self.config.guidance * masked_mean(each, counted if active is None else counted & active)
