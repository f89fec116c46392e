"""Random graphs as tensors, many at once, and environments that choose nodes of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.ranges import lower_bound, upper_bound
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.edges import Explicit
from edgewise.graphs.keys import MASK
from edgewise.graphs.spec import GraphSpec
from edgewise.problems.config import SelectionConfig

ConfigT = TypeVar("ConfigT", bound=SelectionConfig)


class SelectionEnv(GraphEnv[ConfigT], Generic[ConfigT]):
    """Base of problems on random graphs in which nodes are chosen one by one.

    The state has `exists [B, N]`, `adjacent [B, N, N]` bool and the edges in slots: `edge_index [B, 2, E]`
    and `edge_mask [B, E]`, every edge in both directions.

    Attributes:
        static_features: number of node features that stay the same.
        edge_features: number of edge features.
    """

    static_features = 1
    edge_features = 0

    def setup(self) -> None:
        """Make edge slots for all pairs of nodes, or for the edges that the family has."""
        config, least = self.config, lower_bound(self.config.num_nodes)
        needed = {"er": 2, "ba": config.attachment + 2, "ws": config.neighbours + 1}[config.family]
        if least < needed:
            raise ConfigError(
                f"num_nodes: got {config.num_nodes}, expected {needed} or more for the family {config.family}"
            )
        if config.family == "ws" and config.neighbours % 2:
            raise ConfigError(f"neighbours: got {config.neighbours}, expected an even number")
        nodes = int(upper_bound(config.num_nodes))
        pairs = nodes * (nodes - 1) // 2
        grown = {"ba": config.attachment * nodes, "ws": config.neighbours * nodes // 2}
        self.num_links = min(grown.get(config.family, pairs), pairs)
        self.register_buffer("pairs", torch.triu_indices(nodes, nodes, 1, device=self.device))
        edges = Explicit(2 * self.num_links, num_features=self.edge_features)
        self.graph = GraphSpec(nodes, self.static_features, edges=edges)
        self.actions = ChooseNode()

    def sample_graphs(self, count: int) -> dict[str, Tensor]:
        """Sample graphs of the family that the config names."""
        config, nodes = self.config, self.graph.num_nodes
        size = self.sample_int(config.num_nodes, count)
        exists = torch.arange(nodes, device=self.device) < size.unsqueeze(-1)
        if config.family == "er":
            density = self.sample_float(config.density, count).view(-1, 1, 1)
            upper = torch.rand(count, nodes, nodes, generator=self.generator, device=self.device) < density
            adjacent = upper.triu(1)
        elif config.family == "ba":
            adjacent = preferential_attachment(
                count, nodes, config.attachment, self.generator, device=self.device
            )
        else:
            adjacent = small_world(size, nodes, config.neighbours, config.rewiring, self.generator)
        adjacent = adjacent | adjacent.mT
        return self.with_edges(exists, adjacent & exists.unsqueeze(-1) & exists.unsqueeze(-2))

    def with_edges(self, exists: Tensor, adjacent: Tensor) -> dict[str, Tensor]:
        """Return the entries of given graphs: nodes `[B, N]` bool and adjacency `[B, N, N]` bool."""
        one, other = self.pairs
        linked = adjacent[:, one, other]
        order = linked.byte().argsort(dim=-1, descending=True, stable=True)[:, : self.num_links]
        ends = self.pairs[:, order].transpose(0, 1)
        return {
            "exists": exists,
            "adjacent": adjacent,
            "edge_index": torch.cat((ends, ends.flip(1)), -1),
            "edge_mask": linked.gather(1, order).repeat(1, 2),
        }

    def spawn(self, count: int) -> Entries:
        """Sample graphs of the family that the config names."""
        return self.begin(self.sample_graphs(count))

    @abstractmethod
    def begin(self, graphs: dict[str, Tensor]) -> Entries:
        """Return the states in which given graphs begin."""

    def described(self, state: TensorDict, x: Tensor, **more: Tensor) -> Entries:
        """Return the graph with node features `x [B, N, F]`."""
        shared = {name: state[name] for name in ("edge_index", "edge_mask")}
        return {"x": x, "node_mask": state["exists"], **shared, **more}


def degrees(state: TensorDict) -> Tensor:
    """Return the number of neighbours of each node, `[B, N]` float."""
    return state["adjacent"].sum(-1).float()


def neighbours_among(state: TensorDict, chosen: Tensor) -> Tensor:
    """Return how many neighbours of each node are in `chosen [B, N]` bool, `[B, N]` float."""
    return (state["adjacent"].float() @ chosen.float().unsqueeze(-1)).squeeze(-1)


def preferential_attachment(
    count: int, nodes: int, links: int, generator: torch.Generator, *, device: torch.device | None = None
) -> Tensor:
    """Sample graphs of Barabási and Albert that grow from a star, `[count, N, N]` bool.

    Their first n nodes are such a graph of n nodes.
    """
    adjacent = torch.zeros(count, nodes, nodes, device=device)
    adjacent[:, 0, 1 : links + 1] = adjacent[:, 1 : links + 1, 0] = 1.0
    degree = adjacent.sum(-1)
    for new in range(links + 1, nodes):
        chosen = torch.multinomial(degree[:, :new], links, generator=generator)
        adjacent[:, new].scatter_(1, chosen, 1.0)
        degree = degree.scatter_add(1, chosen, torch.ones_like(chosen, dtype=degree.dtype))
        degree[:, new] = links
    return adjacent > 0


def small_world(
    size: Tensor, nodes: int, neighbours: int, rewiring: float, generator: torch.Generator
) -> Tensor:
    """Sample graphs of Watts and Strogatz, `[B, N, N]` bool: a ring whose edges are rewired one by one.

    Args:
        size: number of nodes of each graph, `[B]`, at most N.
        nodes: N.
        neighbours: of each node in the ring, half of them on each side.
        rewiring: probability with which the far end of an edge moves to a node that is no neighbour.
        generator: of the random numbers.
    """
    count, device = len(size), size.device
    row, slots = torch.arange(count, device=device), torch.arange(nodes, device=device)
    exists = slots < size.unsqueeze(-1)
    adjacent = torch.zeros(count, nodes, nodes, dtype=torch.bool, device=device)
    for distance in range(1, neighbours // 2 + 1):
        far = (slots + distance) % size.unsqueeze(-1)
        adjacent |= torch.nn.functional.one_hot(far, nodes).bool() & exists.unsqueeze(-1)
    adjacent = adjacent | adjacent.mT
    for distance in range(1, neighbours // 2 + 1):
        for node in range(nodes):
            far = (node + distance) % size
            free = exists & ~adjacent[:, node] & (slots != node)
            moves = torch.rand(count, generator=generator, device=device) < rewiring
            moves = moves & exists[:, node] & adjacent[row, node, far] & free.any(-1)
            priority = torch.rand(count, nodes, generator=generator, device=device)
            new = priority.masked_fill(~free, -1.0).argmax(-1)
            for end, linked in ((far, False), (new, True)):
                value = torch.where(moves, linked, adjacent[row, node, end])
                adjacent[row, node, end] = adjacent[row, end, node] = value
    return adjacent


def rule(score: Callable[[TensorDict], Tensor]) -> Callable[[TensorDict], TensorDict]:
    """Return the policy that chooses the legal node with the highest score `[B, N]` of a state."""

    def policy(root: TensorDict) -> TensorDict:
        state = root["state"]
        allowed = root.get(MASK)
        return root.set("action", score(state).masked_fill(~allowed, -torch.inf).argmax(-1))

    return policy
