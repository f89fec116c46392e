"""How an action is marked in a picture of a graph: chosen nodes and edges, labels, arrows, and a caption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.evaluation.replays.graph_layout import project
from edgewise.graphs.actions import (
    ActionLayout,
    AgentsContinuous,
    AgentsDiscrete,
    ChooseEdgePerGroup,
    ChooseFromSet,
    ChooseIndependentSet,
    ChooseNode,
    ChooseSuccessor,
    EdgesDiscrete,
)
from edgewise.graphs.keys import MASK

MAX_SHOWN = 6
"""Most nodes, edges or numbers that a caption lists."""


@dataclass(frozen=True)
class ActionMarks:
    """The marks of one action in one world.

    Args:
        text: for the caption; empty for none.
        nodes: chosen node slots.
        edges: chosen edge slots.
        edge_shades: a number in [0, 1] for each edge slot, `[E]`; None for none.
        labels: text for node slots.
        arrows: a vector in the plane for each of the first A node slots, `[A, 2]`; None for none.
    """

    text: str = ""
    nodes: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()
    edge_shades: Tensor | None = None
    labels: Mapping[int, str] = field(default_factory=dict)
    arrows: Tensor | None = None


@singledispatch
def mark_action(layout: ActionLayout, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG001
    """Return the marks of an action.

    Layouts of your own give a caption with the numbers of the action, unless `mark_action.register` adds a
    function for them.

    Args:
        layout: of the environment.
        action: of one world, without a batch dimension.
        observation: of that world, batch size `[]`.
    """
    numbers = action.reshape(-1).tolist()
    return ActionMarks(f"action {_listed([f'{number:g}' for number in numbers])}")


@mark_action.register
def _(layout: ChooseNode, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG001
    return ActionMarks(f"node {int(action)}", nodes=(int(action),))


@mark_action.register
def _(layout: ChooseIndependentSet, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG001
    nodes = tuple(action.nonzero().squeeze(-1).tolist())
    return ActionMarks(f"nodes {_listed(nodes)}", nodes=nodes)


@mark_action.register
def _(layout: ChooseFromSet, action: Tensor, observation: TensorDictBase) -> ActionMarks:
    slot = int(observation["choices"][int(action)])
    if layout.members == "nodes":
        return ActionMarks(f"node {slot}", nodes=(slot,))
    return ActionMarks(f"edge {slot}", edges=(slot,))


@mark_action.register
def _(layout: ChooseSuccessor, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG001
    return ActionMarks(f"successor {int(action)}")


@mark_action.register
def _(layout: ChooseEdgePerGroup, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG001
    first = torch.arange(layout.num_groups) * layout.group_size
    edges = tuple((first + action.cpu() - 1)[action.cpu() > 0].tolist())
    return ActionMarks(f"edges {_listed(edges)}", edges=edges)


@mark_action.register
def _(layout: EdgesDiscrete, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG001
    return ActionMarks(edge_shades=action.float() / max(layout.num_actions - 1, 1))


@mark_action.register
def _(layout: AgentsDiscrete, action: Tensor, observation: TensorDictBase) -> ActionMarks:
    active = _active(layout, observation)
    labels = {agent: str(choice) for agent, choice in enumerate(action.tolist()) if active[agent]}
    return ActionMarks(labels=labels)


@mark_action.register
def _(layout: AgentsContinuous, action: Tensor, observation: TensorDictBase) -> ActionMarks:
    vectors = project(action.float() / max(abs(layout.low), abs(layout.high), 1e-9))
    active = torch.tensor(_active(layout, observation)).unsqueeze(-1)
    return ActionMarks(arrows=vectors.cpu().masked_fill(~active, 0.0))


def legal_nodes(layout: ActionLayout, observation: TensorDictBase) -> Tensor | None:
    """Return which nodes may be chosen, `[*B, N]` bool; None if the layout does not choose nodes."""
    mask: Tensor | None = observation.get(MASK, None)
    if mask is None:
        return None
    if isinstance(layout, ChooseNode | ChooseIndependentSet):
        return mask
    if isinstance(layout, ChooseFromSet) and layout.members == "nodes":
        exists = observation["graph", "node_mask"]
        return (
            torch.zeros_like(exists, dtype=torch.int32).scatter_add(-1, _choices(observation), mask.int()) > 0
        )
    return None


def _choices(observation: TensorDictBase) -> Tensor:
    """Return the members of the offered set; places that are not filled may hold anything."""
    choices: Tensor = observation["choices"]
    return choices.masked_fill(~observation[MASK], 0)


def _active(layout: ActionLayout, observation: TensorDictBase) -> list[bool]:
    active = observation.get(("agents", "active"), None)
    return [True] * layout.num_agents if active is None else active.tolist()


def _listed(items: tuple[int, ...] | list[str]) -> str:
    shown = ", ".join(map(str, items[:MAX_SHOWN])) or "none"
    return shown if len(items) <= MAX_SHOWN else f"{shown} and {len(items) - MAX_SHOWN} more"
