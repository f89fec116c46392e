"""The parts of a composed action: what each one is, how wide it is, and which of its values are legal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.graphs.actions.discrete import sample_allowed
from edgewise.graphs.keys import GRAPH, MASK
from edgewise.graphs.spec import GraphSpec

Kind = Literal["choose", "category", "number"]
Owner = Literal["graph", "nodes", "edges"]
Values = Mapping[str, Tensor]
"""Values of parts by name, in their own shapes and dtypes."""


@dataclass(frozen=True)
class Part:
    """One part of a composed action.

    A part that chooses an entity, and one that belongs to the graph, have one row; one that belongs to nodes
    or edges has a row for each slot.

    Args:
        name: unique in the action; empty if there is only this part.
        kind: `choose` an entity, a `category`, or a `number`.
        of: what is chosen, or whose the category or number is.
        choices: number of categories.
        low: lower bound of numbers.
        high: upper bound of numbers.
        dim: numbers per row.
        given: names of the parts before it whose values its distribution depends on.
        mask_given: the one among them, a single choice, that its mask may depend on; empty for none.
    """

    name: str
    kind: Kind
    of: Owner = "graph"
    choices: int = 0
    low: float = 0.0
    high: float = 1.0
    dim: int = 1
    given: tuple[str, ...] = ()
    mask_given: str = ""

    @property
    def is_single_choice(self) -> bool:
        """Whether it is one choice for the whole graph."""
        return self.kind == "choose" or (self.kind == "category" and self.of == "graph")

    def rows(self, nodes: int, edges: int) -> int:
        """Return the number of rows in graphs with these numbers of slots."""
        if self.kind == "choose" or self.of == "graph":
            return 1
        return nodes if self.of == "nodes" else edges

    def width(self, nodes: int, edges: int) -> int:
        """Return the number of columns that it has in an action."""
        return self.rows(nodes, edges) * (self.dim if self.kind == "number" else 1)

    def count(self, nodes: int, edges: int) -> int:
        """Return the number of choices K of a row."""
        if self.kind == "choose":
            return nodes if self.of == "nodes" else edges
        return self.choices

    def value_of(self, columns: Tensor) -> Tensor:
        """Return the value of its columns `[*B, width]`: `[*B]`, `[*B, dim]`, `[*B, R]` or `[*B, R, dim]`."""
        whole = self.kind != "number" and columns.is_floating_point()
        value = columns.round().long() if whole else columns
        if self.kind == "choose" or self.of == "graph":
            return value.squeeze(-1) if self.kind != "number" or self.dim == 1 else value
        return value if self.kind != "number" or self.dim == 1 else value.unflatten(-1, (-1, self.dim))

    def columns_of(self, value: Tensor, lead: int) -> Tensor:
        """Return a value with `lead` batch dimensions as columns `[*B, width]`."""
        return value.reshape(*value.shape[:lead], -1)

    def exists(self, observation: TensorDictBase, graph: GraphSpec) -> Tensor | None:
        """Return which entities exist, `[*B, N]` or `[*B, E]` bool; None if it belongs to the graph."""
        if self.of == "graph":
            return None
        found: Tensor = (
            observation[GRAPH, "node_mask"] if self.of == "nodes" else graph.edges_of(observation[GRAPH]).mask
        )
        return found

    def legal(
        self,
        observation: TensorDictBase,
        graph: GraphSpec,
        before: Values,
        *,
        exists: Tensor | None = None,
    ) -> Tensor | None:
        """Return the legal choices given the values of parts before it; None for numbers.

        Args:
            observation: batch size `[*B]`.
            graph: shape of the graphs.
            before: values of the parts before it.
            exists: which entities exist, if that is known.

        Returns:
            `[*B, K]` bool for one choice, `[*B, R, K]` for a category of each entity.
        """
        if self.kind == "number":
            return None
        exists = self.exists(observation, graph) if exists is None else exists
        mask = self.mask(observation, before)
        if self.kind == "choose":
            assert exists is not None
            return exists if mask is None else exists & mask
        lead = tuple(observation.batch_size) if exists is None else tuple(exists.shape)
        device = observation[GRAPH, "node_mask"].device
        everything = torch.ones(*lead, self.choices, dtype=torch.bool, device=device)
        return everything if mask is None else everything & mask

    def mask(self, observation: TensorDictBase, before: Values) -> Tensor | None:
        """Return its mask, that of the choice made before if it depends on one; None if there is none."""
        mask = observation.get(MASK, None)
        if isinstance(mask, TensorDictBase):
            mask = mask.get(self.name, None)
        if mask is None or self.kind == "number":
            return None
        rows = 0 if self.is_single_choice else 1
        if mask.dim() == len(observation.batch_size) + 1 + rows:
            return mask
        return masks_at(mask, before[self.mask_given])

    def sample(
        self,
        observation: TensorDictBase,
        graph: GraphSpec,
        before: Values,
        *,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Sample a legal value uniformly."""
        legal = self.legal(observation, graph, before)
        if legal is not None:
            return sample_allowed(legal, generator)
        exists = self.exists(observation, graph)
        lead = tuple(observation.batch_size) if exists is None else tuple(exists.shape)
        shape = lead if self.dim == 1 else (*lead, self.dim)
        device = observation[GRAPH, "node_mask"].device
        share = torch.rand(shape, generator=generator, device=device)
        return self.low + (self.high - self.low) * share

    def is_legal(
        self, columns: Tensor, observation: TensorDictBase, graph: GraphSpec, before: Values
    ) -> Tensor:
        """Return which worlds have a legal value in these columns `[*B, width]`, `[*B]` bool."""
        exists = self.exists(observation, graph)
        if self.kind == "number":
            inside = (columns >= self.low) & (columns <= self.high)
            return (inside if exists is None else self._or_absent(inside, exists)).all(-1)
        legal = self.legal(observation, graph, before)
        assert legal is not None
        value = self.value_of(columns.nan_to_num(-1.0) if columns.is_floating_point() else columns)
        inside = (value >= 0) & (value < legal.shape[-1])
        place = value.clamp(0, legal.shape[-1] - 1).unsqueeze(-1)
        allowed = inside & legal.gather(-1, place).squeeze(-1)
        whole = (columns == columns.round()).all(-1)
        if self.is_single_choice:
            return allowed & whole
        assert exists is not None
        return (allowed | ~exists).all(-1) & whole

    def _or_absent(self, inside: Tensor, exists: Tensor) -> Tensor:
        absent = (~exists).unsqueeze(-1).expand(*exists.shape, self.dim).flatten(-2)
        return inside | absent

    def has_legal(self, observation: TensorDictBase, graph: GraphSpec) -> Tensor:
        """Return which worlds have a legal value, `[*B]` bool, whatever legal choice is made before."""
        if self.kind == "number":
            return torch.ones(observation.batch_size, dtype=torch.bool, device=observation.device)
        mask = observation.get(MASK, None)
        mask = mask.get(self.name, None) if isinstance(mask, TensorDictBase) else mask
        lead = len(observation.batch_size)
        if mask is None or mask.dim() == lead + (1 if self.is_single_choice else 2):
            legal = self.legal(observation, graph, {})
            assert legal is not None
            some = legal.any(-1)
            if self.is_single_choice:
                return some
            exists = self.exists(observation, graph)
            return (some if exists is None else some | ~exists).all(-1)
        exists = self.exists(observation, graph)
        allowed = mask if exists is None else mask & exists.unsqueeze(-2)
        return allowed.any(-1)

    def mask_shapes(self, nodes: int, edges: int, before: Part | None) -> tuple[tuple[int, ...], ...]:
        """Return the shapes that its mask may have, without batch dimensions; none for numbers."""
        if self.kind == "number":
            return ()
        count = self.count(nodes, edges)
        if not self.is_single_choice:
            return ((self.rows(nodes, edges), count),)
        plain = (count,)
        return (plain,) if before is None else (plain, (before.count(nodes, edges), count))


def masks_at(mask: Tensor, choice: Tensor) -> Tensor:
    """Return the mask of the choice made before: `[*B, J, K]` bool and `[*S, *B]` int64 to `[*S, *B, K]`."""
    extra = choice.dim() - (mask.dim() - 2)
    mask = mask.expand(*choice.shape[:extra], *mask.shape)
    place = choice.clamp(0, mask.shape[-2] - 1)[..., None, None].expand(*choice.shape, 1, mask.shape[-1])
    return mask.gather(-2, place).squeeze(-2)
