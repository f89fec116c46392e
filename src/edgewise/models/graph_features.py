"""Features of deciders from the observed graph: one class for each way in which a graph is acted on."""

from __future__ import annotations

from typing import Literal

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout, ChooseFromSet
from edgewise.graphs.edges import Edges
from edgewise.graphs.keys import ACTIVE, CHOICES, EGO, GRAPH, MASK
from edgewise.graphs.spec import GraphSpec
from edgewise.models.agents.ego import EgoEncoder
from edgewise.models.bridge import pool_nodes
from edgewise.models.build import make_encoder
from edgewise.models.config import ValueConfig
from edgewise.models.decoder import StepNodes
from edgewise.models.edge_heads import EdgeEmbedding, rows_at
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.models.features import Features
from edgewise.models.heads import acting_agents
from edgewise.models.memory import Memory
from edgewise.models.size_classes import SizeClass, num_choices, size_classes, whole
from edgewise.plugins.addresses import resolve_part

Role = Literal["actor", "critic"]


class Instances:
    """Graphs that are described once, and their embeddings, computed when they are first read.

    Args:
        graph: of the instances, `[I]`.
    """

    def __init__(self, graph: TensorDictBase) -> None:
        self.graph = graph
        self._encoded: Tensor | None = None

    def encoded(self, encoder: GraphEncoder) -> Tensor:
        """Return the node embeddings `[I, N, C]`."""
        if self._encoded is None:
            self._encoded = encoder(self.graph)
        return self._encoded


class GraphFeatures(Features):
    """Base of features from the observed graph, through any encoder.

    The features of a decider or a choice are the embedding of its node or edge. Those of a critic also have
    the pooled graph, if `config.pooled`: the value of a choice depends on the whole state, and the messages
    of a few layers do not reach that far.

    Where an environment describes an instance once, an observation `[M]` is one step of each of M instances,
    and `[I, Q]` are Q steps of each of I instances, which are encoded once. With `instances`, any
    observations are of these, in order.

    Args:
        graph: shape and edge source of the graphs.
        layout: action layout.
        config: see `ValueConfig`.
        role: whether actions or values are computed from the features.
    """

    layout: ActionLayout

    def __init__(self, graph: GraphSpec, layout: ActionLayout, config: ValueConfig, *, role: Role) -> None:
        super().__init__()
        self.layout, self.pool = layout, config.pool
        self.pooled = config.pooled and role == "critic"
        self.encoder = make_encoder(graph, config.encoder, of=role)
        heads = config.encoder.heads
        self.steps = None if graph.step is None else StepNodes(self.encoder.hidden, heads, graph.step)
        self.instances: Instances | None = None
        self.width = self.encoder.hidden * (2 if self.pooled else 1)

    @property
    def graph(self) -> GraphSpec:
        """Shape and edge source of the graphs; may be replaced by another topology or edge rule."""
        return self.encoder.graph

    @graph.setter
    def graph(self, graph: GraphSpec) -> None:
        self.encoder.graph = graph

    def classes(self, observation: TensorDictBase) -> list[SizeClass] | None:
        """Divide a batch by the size of its graphs; None if it should stay whole."""
        if self.steps is not None or not self.encoder.any_size:
            return None
        layout, keys = self.layout, (GRAPH, MASK, CHOICES, ACTIVE)
        return size_classes(observation, self.graph, layout=layout, keys=keys, num_agents=layout.num_agents)

    def whole(self, observation: TensorDictBase) -> TensorDictBase:
        """Return the observation with padded tensors."""
        return whole(observation)

    def num_choices(self, observation: TensorDictBase) -> int | None:
        """Return the number of choices in the whole batch, if they are nodes or edges."""
        return num_choices(observation, self.layout) if self.per_choice else None

    def forward(self, observation: TensorDictBase) -> Tensor:
        """Return the features of deciders or choices."""
        observation = whole(observation)
        if self.steps is None:
            h = self.encoder(observation.get(GRAPH))
        else:
            instances = self.instances or Instances(_instances_of(observation))
            h = self.steps(instances.encoded(self.encoder), instances.graph, observation)
        own = self.select(h, observation)
        if not self.pooled:
            return own
        pooled = pool_nodes(h, observation.get(GRAPH).get("node_mask"), how=self.pool)
        pooled = pooled.reshape(*pooled.shape[:-1], *(1,) * (own.dim() - pooled.dim()), pooled.shape[-1])
        return torch.cat((own, pooled.expand(*own.shape[:-1], pooled.shape[-1])), -1)

    def select(self, h: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the embeddings of deciders or choices from those of nodes, `[*B, N, C]`."""
        raise NotImplementedError

    def legal(self, observation: TensorDictBase) -> Tensor | None:
        """Return the legal choices of every decider, `[*D, K]` bool; None if actions are continuous."""
        choices = self.layout.choices(observation, self.graph)
        return None if choices is None else choices.legal


class NodeFeatures(GraphFeatures):
    """Each node is a choice: `[*B, N, width]`."""

    per_choice = True

    def select(self, h: Tensor, observation: TensorDictBase) -> Tensor:  # noqa: ARG002
        """Return the embeddings of all nodes."""
        return h


class AgentFeatures(GraphFeatures):
    """The first nodes are the deciders: `[*B, A, width]`.

    With a memory, an observation of one step gets the hidden states before and after it, and a sequence of
    steps `[M, L]`, which has `("next", "done")`, starts with its first hidden state.

    Attributes:
        burn_in: steps at the beginning of a sequence that only warm up the memory.
    """

    burn_in = 0

    def __init__(self, graph: GraphSpec, layout: ActionLayout, config: ValueConfig, *, role: Role) -> None:
        super().__init__(graph, layout, config, role=role)
        agents, width = layout.num_agents, self.encoder.hidden
        self.memory = Memory("values", width, num_agents=agents) if config.recurrent else None

    def classes(self, observation: TensorDictBase) -> list[SizeClass] | None:
        """Divide a batch by the size of its graphs; None if it should stay whole, as with a memory."""
        return None if self.memory is not None else super().classes(observation)

    def select(self, h: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the embeddings of the agents' nodes, or of what they remember."""
        if self.memory is None:
            agents: int = acting_agents(observation, self.layout.num_agents).shape[-1]
            return h[..., :agents, :]
        if observation.get(("next", "done"), None) is None:
            return self.memory.step(h, observation)
        return self.memory.norm(self.memory.hidden_states(h, observation, burn_in=self.burn_in))

    def remembered(self, sequences: TensorDictBase) -> Tensor:
        """Return the hidden states after each step of sequences `[M, L]`, `[M, L, A, C]`."""
        assert self.memory is not None
        return self.memory.hidden_states(self.encoder(sequences.get(GRAPH)), sequences)


class EdgeFeatures(GraphFeatures):
    """Each edge slot is a decider: `[*B, E, width]`."""

    def __init__(self, graph: GraphSpec, layout: ActionLayout, config: ValueConfig, *, role: Role) -> None:
        super().__init__(graph, layout, config, role=role)
        self.edges = EdgeEmbedding(graph, channels=self.encoder.hidden, width=self.encoder.hidden)

    def select(self, h: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the embeddings of all edge slots."""
        return self.edges(h, self.graph.edges_of(observation.get(GRAPH)))


class EdgeChoiceFeatures(EdgeFeatures):
    """Each edge slot is a choice: `[*B, E, width]`."""

    per_choice = True


class GroupFeatures(EdgeFeatures):
    """Each group of edges is a decider between its edges and a learnt `none`: `[*B, G, 1 + K, width]`."""

    per_choice = True

    def __init__(self, graph: GraphSpec, layout: ActionLayout, config: ValueConfig, *, role: Role) -> None:
        super().__init__(graph, layout, config, role=role)
        self.none = nn.Parameter(torch.zeros(self.encoder.hidden))

    def select(self, h: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the embeddings of none and of each edge of each group."""
        groups, size = observation.get(MASK).shape[-2], observation.get(MASK).shape[-1] - 1
        edges = self.graph.edges_of(observation.get(GRAPH))
        first = Edges(
            edges.index[..., : groups * size],
            edges.mask[..., : groups * size],
            None if edges.attr is None else edges.attr[..., : groups * size, :],
        )
        embedded = self.edges(h, first).unflatten(-2, (groups, size))
        return torch.cat((self.none.expand(*embedded.shape[:-2], 1, embedded.shape[-1]), embedded), -2)


class SetFeatures(GraphFeatures):
    """Each member of the offered set, a node or an edge, is a choice: `[*B, K, width]`."""

    per_choice = True

    def __init__(self, graph: GraphSpec, layout: ChooseFromSet, config: ValueConfig, *, role: Role) -> None:
        super().__init__(graph, layout, config, role=role)
        width = self.encoder.hidden
        of_edges = layout.members == "edges"
        self.edges = EdgeEmbedding(graph, channels=width, width=width) if of_edges else None

    def select(self, h: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the embeddings of the members."""
        place = torch.where(observation.get(MASK), observation.get(CHOICES), 0)
        if self.edges is None:
            return rows_at(h, place)
        edges = self.graph.edges_of(observation.get(GRAPH))
        ends = edges.index.gather(-1, place.unsqueeze(-2).expand(*place.shape[:-1], 2, place.shape[-1]))
        attr = None if edges.attr is None else rows_at(edges.attr, place)
        return self.edges(h, Edges(ends, edges.mask.gather(-1, place), attr))


class EgoFeatures(Features):
    """What each agent observes by itself: `[*B, A, width]`, from `agents.ego`.

    Args:
        encoder: of that observation.
    """

    def __init__(self, encoder: EgoEncoder) -> None:
        super().__init__()
        self.ego, self.width = encoder, encoder.width

    def forward(self, observation: TensorDictBase) -> Tensor:
        """Return the features of every agent."""
        return self.ego(observation.get(EGO))

    def legal(self, observation: TensorDictBase) -> Tensor | None:
        """Return `action_mask`, if there is one."""
        mask: Tensor | None = observation.get(MASK, None)
        return mask


class BothFeatures(Features):
    """Features from the graph and from `agents.ego`, concatenated: `[*B, A, width]`.

    Args:
        graph: features from the graph.
        ego: features from `agents.ego`.
    """

    def __init__(self, graph: GraphFeatures, ego: EgoFeatures) -> None:
        super().__init__()
        self.of_graph, self.of_ego = graph, ego
        self.width = graph.width + ego.width

    def forward(self, observation: TensorDictBase) -> Tensor:
        """Return the features of every agent."""
        return torch.cat((self.of_graph(observation), self.of_ego(observation)), -1)

    def legal(self, observation: TensorDictBase) -> Tensor | None:
        """Return the legal choices of every agent."""
        return self.of_graph.legal(observation)


def _instances_of(observation: TensorDictBase) -> TensorDictBase:
    """Return the graphs of the instances of observations `[M]` or `[I, Q]`."""
    graph: TensorDictBase = observation.get(GRAPH)
    return graph[:, 0] if observation.batch_dims > 1 else graph


def make_graph_features(
    graph: GraphSpec, layout: ActionLayout, config: ValueConfig, *, role: Role
) -> GraphFeatures:
    """Build the features that an action layout names.

    Raises:
        ConfigError: action values cannot be learned for the layout, or nobody can have a memory.
    """
    features: type[GraphFeatures] = resolve_part(layout.features)
    if config.recurrent and not issubclass(features, AgentFeatures):
        raise ConfigError(
            f"model.recurrent: agents have a memory each, and {type(layout).__name__} has no agents",
            hint="leave it out",
        )
    return features(graph, layout, config, role=role)
