"""The policy head of composed actions: a network for each part, which reads the values chosen before it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.actions.composed import ComposedLayout
from edgewise.graphs.actions.parts import Part
from edgewise.graphs.edges import Edges
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec
from edgewise.models.bridge import Pool, pool_nodes
from edgewise.models.config import MIN_STD, ModelConfig
from edgewise.models.distributions.composed import ComposedDistribution, PartDistribution, Values
from edgewise.models.distributions.masked import JointCategorical, MaskedCategorical, check_mask
from edgewise.models.distributions.squashed import SquashedNormal
from edgewise.models.edge_heads import EdgeEmbedding
from edgewise.models.heads import Head, feed_forward, orthogonal, unsquashed


@dataclass(frozen=True)
class Embedded:
    """What the networks of parts read of B graphs.

    Args:
        h: node embeddings `[*B, N, C]`.
        node_mask: `[*B, N]` bool.
        pooled: `[*B, C]`.
        edges: None if no part is about edges.
    """

    h: Tensor
    node_mask: Tensor
    pooled: Tensor
    edges: Edges | None

    @classmethod
    def of(
        cls, h: Tensor, observation: TensorDictBase, graph: GraphSpec, *, uses_edges: bool, pool: Pool
    ) -> Embedded:
        """Build it from node embeddings and an observation."""
        seen = observation.get(GRAPH)
        exists = seen.get("node_mask")
        edges = graph.edges_of(seen) if uses_edges else None
        return cls(h, exists, pool_nodes(h, exists, how=pool), edges)

    def exists(self, part: Part) -> Tensor | None:
        """Return which entities of a part exist, `[*B, R]` bool; None if it belongs to the graph."""
        if part.of == "graph":
            return None
        if part.of == "nodes":
            return self.node_mask
        assert self.edges is not None
        return self.edges.mask


class Rows(nn.Module):
    """Embeddings of what a part is about: `[*B, N, C]`, `[*B, E, C]`, or the pooled graph `[*B, C]`.

    Args:
        part: of a composed action.
        graph: shape of the graphs.
        width: C.
    """

    def __init__(self, part: Part, graph: GraphSpec, width: int) -> None:
        super().__init__()
        self.of = part.of
        self.edges = EdgeEmbedding(graph, channels=width, width=width) if part.of == "edges" else None

    def forward(self, seen: Embedded) -> Tensor:
        """Return the rows."""
        if self.edges is not None:
            assert seen.edges is not None
            return self.edges(seen.h, seen.edges)
        return seen.h if self.of == "nodes" else seen.pooled


class Context(nn.Module):
    """The embedding of the value of one part, `[*S, *B, C]`.

    Args:
        part: of a composed action.
        graph: shape of the graphs.
        width: C.
    """

    def __init__(self, part: Part, graph: GraphSpec, width: int) -> None:
        super().__init__()
        self.part = part
        self.rows = None if part.of == "graph" else Rows(part, graph, width)
        self.project = None if part.of == "graph" else orthogonal(nn.Linear(width, width), 1.0)
        self.value: nn.Module | None = None
        if part.kind == "category":
            self.value = nn.Embedding(part.choices, width)
        elif part.kind == "number":
            self.value = nn.Linear(part.dim, width)

    def forward(self, seen: Embedded, value: Tensor) -> Tensor:
        """Embed values `[*S, *B, ...]`."""
        part = self.part
        if part.kind == "number":
            unit = (2 * value - part.low - part.high) / (part.high - part.low)
            value = (unit.unsqueeze(-1) if part.dim == 1 else unit).to(seen.h.dtype)
        if self.rows is None or self.project is None:
            assert self.value is not None
            return self.value(value)
        rows = self.project(self.rows(seen))
        if part.kind == "choose":
            return picked(rows, value)
        assert self.value is not None
        exists = seen.exists(part)
        assert exists is not None
        each = functional.relu(rows + self.value(value)).masked_fill(~exists.unsqueeze(-1), 0.0)
        return each.sum(-2) / exists.sum(-1, keepdim=True).clamp(min=1)


class Contexts(nn.Module):
    """The sum of the embeddings of values of some parts, `[*S, *B, C]`.

    Args:
        parts: of a composed action.
        graph: shape of the graphs.
        width: C.
    """

    def __init__(self, parts: Iterable[Part], graph: GraphSpec, width: int) -> None:
        super().__init__()
        self.of = nn.ModuleDict({_key(part.name): Context(part, graph, width) for part in parts})

    def forward(self, seen: Embedded, values: Values) -> Tensor:
        """Embed the values of parts, each `[*S, *B, ...]`."""
        found: Tensor | None = None
        for name, value in values.items():
            own = self.of[_key(name)](seen, value)
            found = own if found is None else found + own
        assert found is not None
        return found


class ConditionedScore(nn.Module):
    """An MLP over rows that also reads the values chosen before.

    Args:
        width: C, of rows and contexts.
        hidden: widths of hidden layers, one or more.
        outputs: numbers per row.
        gain: of the last layer.
        conditioned: whether values were chosen before.
    """

    def __init__(
        self, width: int, hidden: tuple[int, ...], outputs: int, *, gain: float, conditioned: bool
    ) -> None:
        super().__init__()
        first, *rest = hidden or (width,)
        self.rows = orthogonal(nn.Linear(width, first), math.sqrt(2))
        self.context = orthogonal(nn.Linear(width, first, bias=False), math.sqrt(2)) if conditioned else None
        self.rest = feed_forward(first, rest, outputs, gain=gain)

    def forward(self, rows: Tensor, context: Tensor | None) -> Tensor:
        """Return `[*S, *B, ..., outputs]` from rows `[*B, ..., C]` and contexts that add to them."""
        h = self.rows(rows)
        if self.context is not None and context is not None:
            h = h + self.context(context)
        return self.rest(functional.relu(h))


class PartHead(nn.Module):
    """The distribution of one part.

    Args:
        part: of a composed action.
        graph: shape of the graphs.
        config: widths, gain and standard deviation.
    """

    def __init__(self, part: Part, graph: GraphSpec, config: ModelConfig) -> None:
        super().__init__()
        self.part, width = part, config.encoder.hidden
        self.rows = Rows(part, graph, width)
        outputs = {"choose": 1, "category": part.choices, "number": 2 * part.dim}[part.kind]
        self.score = ConditionedScore(
            width, config.head_hidden, outputs, gain=config.policy_gain, conditioned=bool(part.given)
        )
        self.raw_offset = math.log(math.expm1(config.initial_std - MIN_STD))

    def forward(
        self,
        seen: Embedded,
        context: Tensor | None,
        legal: Tensor | None,
        *,
        check: bool,
        prior: Tensor | None = None,
    ) -> PartDistribution:
        """Return the distribution.

        Args:
            seen: of the graphs.
            context: of the values of parts before it.
            legal: the legal choices, `[*S, *B, K]` or `[*S, *B, R, K]`.
            check: whether a world without a legal choice is an error.
            prior: weighted, added to logits in the shape of `legal`, or to the means of numbers before
                squashing in the shape of their values.
        """
        part, rows = self.part, self.rows(seen)
        if context is not None and part.of != "graph":
            context = context.unsqueeze(-2)
        scores, exists = self.score(rows, context), seen.exists(part)
        if part.kind == "number":
            loc, raw = scores.chunk(2, -1)
            loc = loc if prior is None else loc + prior.reshape(*prior.shape[: loc.dim() - 1], part.dim)
            scale = functional.softplus(raw + self.raw_offset) + MIN_STD
            return SquashedNormal(loc, scale, low=part.low, high=part.high, counted=exists)
        assert legal is not None
        scores = scores.squeeze(-1) if part.kind == "choose" else scores
        scores = scores if prior is None else scores + prior
        if part.kind == "choose" or exists is None:
            if check:
                check_mask(legal, what=_what(part))
            return MaskedCategorical(scores, legal)
        if check:
            check_mask(legal, needed=exists, what=_what(part))
        return JointCategorical(scores, legal, counted=exists)


class ComposedHead(Head):
    """The head of every composed action: one network per part, given the values of the parts before it.

    Args:
        graph: shape and edge source of the graphs.
        config: widths, gain, pooling and standard deviation.
        layout: the parts.
    """

    takes_prior = True
    layout: ComposedLayout
    checks = True
    """Whether a world without a legal choice is an error; terminal states have none."""

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ComposedLayout) -> None:
        super().__init__(graph, config, layout=layout)
        parts, width = layout.parts, config.encoder.hidden
        self.pool: Pool = config.pool
        self.heads = nn.ModuleDict({_key(part.name): PartHead(part, graph, config) for part in parts})
        read = {name for part in parts for name in part.given}
        self.contexts = Contexts([part for part in parts if part.name in read], graph, width)
        self.outputs, self.decoding = _outputs(layout), _decoding(layout)

    def forward(self, h: Tensor, tensordict: TensorDict) -> ComposedDistribution:
        """Return the joint distribution over actions `[*B, W]`, batch `[*B]`."""
        seen = Embedded.of(h, tensordict, self.graph, uses_edges=self.layout.uses_edges, pool=self.pool)
        lead = len(tensordict.batch_size)

        def make(part: Part, values: Values) -> PartDistribution:
            before = {name: values[name] for name in part.given}
            context = self.contexts(seen, before) if before else None
            legal = part.legal(tensordict, self.graph, before, exists=seen.exists(part))
            drawn = all(before[name].dim() == lead for name in part.given if part.mask_given == name)
            prior = self._prior_of(part, tensordict)
            head = self.heads[_key(part.name)]
            return head(seen, context, legal, check=self.checks and drawn, prior=prior)

        edges = 0 if seen.edges is None else seen.edges.mask.shape[-1]
        return ComposedDistribution(
            self.layout, make, batch_shape=tensordict.batch_size, nodes=h.shape[-2], edges=edges
        )

    def _prior_of(self, part: Part, tensordict: TensorDict) -> Tensor | None:
        """Return the weighted prior of a part; None if it has none."""
        prior = self.prior_in(tensordict)
        if isinstance(prior, TensorDictBase):
            prior = prior.get(part.name, None)
        if prior is None:
            return None
        if part.kind == "number":
            prior = unsquashed(prior, low=part.low, high=part.high)
        return self.weight_of_prior() * prior

    def tensors(self, h: Tensor, tensordict: TensorDict) -> dict[str, Tensor]:
        """Return the action, and the parameters of each part given the values in it."""
        found = self(h, tensordict)
        action = found.mode
        columns = self.layout.split(action, nodes=h.shape[-2], edges=found._slots[1])
        values: dict[str, Tensor] = {}
        outputs = {"action": action}
        for part, own in zip(self.layout.parts, columns, strict=True):
            of = found.of(part, values)
            values[part.name] = part.value_of(own)
            names = _parameters(part)
            if isinstance(of, SquashedNormal):
                outputs |= dict(zip(names, (of.loc, of.scale), strict=True))
            else:
                outputs[names[0]] = of.logits
        return outputs


def picked(rows: Tensor, index: Tensor) -> Tensor:
    """Return one row each: `[*B, K, C]` and `[*S, *B]` int64 to `[*S, *B, C]`."""
    extra = index.dim() - (rows.dim() - 2)
    rows = rows.expand(*index.shape[:extra], *rows.shape)
    place = index[..., None, None].expand(*index.shape, 1, rows.shape[-1])
    return rows.gather(-2, place).squeeze(-2)


def _parameters(part: Part) -> tuple[str, ...]:
    """Return the names of the exported parameters of a part."""
    before = f"{part.name}_" if part.name else ""
    return (f"{before}loc", f"{before}scale") if part.kind == "number" else (f"{before}logits",)


def _outputs(layout: ComposedLayout) -> dict[str, str]:
    columns = ", then ".join(_described(part) for part in layout.parts)
    found = {"action": f"one row of numbers for each graph: {columns}"}
    for part in layout.parts:
        given = " given the values in `action`" if part.given else ""
        names = _parameters(part)
        if part.kind == "number":
            found[names[0]] = f"mean of {part.name or 'the value'} before squashing{given}"
            found[names[1]] = f"standard deviation of {part.name or 'the value'} before squashing{given}"
        else:
            found[names[0]] = f"log-probability of each choice of {part.name or 'the value'}{given}"
    return found


def _decoding(layout: ComposedLayout) -> str:
    words = "`action` is the most probable value of each part, given those before it; of numbers the median."
    scales = [
        f"{part.name or 'the value'} is {(part.low + part.high) / 2:g} + {(part.high - part.low) / 2:g} "
        "* tanh(loc + scale * z) with z from a standard normal"
        for part in layout.parts
        if part.kind == "number"
    ]
    return " ".join((words, *(f"For a random action, {scale}." for scale in scales)))


def _described(part: Part) -> str:
    name = part.name or "the value"
    if part.kind == "choose":
        return f"`{name}`, the slot of {'a node' if part.of == 'nodes' else 'an edge'}"
    what = f"`{name}`, {'a category' if part.kind == 'category' else f'{part.dim} number(s)'}"
    return what if part.of == "graph" else f"{what} for each of the {part.of}"


def _what(part: Part) -> str:
    return f"choice of {part.name}" if part.name else "choice"


def _key(name: str) -> str:
    """Return a name under which a module can be registered."""
    return f"part_{name}"


def part_values(layout: ComposedLayout, action: Tensor, seen: Embedded) -> Mapping[str, Tensor]:
    """Return the values of the parts of actions `[*B, W]` by name."""
    edges = 0 if seen.edges is None else seen.edges.mask.shape[-1]
    columns = layout.split(action, nodes=seen.h.shape[-2], edges=edges)
    return {part.name: part.value_of(own) for part, own in zip(layout.parts, columns, strict=True)}
