"""Action layouts: how the graphs of an environment are acted on, one file each.

| layout | action |
|---|---|
| `ChooseNode` | one node |
| `ChooseFromSet` | one member of a set of nodes or edges that the environment offers |
| `ChooseEdgePerGroup` | one edge of each group of edges, or none |
| `EdgesDiscrete` | one of K actions for each edge |
| `AgentsDiscrete` | one of K actions for each agent |
| `AgentsContinuous` | a bounded vector for each agent |
| `ChooseEdge` | one edge |
| `Category`, `Amount` | an option, or bounded numbers, for the whole graph |
| `PerNode`, `PerEdge` | a category or numbers for every node or edge |
| `Joint`, `Then` | several of these: independent of each other, or each given those before it |
"""

from edgewise.graphs.actions.agents_continuous import AgentsContinuous
from edgewise.graphs.actions.agents_discrete import AgentsDiscrete
from edgewise.graphs.actions.choose_edge import ChooseEdge
from edgewise.graphs.actions.choose_node import ChooseNode
from edgewise.graphs.actions.composed import (
    Amount,
    Category,
    ComposedLayout,
    Joint,
    PerEdge,
    PerNode,
    Then,
)
from edgewise.graphs.actions.discrete import DiscreteLayout
from edgewise.graphs.actions.edge_per_group import ChooseEdgePerGroup
from edgewise.graphs.actions.edges_discrete import EdgesDiscrete
from edgewise.graphs.actions.from_set import ChooseFromSet
from edgewise.graphs.actions.layout import ActionLayout, Choices
from edgewise.graphs.actions.marks import ActionMarks

__all__ = [
    "ActionLayout",
    "ActionMarks",
    "AgentsContinuous",
    "AgentsDiscrete",
    "Amount",
    "Category",
    "ChooseEdge",
    "ChooseEdgePerGroup",
    "ChooseFromSet",
    "ChooseNode",
    "Choices",
    "ComposedLayout",
    "DiscreteLayout",
    "EdgesDiscrete",
    "Joint",
    "PerEdge",
    "PerNode",
    "Then",
]
