"""The graphwalk environment, which combines scenario, dynamics and observation."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv, Transition
from edgewise.envs.entries import Entries
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.datasets import load_graphs
from edgewise.systems.graphwalk import dynamics, observe, scenario
from edgewise.systems.graphwalk.config import GraphwalkConfig


class GraphwalkEnv(GraphEnv[GraphwalkConfig]):
    """Walk to the goal node of a random or given graph in as few steps as possible; see README.md.

    Example:
        >>> env = GraphwalkEnv(GraphwalkConfig(num_nodes=(4, 6)), num_envs=8, seed=0)
        >>> env.rollout(3, break_when_any_done=False)["next", "reward"].shape
        torch.Size([8, 3, 1])
    """

    stage_settings = ("num_nodes",)

    def setup(self) -> None:
        """Set the graph's shape from the config, and choose a node as the action."""
        self.actions = ChooseNode()
        if self.config.graphs is None:
            self.graph = observe.graph_spec(self.config.capacity, self.config.extra_edges)
        else:
            self._take_graphs()

    def _take_graphs(self) -> None:
        """Keep the given graphs of the split, and the distances in them."""
        given = load_graphs(self.config.graphs, split=self.config.split, seed=self.config.split_seed)
        self.graph = observe.given_graph_spec(given.spec)
        for name in scenario.GRAPH_ENTRIES:
            self.register_buffer(f"given_{name}", given.graphs[name].to(self.device))
        self.register_buffer("given_distance", scenario.given_distances(given).to(self.device))

    def check_stage(self, stage: GraphwalkConfig) -> None:
        """Raise ConfigError if graphs of the stage have more nodes than there are slots."""
        if self.config.graphs is None and stage.capacity > self.graph.num_nodes:
            raise ConfigError(
                f"num_nodes {stage.num_nodes} does not fit: there is room for {self.graph.num_nodes}",
                hint=f"build the environment with max_nodes={stage.capacity}",
            )

    def spawn(self, count: int) -> Entries:
        """Sample graphs, each with a start and a goal; given ones are drawn from their split."""
        if self.config.graphs is not None:
            graphs = {name: self.get_buffer(f"given_{name}") for name in scenario.GRAPH_ENTRIES}
            distance = self.get_buffer("given_distance")
            return scenario.sample_given_walks(graphs, distance, count=count, generator=self.generator)
        return scenario.sample_walks(
            self.sample_int(self.config.num_nodes, count),
            capacity=self.graph.num_nodes,
            extra_edges=self.config.extra_edges,
            generator=self.generator,
        )

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Move to the chosen node; the reward is -1 per step, and the episode terminates at the goal."""
        edges = {"edge_index": state["edge_index"], "edge_mask": state["edge_mask"]}
        current = dynamics.move(state["current"], action, **edges)
        cost = torch.ones_like(current, dtype=torch.float32)
        return Transition({"current": current}, reward=-cost, terminated=current == state["goal"])

    def observe(self, state: TensorDict) -> Entries:
        """Return the graph, with the walker and the goal as node features, and the metrics."""
        return {"graph": observe.graph(state), "metrics": observe.metrics(state)}

    def mask(self, state: TensorDict) -> Tensor:
        """Return the neighbours of the walker's node, `[B, N]` bool; without any, the node itself."""
        edges = {"edge_index": state["edge_index"], "edge_mask": state["edge_mask"]}
        free = dynamics.neighbours(state["current"], num_nodes=self.graph.num_nodes, **edges)
        return free if self.config.graphs is None else dynamics.or_stay(free, state["current"])
