"""What is drawn of the observed graphs of an episode: nodes, their places and features, and edges."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.evaluation.replays.graph_layout import layout, project
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec

MAX_NODES = 500
MAX_EDGES = 500
"""Most edges that are drawn in one frame."""
MAX_NUMBERED = 40
"""Largest graph whose nodes are labelled with their numbers."""


@dataclass(frozen=True)
class Scene:
    """The graphs of the K drawn steps of an episode.

    Args:
        slots: node slots that are drawn, `[n]`.
        exists: `[K, n]` bool.
        place: `[K, n, 2]`, finite also where a node is absent.
        features: of the drawn nodes, `[K, n, F]`; zero where a node is absent.
        types: node types, `[K, n]`; None without.
        edges: of each frame, `[3, e]`: the ends as indices into `slots`, and the edge slot.
        directed: whether edges are drawn with heads.
        notes: sentences on what is left out.
    """

    slots: Tensor
    exists: Tensor
    place: Tensor
    features: Tensor
    types: Tensor | None
    edges: list[Tensor]
    directed: bool
    notes: tuple[str, ...]

    @staticmethod
    def of(observations: TensorDictBase, spec: GraphSpec) -> Scene:
        """Return the scene of the observations `[K]` of one world."""
        graph = observations[GRAPH]
        ever = graph["node_mask"].any(0).nonzero().squeeze(-1)
        slots = ever[:MAX_NODES]
        exists = graph["node_mask"][:, slots]
        edges = _edges(graph, spec, slots)
        if spec.position_dim:
            place = _fill_absent(project(graph["pos"][:, slots].float()), exists)
        else:
            pairs = torch.cat(edges, 1)[:2].unique(dim=1)
            place = layout(len(slots), pairs).expand(len(exists), -1, -1)
        return Scene(
            slots=slots,
            exists=exists,
            place=place,
            features=_finite(torch.where(exists.unsqueeze(-1), graph["x"][:, slots].float(), 0.0)),
            types=graph["node_type"][:, slots] if spec.node_types else None,
            edges=edges,
            directed=not spec.edges.needs_positions and _is_directed(edges[0], len(slots)),
            notes=_notes(len(ever), max(frame.shape[1] for frame in edges)),
        )

    @property
    def moves(self) -> bool:
        """Whether nodes change their places."""
        return bool((self.place != self.place[:1]).any())

    @property
    def numbered(self) -> bool:
        """Whether nodes are labelled with their slots."""
        return len(self.slots) <= MAX_NUMBERED

    @property
    def span(self) -> float:
        """Width or height of the picture, whichever is larger."""
        if not len(self.slots):
            return 1.0
        flat = self.place.reshape(-1, 2)
        return float((flat.amax(0) - flat.amin(0)).max()) or 1.0


def _edges(graph: TensorDictBase, spec: GraphSpec, slots: Tensor) -> list[Tensor]:
    """Return the edges of each frame without loops, one frame at a time: rules may join all pairs."""
    number = torch.full((graph["node_mask"].shape[-1],), -1)
    number[slots] = torch.arange(len(slots))
    found = []
    for frame in range(len(graph)):
        edges = spec.edges_of(graph[frame : frame + 1])
        slot = edges.mask[0].nonzero().squeeze(-1)
        source, target = number[edges.index[0, :, slot]]
        drawn = (source >= 0) & (target >= 0) & (source != target)
        found.append(torch.stack((source, target, slot))[:, drawn])
    return found


def _finite(values: Tensor) -> Tensor:
    """Replace NaN by zero, and limit numbers so that their differences are finite."""
    return values.nan_to_num(nan=0.0).clamp(-1e30, 1e30)


def _fill_absent(place: Tensor, exists: Tensor) -> Tensor:
    """Give absent nodes the place where they were last, or will be first; `[K, n, 2]`."""
    place, known = _finite(place).clone(), exists.clone()
    frames = range(len(place))
    for order in (frames, frames[::-1]):
        for before, after in pairwise(order):
            missing = known[before] & ~known[after]
            place[after] = torch.where(missing.unsqueeze(-1), place[before], place[after])
            known[after] |= missing
    return place


def _is_directed(edges: Tensor, num_nodes: int) -> bool:
    """Return whether some edge has no edge back."""
    joined = torch.zeros(num_nodes, num_nodes, dtype=torch.bool)
    joined[edges[0], edges[1]] = True
    return bool((joined != joined.T).any())


def _notes(num_nodes: int, num_edges: int) -> tuple[str, ...]:
    notes = []
    if num_nodes > MAX_NODES:
        notes.append(f"The first {MAX_NODES} of {num_nodes} nodes are drawn.")
    if num_edges > 2 * MAX_EDGES:
        notes.append(f"Only the {MAX_EDGES} shortest edges are drawn.")
    return tuple(notes)
