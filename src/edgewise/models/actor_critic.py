"""Actors and critics as TensorDict modules: what rollouts, losses and value estimators call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from tensordict import TensorDict
from tensordict.nn import InteractionType, TensorDictModuleBase
from tensordict.nn.probabilistic import interaction_type
from torch import Tensor, nn
from torch.distributions import Distribution

from edgewise.graphs.actions import ActionLayout, AgentsContinuous, AgentsDiscrete
from edgewise.graphs.bridge import pool_nodes
from edgewise.graphs.spec import GRAPH, GraphSpec
from edgewise.models.build import make_encoder, make_head
from edgewise.models.config import ModelConfig
from edgewise.models.encoder import GraphEncoder
from edgewise.models.heads import ACTIVE, Head, acting_agents, feed_forward

_DETERMINISTIC = (InteractionType.DETERMINISTIC, InteractionType.MODE, InteractionType.MEAN)


class Actor(TensorDictModuleBase):
    """Acts on a graph: writes `action` and `action_log_prob`.

    Draws at random unless TorchRL's exploration type asks for a deterministic action. This is one module
    rather than a `ProbabilisticActor`, whose machinery costs more than a small graph network.

    Args:
        encoder: graph to node embeddings.
        head: node embeddings to a distribution.
    """

    log_prob_keys = ("action_log_prob",)
    dist_sample_keys = ("action",)

    def __init__(self, encoder: GraphEncoder, head: Head) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head
        self.in_keys = list(head.in_keys)
        self.out_keys = ["action", "action_log_prob"]

    def get_dist(self, tensordict: TensorDict) -> Distribution:
        """The distribution over actions in the states of `tensordict`, batch `[*B]` or `[*B, A]`."""
        return self.head(self.encoder(tensordict.get(GRAPH)), tensordict)

    def retarget(self, graph: GraphSpec) -> None:
        """Run on graphs of another topology or rule from now on; features and types must be the same."""
        self.encoder.graph = graph
        self.head.graph = graph

    @contextmanager
    def on(self, graph: GraphSpec) -> Iterator[None]:
        """Run on graphs of another topology or rule inside, and on its own again after."""
        own = self.encoder.graph
        self.retarget(graph)
        try:
            yield
        finally:
            self.retarget(own)

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """Choose an action in every world."""
        dist = self.get_dist(tensordict)
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
    """

    def __init__(self, encoder: GraphEncoder, config: ModelConfig, *, num_agents: int) -> None:
        super().__init__()
        self.encoder, self.kind, self.pool, self.num_agents = encoder, config.critic, config.pool, num_agents
        width = config.encoder.hidden * (2 if config.critic == "central" else 1)
        self.value = feed_forward(width, config.head_hidden, 1)
        self.in_keys = [GRAPH] if config.critic == "graph" else [GRAPH, ACTIVE]
        self.out_keys = ["state_value"]

    def forward(self, tensordict: TensorDict) -> TensorDict:
        """Value every world."""
        h = self.encoder(tensordict.get(GRAPH))
        return tensordict.set("state_value", self.from_nodes(h, tensordict))

    def from_nodes(self, h: Tensor, tensordict: TensorDict) -> Tensor:
        """Values from node embeddings `[*B, N, C]`."""
        exists = tensordict.get(GRAPH).get("node_mask")
        if self.kind == "graph":
            return self.value(pool_nodes(h, exists, how=self.pool))
        agents = acting_agents(tensordict, self.num_agents).shape[-1]
        own = h[..., :agents, :]
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

    @property
    def shared(self) -> bool:
        """Whether both stand on one encoder."""
        return self.actor.encoder is self.critic.encoder

    def evaluate(self, tensordict: TensorDict) -> tuple[Distribution, Tensor]:
        """The actor's distribution and the critic's values, with one pass through a shared encoder."""
        graph = tensordict.get(GRAPH)
        h = self.actor.encoder(graph)
        values = self.critic.from_nodes(h if self.shared else self.critic.encoder(graph), tensordict)
        return self.actor.head(h, tensordict), values

    def retarget(self, graph: GraphSpec) -> None:
        """Run on graphs of another topology or rule from now on; features and types must be the same.

        A graph that only has more or fewer nodes, agents or edges needs no call.
        """
        self.actor.retarget(graph)
        self.critic.encoder.graph = graph


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
    encoder = make_encoder(graph, config.encoder)
    actor = Actor(encoder, make_head(graph, actions, config))
    trunk = encoder if config.shared_trunk else make_encoder(graph, config.encoder)
    return ActorCritic(actor, Critic(trunk, config, num_agents=agents))
