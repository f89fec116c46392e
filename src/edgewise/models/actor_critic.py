"""Actors and critics as TensorDict modules: what rollouts, losses and value estimators call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from tensordict import TensorDict
from tensordict.nn import InteractionType, TensorDictModuleBase
from tensordict.nn.probabilistic import interaction_type
from torch import Tensor, nn
from torch.distributions import Distribution

from edgewise.graphs.actions import ActionLayout, AgentsContinuous, AgentsDiscrete
from edgewise.graphs.bridge import pool_nodes
from edgewise.graphs.keys import ACTIVE, GRAPH
from edgewise.graphs.spec import GraphSpec
from edgewise.models.build import make_encoder, make_head
from edgewise.models.config import ModelConfig
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.models.heads import Head, acting_agents, feed_forward
from edgewise.models.memory import Memory

_DETERMINISTIC = (InteractionType.DETERMINISTIC, InteractionType.MODE, InteractionType.MEAN)


class HasGraph(Protocol):
    """An environment, as far as a model needs to know it."""

    @property
    def graph(self) -> GraphSpec:
        """The shape of its graphs."""

    @property
    def actions(self) -> ActionLayout:
        """How it is acted on."""


class Actor(TensorDictModuleBase):
    """Acts on a graph: writes `action` and `action_log_prob`.

    Draws at random unless TorchRL's exploration type asks for a deterministic action. This is one module
    rather than a `ProbabilisticActor`, whose machinery costs more than a small graph network.

    With a memory it also carries what its agents remember, and what those of a critic that goes with it do.

    Args:
        encoder: graph to node embeddings.
        head: node embeddings to a distribution.
        memory: from one step to the next; None for actors that look at the present alone.
    """

    log_prob_keys = ("action_log_prob",)
    dist_sample_keys = ("action",)

    def __init__(self, encoder: GraphEncoder, head: Head, memory: Memory | None = None) -> None:
        super().__init__()
        self.encoder, self.head, self.memory = encoder, head, memory
        self.in_keys = [*head.in_keys, *([] if memory is None else [memory.key])]
        self.out_keys = ["action", "action_log_prob"]
        self._companions: tuple[Critic, ...] = ()

    def take_along(self, critic: Critic) -> None:
        """Carry the critic's memory too while acting; the critic stays a module of its own."""
        self._companions = (critic,)

    def get_dist(self, tensordict: TensorDict) -> Distribution:
        """The distribution over actions in the states of `tensordict`, batch `[*B]` or `[*B, A]`."""
        h = self.encoder(tensordict.get(GRAPH))
        return self.head(h if self.memory is None else self.memory(h, tensordict), tensordict)

    def retarget(self, graph: GraphSpec) -> None:
        """Run on graphs of another topology or rule from now on; features and types must be the same."""
        self.encoder.graph = graph
        self.head.retarget(graph)
        for critic in self._companions:
            critic.encoder.graph = graph

    @contextmanager
    def on(self, env: HasGraph) -> Iterator[None]:
        """Act in an environment of another topology or edge rule inside, and in its own again after."""
        own = self.encoder.graph
        self.retarget(env.graph)
        try:
            yield
        finally:
            self.retarget(own)

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """Choose an action in every world."""
        h = self.encoder(tensordict.get(GRAPH))
        for critic in self._companions:
            critic.remember(h if critic.encoder is self.encoder else None, tensordict)
        dist = self.head(h if self.memory is None else self.memory.remember(h, tensordict), tensordict)
        action = dist.mode.detach() if interaction_type() in _DETERMINISTIC else dist.sample()
        tensordict.set("action", action)
        return tensordict.set("action_log_prob", dist.log_prob(action))


class Critic(TensorDictModuleBase):
    """Values states: writes `state_value`.

    It is `[*B, 1]` for critic `graph` and `[*B, A, 1]` for `node` and `central`.

    Args:
        encoder: graph to node embeddings.
        config: which critic, how to pool, and the head's widths.
        num_agents: A, where the observation does not say it.
        memory: from one step to the next, of each agent; None for critics that look at the present alone.
    """

    def __init__(
        self, encoder: GraphEncoder, config: ModelConfig, *, num_agents: int, memory: Memory | None = None
    ) -> None:
        super().__init__()
        self.encoder, self.kind, self.pool, self.num_agents = encoder, config.critic, config.pool, num_agents
        width = config.encoder.hidden * (2 if config.critic == "central" else 1)
        self.value = feed_forward(width, config.head_hidden, 1)
        self.memory = memory
        self.in_keys = [GRAPH] if config.critic == "graph" else [GRAPH, ACTIVE]
        self.in_keys += [] if memory is None else [memory.key]
        self.out_keys = ["state_value"]

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """Value every world."""
        h = self.encoder(tensordict.get(GRAPH))
        return tensordict.set("state_value", self.from_nodes(h, tensordict))

    def remember(self, h: Tensor | None, tensordict: TensorDict) -> None:
        """Write what it remembers before and after this step; `h` are its encoder's embeddings, if known."""
        assert self.memory is not None
        self.memory.remember(self.encoder(tensordict.get(GRAPH)) if h is None else h, tensordict)

    def from_nodes(self, h: Tensor, tensordict: TensorDict, *, chunks: bool = False) -> Tensor:
        """Values from node embeddings `[*B, N, C]`; in `chunks` the last dimension of B is time."""
        exists = tensordict.get(GRAPH).get("node_mask")
        if self.kind == "graph":
            return self.value(pool_nodes(h, exists, how=self.pool))
        agents = acting_agents(tensordict, self.num_agents).shape[-1]
        if self.memory is None:
            own = h[..., :agents, :]
        else:
            own = self.memory.unroll(h, tensordict) if chunks else self.memory(h, tensordict)
        if self.kind == "central":
            whole = pool_nodes(h, exists, how=self.pool).unsqueeze(-2)
            own = torch.cat((own, whole.expand_as(own)), -1)
        return self.value(own).masked_fill(~exists[..., :agents].unsqueeze(-1), 0.0)


class ActorCritic(nn.Module):
    """An actor and the critic that goes with it.

    Args:
        actor: writes `action`, `action_log_prob`.
        critic: writes `state_value`.
    """

    def __init__(self, actor: Actor, critic: Critic) -> None:
        super().__init__()
        self.actor, self.critic = actor, critic
        if critic.memory is not None:
            actor.take_along(critic)

    @property
    def recurrent(self) -> bool:
        """Whether agents remember; samples are then chunks of time."""
        return self.actor.memory is not None

    @property
    def shared(self) -> bool:
        """Whether both stand on one encoder."""
        return self.actor.encoder is self.critic.encoder

    def evaluate(self, tensordict: TensorDict) -> tuple[Distribution, Tensor]:
        """The actor's distribution and the critic's values, with one pass through a shared encoder.

        Where agents remember, `tensordict` holds chunks `[*B, L]`, each L steps of one world in a row.
        """
        graph, memory = tensordict.get(GRAPH), self.actor.memory
        h = self.actor.encoder(graph)
        theirs = h if self.shared else self.critic.encoder(graph)
        values = self.critic.from_nodes(theirs, tensordict, chunks=self.recurrent)
        own = h if memory is None else memory.unroll(h, tensordict)
        return self.actor.head(own, tensordict), values

    def retarget(self, graph: GraphSpec) -> None:
        """Run on graphs of another topology or rule from now on; features and types must be the same.

        A graph that only has more or fewer nodes, agents or edges needs no call.
        """
        self.actor.retarget(graph)
        self.critic.encoder.graph = graph


def actor_critic_of(env: HasGraph, config: Any) -> ActorCritic:
    """Build the actor and the critic of a run's config for an environment."""
    return make_actor_critic(env.graph, env.actions, config.model)


def make_actor_critic(
    graph: GraphSpec, actions: ActionLayout, config: ModelConfig | None = None
) -> ActorCritic:
    """An actor and a critic for graphs of one shape and one way to act.

    Args:
        graph: an environment's `graph`.
        actions: an environment's `actions`.
        config: see `ModelConfig`.
    """
    config = config or ModelConfig()
    agents = actions.num_agents if isinstance(actions, AgentsDiscrete | AgentsContinuous) else 0
    if config.critic == "auto":
        config = config.model_copy(update={"critic": "central" if agents else "graph"})
    if config.critic != "graph" and not agents:
        raise ValueError(
            f'critic="{config.critic}" values each agent, and {type(actions).__name__} has none: '
            'use critic="graph"'
        )
    if config.recurrent and config.critic == "graph":
        raise ValueError(
            'recurrent models remember for each agent: use them where agents act, with critic="node" or '
            f'"central", not with {type(actions).__name__} and critic="graph"'
        )

    def memory(name: str) -> Memory | None:
        return Memory(name, config.encoder.hidden, num_agents=agents) if config.recurrent else None

    encoder = make_encoder(graph, config.encoder)
    actor = Actor(encoder, make_head(graph, actions, config), memory("actor"))
    trunk = encoder if config.shared_trunk else make_encoder(graph, config.encoder, of="critic")
    return ActorCritic(actor, Critic(trunk, config, num_agents=agents, memory=memory("critic")))
