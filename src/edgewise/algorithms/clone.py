"""Imitation: an actor learns to do what an expert would do in the states that were collected.

Who collects decides what this is called. Behaviour cloning learns from the expert's own states. DAgger
(https://arxiv.org/abs/1011.0686) lets the learner lead more and more, so that the expert is asked about the
states to which the learner's own mistakes lead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.config import CloneConfig
from edgewise.algorithms.scalars import scalars, with_scalar
from edgewise.algorithms.setup import Setup
from edgewise.algorithms.state import load_module_state, load_optimizer_state, module_state, optimizer_state
from edgewise.data.demonstrations import Mixture
from edgewise.graphs.compile import compile_module
from edgewise.graphs.keys import ACTIVE
from edgewise.graphs.policy import Policy
from edgewise.models.actor_critic import Actor, ActorCritic
from edgewise.objectives.alignment import of_agents
from edgewise.objectives.imitation import exact_match, surprise
from edgewise.objectives.masked import masked_mean

Metrics = dict[str, Tensor]
WANTED = "expert_action"


class Clone:
    """Learns an actor from what an expert would do.

    Every collected state is shown to the expert once, joins a buffer with the expert's action, and is drawn
    from there for updates. The loss is the exact negative log-probability of the expert's action. A critic
    that does not share the actor's encoder is carried along unchanged.

    Args:
        actor_critic: an actor and a critic, see `make_actor_critic`.
        config: see `CloneConfig`.
        expert: sets `action` in many states `[S]`. Most read `state`: collect with `keep_state=True`.
        seed: of what is drawn from the buffer.
        device: where to learn.
        compile: whether to compile the loss.

    Example:
        >>> algorithm = Clone(make_actor_critic(env.graph, env.actions), CloneConfig(), expert=MaxWeight(env))
        >>> mixture = Mixture(algorithm.expert, algorithm.policy, expert_share=algorithm.expert_share)
        >>> metrics = algorithm.learn(Rollout(env, mixture, steps=32, keep_state=True).collect())
    """

    def __init__(
        self,
        actor_critic: ActorCritic,
        config: CloneConfig,
        *,
        expert: Policy,
        seed: int = 0,
        device: torch.device | str = "cpu",
        compile: bool = False,
    ) -> None:
        self.config, self.device, self.expert = config, torch.device(device), expert
        self.actor_critic = actor_critic.to(self.device)
        self.generator = torch.Generator().manual_seed(seed)
        self.buffer: TensorDictBase | None = None
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=config.learning_rate, fused=True)
        self._terms = compile_module(self._loss, enabled=compile)

    needs_state = True

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Build the algorithm for a run; `config.expert` names the baseline to imitate."""
        model = setup.make_model()
        return cls(
            model,
            setup.config,
            expert=setup.make_baseline(setup.config.expert, field="algorithm.expert"),
            seed=setup.seed,
            device=setup.device,
            compile=setup.compile,
        )

    @property
    def behaviour(self) -> Policy:
        """The policy that collects: expert and learner in turn."""
        return Mixture(self.expert, self.policy, expert_share=self.expert_share)

    @property
    def policy(self) -> Actor:
        """What has been learnt: a TensorDict module that writes `action` and `action_log_prob`."""
        return self.actor_critic.actor

    def expert_share(self) -> float:
        """The share of steps in which the expert should lead, as the config or its schedule has it now."""
        return self.config.expert_share

    def learn(self, batch: TensorDictBase) -> Metrics:
        """Improve on a rollout `[num_envs, T]`.

        Returns 0-d tensors: `match` is the share of decisions in this batch, not learnt from yet, in which
        the actor's most probable action is the expert's; `loss` and `gradient_norm` are means over updates.
        """
        samples = self.label(batch)
        match = self.match(samples)
        self._keep(samples)
        updates = [self._update(self._drawn()) for _ in range(self.config.updates)]
        means = {name: torch.stack([update[name] for update in updates]).mean() for name in updates[0]}
        return means | {
            "match": match,
            "buffered": torch.tensor(float(self._size)),
            "expert_share": torch.tensor(self.config.expert_share),
        }

    @torch.no_grad()
    def label(self, batch: TensorDictBase) -> TensorDictBase:
        """The states of a batch, `[S]`, as the actor sees them, with what the expert would do."""
        states = batch.to(self.device).exclude("next").reshape(-1)
        wanted = self.expert(states.copy()).get("action")
        return states.select(*self.policy.in_keys, ACTIVE, strict=False).set(WANTED, wanted)

    @torch.no_grad()
    def match(self, samples: TensorDictBase) -> Tensor:
        """The share of labelled decisions in which the actor's most probable action is the expert's, 0-d."""
        found = exact_match(self.policy.get_dist(samples), samples[WANTED])
        return masked_mean(found, of_agents(samples.get(ACTIVE, None), found, batch_dims=1))

    @property
    def _size(self) -> int:
        return 0 if self.buffer is None else len(self.buffer)

    def _keep(self, samples: TensorDictBase) -> None:
        """Add to the buffer; the oldest leave it where it would exceed its size."""
        joined = samples.clone() if self.buffer is None else torch.cat((self.buffer, samples))
        limit = self.config.buffer_size
        self.buffer = joined if limit is None or len(joined) <= limit else joined[-limit:].clone()

    def _drawn(self) -> TensorDictBase:
        """A minibatch from the buffer, each of its states alike likely."""
        assert self.buffer is not None
        rows = torch.randint(self._size, (self.config.minibatch_size,), generator=self.generator)
        return self.buffer[rows.to(self.device)]

    def _update(self, samples: TensorDictBase) -> Metrics:
        """One step of the optimiser."""
        loss = self._terms(samples)
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.max_grad_norm)
        self.optimizer.step()
        return {"loss": loss.detach(), "gradient_norm": norm}

    def _loss(self, samples: TensorDictBase) -> Tensor:
        each = surprise(self.policy.get_dist(samples), samples[WANTED])
        return masked_mean(each, of_agents(samples.get(ACTIVE, None), each, batch_dims=1))

    def scalars(self) -> dict[str, float]:
        """The numbers of the config as they stand, by name; those that are off are left out."""
        return scalars(self.config)

    def set_scalar(self, name: str, value: float) -> None:
        """Give a number of the config another value from the next batch on, as schedules do."""
        self.config = with_scalar(self.config, name, value, owner=self)
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next `learn` depends on: nested dicts of tensors and numbers."""
        return {
            "actor_critic": module_state(self.actor_critic),
            "optimizer": optimizer_state(self.optimizer, self.actor_critic),
            "generator": self.generator.get_state(),
            "buffer": {} if self.buffer is None else self.buffer.to_dict(),
            "scalars": self.scalars(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue as the algorithm that gave `state` would have."""
        load_module_state(self.actor_critic, state["actor_critic"], name="actor_critic")
        load_optimizer_state(self.optimizer, self.actor_critic, state["optimizer"])
        self.generator.set_state(state["generator"].cpu())
        kept = state["buffer"]
        size = len(kept[WANTED]) if kept else 0
        self.buffer = TensorDict(kept, batch_size=[size], device=self.device).clone() if kept else None
        for name, value in state["scalars"].items():
            self.set_scalar(name, value)
