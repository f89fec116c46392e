"""Policy heads that choose a set of nodes with no edge between two of them."""

from __future__ import annotations

from tensordict import TensorDict
from torch import Tensor
from torch.distributions import Distribution

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.dense import dense_edges
from edgewise.graphs.edges import Edges
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology
from edgewise.models.config import ModelConfig
from edgewise.models.heads import Head, allowed_nodes, feed_forward
from edgewise.systems.queueing.models.config import SetModelConfig
from edgewise.systems.queueing.models.decoding import best_maximal_set, take_in_turn
from edgewise.systems.queueing.models.independent_set import IndependentSet
from edgewise.systems.queueing.models.set_tables import SetTables, set_tables


class ChooseIndependentSetHead(Head):
    """One logit per node; nodes that an edge joins in either direction are never chosen together.

    With `sets` of `whole`, `build` returns a `MaximalSetHead` instead.
    """

    outputs = {"logits": "logit of each node's probability, given that no neighbour was taken before it"}  # noqa: RUF012
    decoding = (
        "Go through the allowed nodes in order, and take a node if its logit is positive, or for a random "
        "action with the probability sigmoid(logit), unless an edge joins it to a node that was taken before."
    )
    decode = staticmethod(take_in_turn)
    takes_prior = True

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> None:
        super().__init__(graph, config, layout=layout)
        self.score = feed_forward(config.encoder.hidden, config.head_hidden, 1, gain=config.policy_gain)

    @classmethod
    def build(cls, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> Head:
        """Build the head that `config.sets` names."""
        whole = isinstance(config, SetModelConfig) and config.sets == "whole"
        return (MaximalSetHead if whole else cls)(graph, config, layout=layout)

    def forward(self, h: Tensor, tensordict: TensorDict) -> IndependentSet:
        """Return a distribution over sets `[*B, N]` bool, batch `[*B]`."""
        edges = self.graph.edges_of(tensordict.get(GRAPH))
        adjacent = dense_edges(Edges(edges.index, edges.mask, None, edges.complete), h.shape[-2]).mask
        logits = self.tensors(h, tensordict)["logits"]
        return IndependentSet(logits, allowed_nodes(tensordict), adjacent=adjacent)

    def tensors(self, h: Tensor, tensordict: TensorDict) -> dict[str, Tensor]:
        """Return the logits of nodes; sets are taken from them outside of the network."""
        return {"logits": self.with_prior(self.score(h).squeeze(-1), tensordict)}


class MaximalSetHead(Head):
    """One logit per node; the logit of a maximal set is the sum over its members, see `MaximalSet`.

    The sets of every topology are listed, or put into a diagram, when the head is built; see `set_tables`. So
    the graphs need `Topology` edges.
    """

    outputs = {"logits": "logit of each node; that of a set is the sum over its members"}  # noqa: RUF012
    decoding = (
        "A maximal set is a set of allowed nodes of which no two are joined by an edge and to which no "
        "further allowed node can be added. Take the one with the largest sum of logits, or for a random "
        "action sample one with the softmax of these sums."
    )
    decode = staticmethod(best_maximal_set)
    takes_prior = True

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> None:
        super().__init__(graph, config, layout=layout)
        self.score = feed_forward(config.encoder.hidden, config.head_hidden, 1, gain=config.policy_gain)
        self.set_graph(graph)

    def set_graph(self, graph: GraphSpec) -> None:
        """Prepare the maximal sets of other topologies."""
        super().set_graph(graph)
        tables: SetTables = set_tables(_adjacency(graph))
        self.tables = tables.to(next(self.score.parameters()).device)

    def forward(self, h: Tensor, tensordict: TensorDict) -> Distribution:
        """Return a distribution over sets `[*B, N]` bool, batch `[*B]`."""
        logits, graph = self.tensors(h, tensordict)["logits"], tensordict.get(GRAPH).get("topology")
        return self.tables.distribution(logits, allowed_nodes(tensordict), graph=graph)

    def tensors(self, h: Tensor, tensordict: TensorDict) -> dict[str, Tensor]:
        """Return the logits of nodes; sets are taken from them outside of the network."""
        return {"logits": self.with_prior(self.score(h).squeeze(-1), tensordict)}


def _adjacency(graph: GraphSpec) -> Tensor:
    """Return which nodes of each topology an edge joins in either direction, `[K, N, N]` bool."""
    if not isinstance(graph.edges, Topology):
        raise ConfigError(
            "maximal sets are prepared in advance, which needs graphs with Topology edges, "
            f"not {type(graph.edges).__name__}",
            hint="set model.sets to in_turn",
        )
    bank = graph.edges.bank
    one_way = dense_edges(Edges(bank.index, bank.mask, None), graph.num_nodes).mask
    return one_way | one_way.transpose(-1, -2)
