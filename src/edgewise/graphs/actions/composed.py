"""Actions made of parts: a number or category for the graph or each entity, joined independently or in turn.

Everything that an environment, a model or an adapter needs follows from the parts. An action is one tensor,
so that rollouts, replay buffers, checkpoints and workers treat it as any other.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor
from torch.nn.functional import one_hot
from torchrl.data import Bounded, MultiCategorical, TensorSpec

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions.choose_edge import ChooseEdge
from edgewise.graphs.actions.choose_node import ChooseNode
from edgewise.graphs.actions.layout import ActionLayout
from edgewise.graphs.actions.marks import ActionMarks, listed
from edgewise.graphs.actions.parts import Owner, Part
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec


class ComposedLayout(ActionLayout):
    """Base of actions made of parts: one tensor `[*B, W]`, the columns of all parts after each other.

    It is float32 if a part has numbers, else int64. `advance` of an environment gets the parts by name, each
    in its own shape and dtype; a layout of one part without a name gets its value. `mask` of an environment
    may return a mask for each part that is not a number, by name: `[B, K]` for one choice of K, `[B, R, K]`
    for a category of each of R entities, and `[B, J, K]` if it depends on the choice of J made before it.
    """

    head = "edgewise.models.composed_head:ComposedHead"

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The parts in the order in which they are chosen."""

    @property
    def has_numbers(self) -> bool:
        """Whether some part has numbers."""
        return any(part.kind == "number" for part in self.parts)

    @property
    def uses_edges(self) -> bool:
        """Whether some part chooses an edge or belongs to edges."""
        return any(part.of == "edges" for part in self.parts)

    def widths(self, nodes: int, edges: int) -> list[int]:
        """Return the number of columns of each part."""
        return [part.width(nodes, edges) for part in self.parts]

    def spec(self, graph: GraphSpec, *, num_envs: int, num_edges: int, device: torch.device) -> TensorSpec:
        """Return the spec of actions `[B, W]`."""
        nodes = graph.num_nodes
        if not self.has_numbers:
            counts = [
                count
                for part in self.parts
                for count in [part.count(nodes, num_edges)] * part.width(nodes, num_edges)
            ]
            shape = (num_envs, len(counts))
            return MultiCategorical(counts, shape=shape, dtype=torch.int64, device=device)
        low, high = [], []
        for part in self.parts:
            number = part.kind == "number"
            width = part.width(nodes, num_edges)
            low += [part.low if number else 0.0] * width
            high += [part.high if number else part.count(nodes, num_edges) - 1.0] * width
        lows, highs = (
            torch.tensor(bound, device=device).expand(num_envs, -1).clone() for bound in (low, high)
        )
        return Bounded(lows, highs, shape=lows.shape, dtype=torch.float32, device=device)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `()`: masks are those of parts, see `Part.mask_shapes`."""
        return ()

    def mask_dims_of(self, name: str, dims: int) -> tuple[str | int, ...]:
        """Return what the `dims` dimensions of the mask of a part count, without its batch dimensions.

        Args:
            name: of the part.
            dims: 1 or 2.
        """
        part = self.part(name)
        own = part.of if part.kind == "choose" else part.choices
        if dims == 1:
            return (own,)
        before = self.part(part.mask_given) if part.is_single_choice else part
        rows = before.choices if before.kind == "category" and part.is_single_choice else before.of
        return (rows, own)

    def part(self, name: str) -> Part:
        """Return the part of that name."""
        return next(part for part in self.parts if part.name == name)

    def split(self, action: Tensor, *, nodes: int, edges: int) -> list[Tensor]:
        """Return the columns of each part.

        Raises:
            ValueError: the action has another number of columns.
        """
        widths = self.widths(nodes, edges)
        if action.shape[-1] != sum(widths):
            raise ValueError(f"the action must have {sum(widths)} columns, got {action.shape[-1]}")
        return list(action.split(widths, -1))

    def unpack(self, action: Tensor, graph: GraphSpec) -> dict[str, Tensor] | Tensor:
        """Return the values of an action by name; the value alone if its only part has no name.

        Args:
            action: `[*B, W]`.
            graph: shape of the graphs.
        """
        edges = self._edges_in(action.shape[-1], graph.num_nodes) if self.uses_edges else 0
        columns = self.split(action, nodes=graph.num_nodes, edges=edges)
        values = {part.name: part.value_of(each) for part, each in zip(self.parts, columns, strict=True)}
        return values.get("", values)

    def pack(self, *value: Tensor, **values: Tensor) -> Tensor:
        """Return the action `[*B, W]` of values given by name, or of the only one.

        Example:
            >>> layout = Then(node=ChooseNode(), amount=Amount())
            >>> layout.pack(node=torch.tensor([3]), amount=torch.tensor([0.5]))
            tensor([[3.0000, 0.5000]])
        """
        given: dict[str, Tensor] = {"": value[0]} if value else dict(values)
        missing = {part.name for part in self.parts} ^ set(given)
        if missing:
            raise ValueError(
                f"an action has {self._named()}: {', '.join(sorted(missing))} missing or unknown"
            )
        first = self.parts[0]
        lead = given[first.name].dim() - len(_own_dims(first))
        columns = [part.columns_of(given[part.name], lead) for part in self.parts]
        dtype = torch.float32 if self.has_numbers else torch.int64
        return torch.cat([each.to(dtype) for each in columns], -1)

    def sample(
        self, observation: TensorDictBase, graph: GraphSpec, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Sample every part uniformly among its legal values, given the parts before it."""
        values: dict[str, Tensor] = {}
        for part in self.parts:
            values[part.name] = part.sample(observation, graph, values, generator=generator)
        return self.pack(values[""]) if "" in values else self.pack(**values)

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:
        """Return which worlds have a legal value of every part, given the parts before it."""
        if action.is_floating_point() != self.has_numbers:
            kind = "float32" if self.has_numbers else "int64"
            raise ValueError(f"the action must be {kind}, got {action.dtype}")
        if tuple(action.shape[:-1]) != tuple(observation.batch_size):
            raise ValueError(f"the action must be {[*observation.batch_size, 'W']}, got {list(action.shape)}")
        nodes, edges = self.slots(observation, graph)
        legal = torch.ones(observation.batch_size, dtype=torch.bool, device=action.device)
        values: dict[str, Tensor] = {}
        for part, columns in zip(self.parts, self.split(action, nodes=nodes, edges=edges), strict=True):
            legal = legal & part.is_legal(columns, observation, graph, values)
            values[part.name] = part.value_of(columns.nan_to_num(0.0))
        return legal

    def as_prior(
        self, action: Tensor, observation: TensorDictBase, graph: GraphSpec
    ) -> Tensor | TensorDictBase:
        """Return the values of parts by name, choices as scores of one; the only value if it has no name."""
        nodes, edges = self.slots(observation, graph)
        columns = self.split(action, nodes=nodes, edges=edges)
        found = {
            part.name: part.value_of(own)
            if part.kind == "number"
            else one_hot(part.value_of(own), part.count(nodes, edges)).float()
            for part, own in zip(self.parts, columns, strict=True)
        }
        return found[""] if "" in found else TensorDict(found, observation.batch_size)

    def slots(self, observation: TensorDictBase, graph: GraphSpec) -> tuple[int, int]:
        """Return the numbers of node and edge slots of an observation; no edges if no part needs them."""
        nodes = int(observation[GRAPH, "node_mask"].shape[-1])
        return nodes, int(graph.edges_of(observation[GRAPH]).mask.shape[-1]) if self.uses_edges else 0

    def worlds_with_action(self, observation: TensorDictBase, graph: GraphSpec) -> Tensor:
        """Return which worlds have a legal action, `[*B]` bool, whatever legal choice is made first."""
        found = torch.ones(observation.batch_size, dtype=torch.bool, device=observation.device)
        for part in self.parts:
            some = part.has_legal(observation, graph)
            if some.dim() > found.dim():
                first = self.part(part.mask_given).legal(observation, graph, {})
                assert first is not None
                some = (some | ~first).all(-1)
            found = found & some
        return found

    def check_mask(self, mask: Tensor | TensorDictBase, graph: GraphSpec, *, num_edges: int) -> None:
        """Raise ValueError if the mask of an environment does not fit the parts; names the part."""
        given = mask if isinstance(mask, TensorDictBase) else {"": mask}
        known = {part.name: part for part in self.parts}
        for name, value in given.items():
            if name not in known:
                raise ValueError(f"`action_mask.{name}` is no part of the action, which has {self._named()}")
            part = known[name]
            before = known[part.mask_given] if part.mask_given else None
            shapes = part.mask_shapes(graph.num_nodes, num_edges, before)
            if not shapes:
                raise ValueError(f"`action_mask.{name}`: numbers have no mask")
            if value.dtype != torch.bool:
                raise ValueError(f"`action_mask.{name}` must be torch.bool, is {value.dtype}")
            if tuple(value.shape[1:]) not in shapes:
                wanted = " or ".join(f"[B, {', '.join(map(str, shape))}]" for shape in shapes)
                raise ValueError(f"`action_mask.{name}` must have shape {wanted}, is {list(value.shape)}")

    def legal_nodes(self, observation: TensorDictBase) -> Tensor | None:
        """Return the nodes that the first part may choose, if it chooses one."""
        first = self.parts[0]
        if first.kind != "choose" or first.of != "nodes":
            return None
        exists: Tensor = observation[GRAPH, "node_mask"]
        mask = first.mask(observation, {})
        return exists if mask is None else exists & mask

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:
        """Mark chosen nodes and edges, shade edges by their values, label nodes, and caption the rest."""
        nodes = int(observation[GRAPH, "node_mask"].shape[-1])
        edges = self._edges_in(action.shape[-1], nodes) if self.uses_edges else 0
        found = ActionMarks()
        words: list[str] = []
        for part, columns in zip(self.parts, self.split(action, nodes=nodes, edges=edges), strict=True):
            found = _marked(found, part, part.value_of(columns), observation, words)
        return replace(found, text=", ".join(words))

    def _edges_in(self, columns: int, nodes: int) -> int:
        """Return the number of edge slots that an action of so many columns has; 1 if none has a column."""
        each = sum(part.width(nodes, 1) for part in self.parts if part.rows(0, 2) == 2)
        rest = sum(part.width(nodes, 1) for part in self.parts if part.rows(0, 2) != 2)
        return (columns - rest) // each if each else 1

    def _named(self) -> str:
        return ", ".join(part.name or "one value without a name" for part in self.parts)


@dataclass(frozen=True)
class Amount(ComposedLayout):
    """A bounded number for the whole graph, or `dim` of them: value `[*B]`, or `[*B, dim]`.

    Args:
        low: lower bound.
        high: upper bound.
        dim: how many numbers.
    """

    low: float = 0.0
    high: float = 1.0
    dim: int = 1

    def __post_init__(self) -> None:
        if not self.low < self.high or self.dim < 1:
            raise ConfigError(f"Amount needs low < high and dim of at least 1, got {self}")

    @property
    def parts(self) -> tuple[Part, ...]:
        """One part that belongs to the graph."""
        return (Part("", "number", low=self.low, high=self.high, dim=self.dim),)


@dataclass(frozen=True)
class Category(ComposedLayout):
    """One of `count` options for the whole graph: value `[*B]` int64.

    Args:
        count: number of options.
    """

    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"Category needs a count of at least 1, got {self.count}")

    @property
    def parts(self) -> tuple[Part, ...]:
        """One part that belongs to the graph."""
        return (Part("", "category", choices=self.count),)


@dataclass(frozen=True)
class _PerEntity(ComposedLayout):
    """A number or category for every entity.

    Args:
        value: `Amount` or `Category`.
    """

    value: Amount | Category

    def __post_init__(self) -> None:
        if not isinstance(self.value, Amount | Category):
            raise ConfigError(
                f"{type(self).__name__} takes an Amount or a Category, got {type(self.value).__name__}"
            )

    @property
    @abstractmethod
    def owner(self) -> Owner:
        """Whose the values are."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """One part with a row for each entity."""
        return (replace(self.value.parts[0], of=self.owner),)


class PerNode(_PerEntity):
    """A number or category for every node slot: value `[*B, N]`, or `[*B, N, dim]`; absent ones ignored."""

    owner: Owner = "nodes"


class PerEdge(_PerEntity):
    """A number or category for every edge slot: value `[*B, E]`, or `[*B, E, dim]`; absent ones ignored."""

    owner: Owner = "edges"


class _Join(ComposedLayout):
    """Named parts joined to one action."""

    def __init__(self, **parts: ActionLayout) -> None:
        if len(parts) < 2:
            raise ConfigError(f"{type(self).__name__} joins two or more parts, got {len(parts)}")
        self._joined = parts
        self._parts = self._flat()
        names = [part.name for part in self._parts]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigError(f"{type(self).__name__} has two parts called {', '.join(twice)}")

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, those of nested joins included."""
        return self._parts

    @abstractmethod
    def _flat(self) -> tuple[Part, ...]:
        """Return the parts with what each depends on."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._joined == other._joined

    def __hash__(self) -> int:
        return hash((type(self), self._parts))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={part!r}" for name, part in self._joined.items())
        return f"{type(self).__name__}({inner})"


class Joint(_Join):
    """Parts that are chosen independently of each other.

    Args:
        parts: by name; primitives or further joins, whose parts keep their own names.

    Example:
        >>> Joint(node=ChooseNode(), mode=Category(3)).parts[1].name
        'mode'
    """

    def _flat(self) -> tuple[Part, ...]:
        return tuple(part for name, layout in self._joined.items() for part in parts_of(layout, name))


class Then(_Join):
    """Parts that are chosen one after another, each given the values of all before it.

    Args:
        parts: by name, in order; primitives or further joins, whose parts keep their own names.

    Example:
        >>> Then(node=ChooseNode(), amount=Amount(low=0, high=1)).parts[1].given
        ('node',)
    """

    def _flat(self) -> tuple[Part, ...]:
        found: list[Part] = []
        for name, layout in self._joined.items():
            before = tuple(part.name for part in found)
            choices = [part.name for part in found if part.is_single_choice]
            for part in parts_of(layout, name):
                last = part.mask_given or (choices[-1] if choices else "")
                found.append(replace(part, given=(*before, *part.given), mask_given=last))
        return tuple(found)


def parts_of(layout: ActionLayout, name: str) -> tuple[Part, ...]:
    """Return a layout as parts of a join.

    Raises:
        ConfigError: it is none of the primitives.
    """
    if isinstance(layout, _Join):
        return layout.parts
    if isinstance(layout, ComposedLayout):
        return tuple(replace(part, name=name) for part in layout.parts)
    if isinstance(layout, ChooseNode | ChooseEdge):
        return (Part(name, "choose", of="nodes" if isinstance(layout, ChooseNode) else "edges"),)
    raise ConfigError(
        f"{name}: {type(layout).__name__} cannot be a part of a composed action",
        hint="parts are ChooseNode, ChooseEdge, Category, Amount, PerNode, PerEdge, Then and Joint",
    )


def _own_dims(part: Part) -> tuple[str, ...]:
    """Return the dimensions of a value without those of the batch."""
    rows = () if part.kind == "choose" or part.of == "graph" else ("rows",)
    return (*rows, "dim") if part.kind == "number" and part.dim > 1 else rows


def _marked(
    found: ActionMarks, part: Part, value: Tensor, observation: TensorDictBase, words: list[str]
) -> ActionMarks:
    """Add the marks of one part; what is not drawn is added to `words`."""
    if part.kind == "choose":
        words.append(f"{part.of.removesuffix('s')} {int(value)}")
        if part.of == "nodes":
            return replace(found, nodes=(*found.nodes, int(value)))
        return replace(found, edges=(*found.edges, int(value)))
    share = (value.float() - part.low) / (part.high - part.low)
    if part.kind == "category":
        share = value.float() / max(part.choices - 1, 1)
    if part.of == "edges" and part.dim == 1:
        return replace(found, edge_shades=share.clamp(0, 1))
    if part.of == "nodes":
        exists = observation[GRAPH, "node_mask"].tolist()
        rows = value.reshape(len(exists), -1).tolist()
        shown = {
            node: " ".join(f"{number:.3g}" for number in row) for node, row in enumerate(rows) if exists[node]
        }
        return replace(found, labels={**found.labels, **shown})
    numbers = [f"{number:.3g}" for number in value.reshape(-1).tolist()]
    words.append(f"{part.name or 'value'} {listed(numbers)}")
    return found
