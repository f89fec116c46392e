"""Graphs of what is left to decide: an instance as it is at one step, to be encoded again in every step."""

from __future__ import annotations

from dataclasses import replace

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.graphs.keys import GRAPH, STEPS
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.step_spec import StepSpec
from edgewise.models.decoder import Steps, at_all_nodes


class Remaining:
    """Makes the graph of every step from that of its instance, as BQ-NCO does (https://arxiv.org/abs/2301.03313).

    Its nodes are those that may still be chosen or that the step refers to, where actions choose nodes, and
    else all. Features of a node that change, and whether the step refers to it, are added to its own.

    Args:
        spec: what changes from step to step.
        nodes_are_chosen: whether actions choose nodes, so that the action mask is one of nodes.
    """

    def __init__(self, spec: StepSpec, *, nodes_are_chosen: bool) -> None:
        self.spec, self.nodes_are_chosen = spec, nodes_are_chosen

    def shape(self, graph: GraphSpec) -> GraphSpec:
        """Return the shape of the graphs of steps."""
        more = self.spec.node_features + len(self.spec.references)
        return replace(graph, node_features=graph.node_features + more)

    def of(self, tensordict: TensorDictBase) -> tuple[TensorDictBase, TensorDictBase]:
        """Return the graph of every step, one after another, and the observations `[*B]` or `[I, Q]`.

        Args:
            tensordict: observations `[*B]` with their graphs, or instances `[I]` with their steps `[I, Q]`.
        """
        graph, observation = tensordict.get(GRAPH), tensordict
        if STEPS in tensordict:
            observation = tensordict.get(STEPS)
            graph = graph.unsqueeze(1).expand(*observation.batch_size)
        if graph.batch_dims != 1:
            graph = graph.reshape(-1)
        count, nodes = graph.get("node_mask").shape
        steps = at_all_nodes(Steps.of(observation, self.spec, instances=count), nodes)
        return self._at(graph, steps), observation

    def _at(self, graph: TensorDictBase, steps: Steps) -> TensorDictBase:
        """Return the graphs `[S]` of steps `[S, 1]` from those of their instances."""
        features, left = [graph.get("x")], graph.get("node_mask")
        if steps.x is not None:
            features.append(steps.x.squeeze(1))
        referred = torch.zeros_like(left)
        if steps.references is not None:
            slots = torch.arange(left.shape[-1], device=left.device)
            is_this = slots == steps.references  # [R, S, N]
            features.append(is_this.movedim(0, -1).to(features[0].dtype))
            referred = is_this.any(0)
        if self.nodes_are_chosen and steps.mask is not None:
            left = left & (steps.mask.squeeze(1) | referred)
        found = graph.copy().set("x", torch.cat(features, -1)).set("node_mask", left)
        edges = graph.get("edge_mask", None)
        if edges is not None:
            found.set("edge_mask", edges & _both_ends(graph.get("edge_index"), left))
        return found


def _both_ends(index: Tensor, left: Tensor) -> Tensor:
    """Return which edges `[S, 2, E]` have both ends among the nodes `[S, N]` that are left."""
    ends = left.gather(-1, index.flatten(1).long()).unflatten(1, (2, -1))
    return ends.all(1)
