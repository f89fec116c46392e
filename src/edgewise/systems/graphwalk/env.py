"""Graphwalk as an environment: the rules, the scenario and the view, put together."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv, Transition
from edgewise.envs.packing import Entries
from edgewise.graphs.actions import ChooseNode
from edgewise.systems.graphwalk import dynamics, observe, scenario
from edgewise.systems.graphwalk.config import GraphwalkConfig


class GraphwalkEnv(GraphEnv[GraphwalkConfig]):
    """Walk to the marked node of a random graph in as few steps as possible; see the card in README.md.

    Example:
        >>> env = GraphwalkEnv(GraphwalkConfig(num_nodes=(4, 6)), num_envs=8, seed=0)
        >>> env.rollout(3, break_when_any_done=False)["next", "reward"].shape
        torch.Size([8, 3, 1])
    """

    stage_settings = ("num_nodes",)

    def setup(self) -> None:
        """A graph of the config's capacity, of which one node is chosen."""
        self.graph = observe.graph_spec(self.config.capacity, self.config.extra_edges)
        self.actions = ChooseNode()

    def check_stage(self, stage: GraphwalkConfig) -> None:
        """Graphs may only grow as far as there is room."""
        if stage.capacity > self.graph.num_nodes:
            raise ConfigError(
                f"num_nodes {stage.num_nodes} does not fit: there is room for {self.graph.num_nodes}",
                hint=f"build it with max_nodes={stage.capacity}",
            )

    def spawn(self, count: int) -> Entries:
        """New graphs with a start and a goal."""
        return scenario.draw_walks(
            self.draw_whole(self.stage.num_nodes, count),
            capacity=self.graph.num_nodes,
            extra_edges=self.config.extra_edges,
            generator=self.generator,
        )

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Go to the chosen neighbour; each step costs one, and the goal ends the walk."""
        edges = {"edge_index": state["edge_index"], "edge_mask": state["edge_mask"]}
        current = dynamics.move(state["current"], action, **edges)
        cost = torch.ones_like(current, dtype=torch.float32)
        return Transition({"current": current}, reward=-cost, terminated=current == state["goal"])

    def observe(self, state: TensorDict) -> Entries:
        """The marked graph, and how the walk goes."""
        return {"graph": observe.graph(state), "metrics": observe.metrics(state)}

    def mask(self, state: TensorDict) -> Tensor:
        """The neighbours of the walker's node, `[B, N]`."""
        edges = {"edge_index": state["edge_index"], "edge_mask": state["edge_mask"]}
        return dynamics.neighbours(state["current"], num_nodes=self.graph.num_nodes, **edges)
