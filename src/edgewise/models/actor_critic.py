"""Actors and critics on graphs as TensorDict modules."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from tensordict import NestedKey, TensorDict
from tensordict.nn import TensorDictModuleBase
from torch import Tensor, nn
from torch.distributions import Distribution

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.keys import ACTIVE, GRAPH
from edgewise.graphs.masks import unless_all
from edgewise.graphs.spec import GraphSpec
from edgewise.models.acting import OtherGraphs, set_action
from edgewise.models.actor_function import ActorFunction
from edgewise.models.bridge import pool_nodes
from edgewise.models.build import make_encoder, make_head
from edgewise.models.config import ModelConfig
from edgewise.models.distributions.joined import Joined
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.models.heads import Head, acting_agents, feed_forward
from edgewise.models.instance_actor import InstanceActorCritic, make_instance_actor_critic
from edgewise.models.memory import Memory
from edgewise.models.size_classes import SizeClass, joined_rows, num_choices, size_classes, whole


class HasGraph(Protocol):
    """The part of an environment that a model needs."""

    @property
    def graph(self) -> GraphSpec:
        """The shape of its graphs."""

    @property
    def actions(self) -> ActionLayout:
        """Its action layout."""


class Actor(OtherGraphs, TensorDictModuleBase):
    """A stochastic policy on graphs: writes `action` and `action_log_prob`.

    It samples an action unless TorchRL's exploration type is deterministic. It is one module rather than a
    `ProbabilisticActor`, whose overhead exceeds the time of a small graph network.

    A recurrent actor also writes its hidden states, and those of its critic.

    Args:
        encoder: maps graphs to node embeddings.
        head: maps node embeddings to a distribution over actions.
        memory: recurrent cell of the agents; None for a feed-forward actor.
    """

    log_prob_keys = ("action_log_prob",)
    dist_sample_keys = ("action",)

    def __init__(self, encoder: GraphEncoder, head: Head, memory: Memory | None = None) -> None:
        super().__init__()
        self.encoder, self.head, self.memory = encoder, head, memory
        self.in_keys = [*head.in_keys, *([] if memory is None else [memory.key])]
        self.out_keys = ["action", "action_log_prob"]
        self._carried_critics: tuple[Critic, ...] = ()

    def carry_critic_memory(self, critic: Critic) -> None:
        """Write the critic's hidden states too while acting; the critic does not become a submodule."""
        self._carried_critics = (critic,)

    def get_dist(self, tensordict: TensorDict) -> Distribution:
        """Return the distribution over actions, batch `[*B]`, or `[*B, A]` for agents."""
        if (classes := self.classes(tensordict)) is not None:
            parts = [(each.rows, self._get_dist(each.observation)) for each in classes]
            return self.joined(parts, tensordict)
        return self._get_dist(whole(tensordict))

    def classes(self, tensordict: TensorDict, *more: NestedKey) -> list[SizeClass] | None:
        """Divide a batch by the size of its graphs; None if it should stay whole. `more` is read too."""
        if self.memory is not None or self._carried_critics or not self.encoder.any_size:
            return None
        layout, keys = self.head.layout, (*self.in_keys, ACTIVE, *more)
        return size_classes(
            tensordict, self.encoder.graph, layout=layout, keys=keys, num_agents=layout.num_agents
        )

    def joined(self, parts: list[tuple[Tensor, Distribution]], tensordict: TensorDict) -> Distribution:
        """Return the distribution of a batch from those of its classes."""
        choices = num_choices(tensordict, self.head.layout)
        return Joined(parts, tensordict.batch_size, num_choices=choices)

    def _get_dist(self, tensordict: TensorDict) -> Distribution:
        h = self.encoder(tensordict.get(GRAPH))
        return self.head(h if self.memory is None else self.memory(h, tensordict), tensordict)

    def set_graph(self, graph: GraphSpec) -> None:
        """Use another topology or edge rule from now on; features and node types must be the same."""
        self.encoder.graph = graph
        self.head.set_graph(graph)
        for critic in self._carried_critics:
            critic.encoder.graph = graph

    def as_function(self, env: Any) -> ActorFunction:
        """Return the actor as a function of named tensors, for export."""
        return ActorFunction(self.encoder, self.head, self.memory, env=env)

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """Sample an action in every world, or take the mode if exploration is off."""
        if self.memory is None and not self._carried_critics:
            return set_action(self.get_dist(tensordict), tensordict)
        return self.act_from_nodes(self.encoder(tensordict.get(GRAPH)), tensordict)

    def act_from_nodes(self, h: Tensor, tensordict: TensorDict) -> TensorDict:
        """Act as `forward` does, given the node embeddings `[*B, N, C]`."""
        for critic in self._carried_critics:
            critic.store_memory(h if critic.encoder is self.encoder else None, tensordict)
        dist = self.head(h if self.memory is None else self.memory.step(h, tensordict), tensordict)
        return set_action(dist, tensordict)


class Critic(TensorDictModuleBase):
    """A value function on graphs: writes `state_value`.

    Its shape is `[*B, 1]` for critic `graph`, and `[*B, A, 1]` for `node` and `central`.

    Args:
        encoder: maps graphs to node embeddings.
        config: kind of critic, pooling, and widths of the value head.
        num_agents: A, if the observation does not determine it.
        memory: recurrent cell of the agents; None for a feed-forward critic.
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
        """Compute the values of every world."""
        return tensordict.set("state_value", self.values(tensordict))

    def values(self, tensordict: TensorDict) -> Tensor:
        """Return the values of every world."""
        classes = None
        if self.memory is None and self.encoder.any_size:
            classes = size_classes(
                tensordict, self.encoder.graph, layout=None, keys=self.in_keys, num_agents=self.num_agents
            )
        if classes is None:
            return self._values(whole(tensordict))
        parts = [(each.rows, self._values(each.observation)) for each in classes]
        return joined_rows(parts, tensordict.batch_size)

    def _values(self, tensordict: TensorDict) -> Tensor:
        return self.value_from_nodes(self.encoder(tensordict.get(GRAPH)), tensordict)

    def store_memory(self, h: Tensor | None, tensordict: TensorDict) -> None:
        """Write the hidden states before and after this step; `h` are the node embeddings, if known."""
        assert self.memory is not None
        self.memory.step(self.encoder(tensordict.get(GRAPH)) if h is None else h, tensordict)

    def value_from_nodes(self, h: Tensor, tensordict: TensorDict, *, chunks: bool = False) -> Tensor:
        """Compute values from node embeddings `[*B, N, C]`; with `chunks` the last dimension of B is time."""
        exists = tensordict.get(GRAPH).get("node_mask")
        if self.kind == "graph":
            return self.value(pool_nodes(h, exists, how=self.pool))
        agents = acting_agents(tensordict, self.num_agents).shape[-1]
        if self.memory is None:
            own = h[..., :agents, :]
        else:
            own = self.memory.unroll(h, tensordict) if chunks else self.memory(h, tensordict)
        if self.kind == "central":
            pooled = pool_nodes(h, exists, how=self.pool).unsqueeze(-2)
            own = torch.cat((own, pooled.expand_as(own)), -1)
        values, absent = self.value(own), unless_all(exists[..., :agents])
        return values if absent is None else values.masked_fill(~absent.unsqueeze(-1), 0.0)


class ValuingActor(TensorDictModuleBase):
    """An actor that also writes `state_value`, by one pass through the encoder that it shares with a critic.

    Args:
        actor: writes `action` and `action_log_prob`.
        critic: a feed-forward critic with the encoder of the actor.
    """

    def __init__(self, actor: Actor, critic: Critic) -> None:
        super().__init__()
        if critic.encoder is not actor.encoder or critic.memory is not None:
            raise ValueError("the actor writes values only of a feed-forward critic that shares its encoder")
        self.actor, self.critic = actor, critic
        self.in_keys = [*actor.in_keys, *(key for key in critic.in_keys if key not in actor.in_keys)]
        self.out_keys = [*critic.out_keys, *actor.out_keys]

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """Compute the values of every world, and act."""
        distribution, value = evaluate_together(self.actor, self.critic, tensordict)
        return set_action(distribution, tensordict.set("state_value", value))


class ActorCritic(nn.Module):
    """An actor and a critic, which may share an encoder.

    Args:
        actor: writes `action` and `action_log_prob`.
        critic: writes `state_value`.
    """

    def __init__(self, actor: Actor, critic: Critic) -> None:
        super().__init__()
        self.actor, self.critic = actor, critic
        if critic.memory is not None:
            actor.carry_critic_memory(critic)

    @property
    def recurrent(self) -> bool:
        """Whether the models are recurrent; samples are then chunks of consecutive steps."""
        return self.actor.memory is not None

    @property
    def shared(self) -> bool:
        """Whether actor and critic share one encoder."""
        return self.actor.encoder is self.critic.encoder

    def valuing_actor(self) -> ValuingActor | None:
        """Return the actor with the critic's values; None if they would need a further encoder pass."""
        return ValuingActor(self.actor, self.critic) if self.shared and not self.recurrent else None

    def evaluate(self, tensordict: TensorDict) -> tuple[Distribution, Tensor]:
        """Return the actor's distribution and the critic's values, with one pass through a shared encoder.

        For recurrent models, `tensordict` has chunks `[*B, L]` of L consecutive steps of one world each.
        """
        memory = self.actor.memory
        if memory is None:
            return evaluate_together(self.actor, self.critic, tensordict)
        tensordict = whole(tensordict)
        h = self.actor.encoder(tensordict.get(GRAPH))
        critic_h = h if self.shared else self.critic.encoder(tensordict.get(GRAPH))
        values = self.critic.value_from_nodes(critic_h, tensordict, chunks=True)
        return self.actor.head(memory.unroll(h, tensordict), tensordict), values

    def set_graph(self, graph: GraphSpec) -> None:
        """Use another topology or edge rule from now on; features and node types must be the same.

        Graphs with other numbers of nodes, agents or edges need no call.
        """
        self.actor.set_graph(graph)
        self.critic.encoder.graph = graph


def evaluate_together(actor: Actor, critic: Critic, tensordict: TensorDict) -> tuple[Distribution, Tensor]:
    """Return the distribution and the values of feed-forward models; a shared encoder runs once."""

    def evaluate(part: TensorDict) -> tuple[Distribution, Tensor]:
        h = actor.encoder(part.get(GRAPH))
        critic_h = h if critic.encoder is actor.encoder else critic.encoder(part.get(GRAPH))
        return actor.head(h, part), critic.value_from_nodes(critic_h, part)

    classes = actor.classes(tensordict, *critic.in_keys)
    if classes is None:
        return evaluate(whole(tensordict))
    found = [(each.rows, *evaluate(each.observation)) for each in classes]
    distribution = actor.joined([(rows, part) for rows, part, _ in found], tensordict)
    values = joined_rows([(rows, value) for rows, _, value in found], tensordict.batch_size)
    return distribution, values


def actor_critic_of(env: HasGraph, config: Any) -> ActorCritic | InstanceActorCritic:
    """Build the actor and the critic of a run's config for an environment."""
    return make_actor_critic(env.graph, env.actions, config.model)


def make_actor_critic(
    graph: GraphSpec, actions: ActionLayout, config: ModelConfig | None = None
) -> ActorCritic | InstanceActorCritic:
    """Build an actor and a critic for an environment's graphs and action layout.

    If the environment describes an instance once, they encode it once; see `InstanceActor`.

    Args:
        graph: an environment's `graph`.
        actions: an environment's `actions`.
        config: see `ModelConfig`.

    Raises:
        ConfigError: the critic or the recurrence needs agents, and the action layout has none.

    Example:
        >>> import edgewise as ew
        >>> env = ew.make_env("graphwalk", num_envs=64)
        >>> actor_critic = make_actor_critic(env.graph, env.actions)
        >>> actor_critic.actor(env.reset())["action_log_prob"].shape
        torch.Size([64])
    """
    config = config or ModelConfig()
    if graph.step is not None:
        return make_instance_actor_critic(graph, actions, config)
    agents = actions.num_agents
    if config.critic == "auto":
        config = config.model_copy(update={"critic": "central" if agents else "graph"})
    if config.critic != "graph" and not agents:
        raise ConfigError(
            f"model.critic: {config.critic} values each agent, and {type(actions).__name__} has none",
            hint="set it to graph",
        )
    if config.recurrent and config.critic == "graph":
        raise ConfigError(
            "model.recurrent: recurrent models have one hidden state per agent, also in the critic; got the "
            f"critic graph and {type(actions).__name__}",
            hint="where agents act, set model.critic to node or central; elsewhere leave model.recurrent out",
        )

    def memory(name: str) -> Memory | None:
        return Memory(name, config.encoder.hidden, num_agents=agents) if config.recurrent else None

    encoder = make_encoder(graph, config.encoder)
    actor = Actor(encoder, make_head(graph, actions, config), memory("actor"))
    trunk = encoder if config.shared_trunk else make_encoder(graph, config.encoder, of="critic")
    return ActorCritic(actor, Critic(trunk, config, num_agents=agents, memory=memory("critic")))
