"""Actor and critic of composed actions for off-policy learning, each with an encoder of its own."""

from __future__ import annotations

from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.actions.composed import ComposedLayout
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec
from edgewise.models.agents.linear import FastLinear
from edgewise.models.composed_head import ComposedHead, Contexts, Embedded
from edgewise.models.config import ModelConfig, ValueConfig
from edgewise.models.distributions.composed import ComposedDistribution, Values
from edgewise.models.graph_features import GraphFeatures


class ComposedActor(GraphFeatures):
    """A policy over composed actions.

    Args:
        graph: shape and edge source of the graphs.
        layout: the parts.
        config: see `ValueConfig`.
    """

    def __init__(self, graph: GraphSpec, layout: ComposedLayout, config: ValueConfig) -> None:
        super().__init__(graph, layout, config, role="actor")
        model = ModelConfig(
            encoder=config.encoder, head_hidden=(config.hidden, config.hidden), pool=config.pool
        )
        self.head = ComposedHead(graph, model, layout=layout)

    def forward(self, observation: TensorDictBase, *, check: bool = False) -> ComposedDistribution:  # type: ignore[override]
        """Return the distribution; with `check`, a world without a legal choice is an error."""
        self.head.set_graph(self.graph)
        self.head.checks = check
        return self.head(self.encoder(observation.get(GRAPH)), observation)


class ComposedCritic(GraphFeatures):
    """The value of composed actions: an MLP over the pooled graph and the embedded values of all parts.

    Args:
        graph: shape and edge source of the graphs.
        layout: the parts.
        config: see `ValueConfig`.
    """

    layout: ComposedLayout

    def __init__(self, graph: GraphSpec, layout: ComposedLayout, config: ValueConfig) -> None:
        super().__init__(graph, layout, config, role="critic")
        width, hidden = self.encoder.hidden, config.hidden
        self.contexts = Contexts(layout.parts, graph, width)
        self.of_graph = FastLinear(width, hidden)
        self.of_action = FastLinear(width, hidden)
        self.second = FastLinear(hidden, hidden)
        self.value = nn.Linear(hidden, 1)

    def embed(self, observation: TensorDictBase) -> Embedded:
        """Return what the critic reads of an observation, once for any number of actions."""
        h, uses_edges = self.encoder(observation.get(GRAPH)), self.layout.uses_edges
        return Embedded.of(h, observation, self.graph, uses_edges=uses_edges, pool=self.pool)

    def forward(self, seen: Embedded, values: Values) -> Tensor:  # type: ignore[override]
        """Return values `[*S, *B]` of actions whose parts have the values `[*S, *B, ...]`."""
        context = functional.relu(self.contexts(seen, values))
        h = functional.relu(self.of_graph(seen.pooled) + self.of_action(context))
        return self.value(functional.relu(self.second(h))).squeeze(-1)
