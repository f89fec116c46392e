"""Decoders: distributions and values of many steps of an instance whose graph is encoded once.

The encoder runs once per instance. A decoder first projects its node embeddings (`prepare`), which all steps
of the instance share. At each step it reads references to nodes and the few features that change
(`StepSpec`), and forms a query: attention over the nodes reads what the step needs, and the pointer scores
each node by its product with the result. This is the decoder of the attention model
(https://arxiv.org/abs/1803.08475) and POMO (https://arxiv.org/abs/2010.16011), with terms for node features
that change.

I counts instances and Q the steps of each, so that all steps of an instance are one matrix product.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn import functional

from edgewise.graphs.keys import CHOICES, GRAPH, MASK, STEP
from edgewise.graphs.step_spec import GRAPH_FEATURES, NODE_FEATURES, NODES, StepSpec
from edgewise.models.bridge import pool_nodes
from edgewise.models.config import ModelConfig
from edgewise.models.distributions.masked import InverseCategorical, check_mask
from edgewise.models.heads import Head, feed_forward

LIFTED = 16
"""Width of the hidden layer that node features of a step pass."""
DISTANCE_GAIN = 10.0
"""Factor of the weights of distances. An optimiser like Adam moves every parameter by about its learning rate
in each step, and these single weights have to become of order one."""


class Steps(NamedTuple):
    """What a decoder reads of Q steps of each of I instances.

    Attributes:
        references: `[R, I, Q]` int64 in the order of `StepSpec.references`; None without.
        x: `[I, Q, N, F]` or None.
        u: `[I, Q, G]` or None.
        mask: `[I, Q, N]` bool or None, the action mask.
        choices: `[I, Q, K]` int64 or None, the nodes of an offered set; `x` and the mask are then theirs.
    """

    references: Tensor | None
    x: Tensor | None
    u: Tensor | None
    mask: Tensor | None
    choices: Tensor | None = None

    @staticmethod
    def of(observation: TensorDictBase, spec: StepSpec, *, instances: int) -> Steps:
        """Read observations of any batch size, those of an instance next to each other."""
        step, dims = observation.get(STEP), observation.batch_dims

        def grouped(value: Tensor | None) -> Tensor | None:
            return None if value is None else value.reshape(instances, -1, *value.shape[dims:])

        references = None
        if spec.references:
            nodes = step.get(NODES)
            references = torch.stack([nodes.get(name) for name in spec.references])
            references = references.reshape(len(spec.references), instances, -1)
        x = grouped(step.get(NODE_FEATURES, None)) if spec.node_features else None
        u = grouped(step.get(GRAPH_FEATURES, None)) if spec.graph_features else None
        mask, choices = (grouped(observation.get(name, None)) for name in (MASK, CHOICES))
        return Steps(references, x, u, mask, choices)


class Prepared(NamedTuple):
    """Projections of the node embeddings of I instances.

    Attributes:
        node_mask: `[I, N]` bool.
        context: `[I, 1, C]`, of the pooled graph.
        tables: `[R, I * N + 1, C]`, of nodes that are referred to; the last row is that of no node. None
            without references.
        key: `[I, H, N, C / H]`.
        value: `[I, H, N, C / H]`.
        nodes: `[I, N, C]`: what the pointer compares, or the embeddings themselves.
        distances: `[I * N + 1, N]`, see `DistanceTerm`; None for graphs without positions.
    """

    node_mask: Tensor
    context: Tensor
    tables: Tensor | None
    key: Tensor
    value: Tensor
    nodes: Tensor
    distances: Tensor | None = None

    def rows(self, references: Tensor) -> Tensor:
        """Return the rows of `tables` that references `[R, I, Q]` point to."""
        count, nodes = self.node_mask.shape
        first = torch.arange(count, device=references.device).unsqueeze(-1) * nodes
        return torch.where(references < 0, count * nodes, first + references)


class Glimpse(nn.Module):
    """Reads what a step needs from the nodes of its instance: a query of its context, attention over nodes.

    There is no projection after the attention. Where the result is compared with projected nodes, it would
    only be a second matrix in the same product.

    Args:
        width: C, of embeddings.
        heads: H, of the attention.
        spec: what changes from step to step.
    """

    def __init__(self, width: int, heads: int, spec: StepSpec) -> None:
        super().__init__()
        self.width, self.heads, self.spec = width, heads, spec
        references = len(spec.references)
        self.graph = nn.Linear(width, width, bias=False)
        self.references = nn.Linear(width, references * width, bias=False) if references else None
        self.no_node = nn.Parameter(torch.zeros(references, 1, width)) if references else None
        self.features = nn.Linear(spec.graph_features, width) if spec.graph_features else None
        self.project = nn.Linear(width, 3 * width, bias=False)
        self.lift = nn.Linear(spec.node_features, LIFTED) if spec.node_features else None
        self.lifted = nn.Parameter(torch.zeros(4, LIFTED, width)) if spec.node_features else None
        if self.lifted is not None:
            nn.init.uniform_(self.lifted, -(LIFTED**-0.5), LIFTED**-0.5)

    def prepare(self, h: Tensor, node_mask: Tensor) -> Prepared:
        """Project node embeddings `[I, N, C]`, once per instance."""
        key, value, nodes = self.project(h).chunk(3, -1)
        tables = None
        if self.references is not None and self.no_node is not None:
            projected = self.references(h).unflatten(-1, (-1, self.width)).permute(2, 0, 1, 3)
            tables = torch.cat((projected.flatten(1, 2), self.no_node), 1)
        context = self.graph(pool_nodes(h, node_mask)).unsqueeze(1)
        return Prepared(node_mask, context, tables, self._by_head(key), self._by_head(value), nodes)

    def query(self, prepared: Prepared, steps: Steps) -> tuple[Tensor, Tensor | None]:
        """Return the context of every step `[I, Q, C]`, and its lifted node features `[I, Q, N, K]`."""
        query = prepared.context
        if steps.references is not None and prepared.tables is not None:
            for table, row in zip(prepared.tables, prepared.rows(steps.references), strict=True):
                query = query + table.index_select(0, row.reshape(-1)).unflatten(0, row.shape)
        if self.features is not None and steps.u is not None:
            query = query + self.features(steps.u)
        lifted = None
        if self.lift is not None and self.lifted is not None and steps.x is not None:
            exists = prepared.node_mask.unsqueeze(1) if steps.choices is None else steps.mask
            assert exists is not None
            exists = exists.unsqueeze(-1)
            lifted = functional.silu(self.lift(steps.x)).masked_fill(~exists, 0.0)
            mean = lifted.sum(-2) / exists.sum(-2).clamp(min=1)
            query = query + mean @ self.lifted[3]
        return query, lifted

    def forward(self, prepared: Prepared, query: Tensor, allowed: Tensor, lifted: Tensor | None) -> Tensor:
        """Return what the attention reads from the allowed nodes `[I, Q, N]`, `[I, Q, C]`."""
        by_head = self._by_head(query)
        if lifted is None or self.lifted is None:
            seen = functional.scaled_dot_product_attention(
                by_head, prepared.key, prepared.value, allowed.unsqueeze(1)
            )
            return seen.transpose(1, 2).flatten(-2)
        of_key, of_value = (part.unflatten(-1, (self.heads, -1)) for part in self.lifted[:2])
        score = by_head @ prepared.key.mT
        score = score + (torch.einsum("ihqd,khd->iqhk", by_head, of_key) @ lifted.mT).transpose(1, 2)
        score = score / math.sqrt(self.width // self.heads)
        alpha = score.masked_fill(~allowed.unsqueeze(1), torch.finfo(score.dtype).min).softmax(-1)
        seen = (alpha @ prepared.value).transpose(1, 2)
        seen = seen + torch.einsum("iqhk,khd->iqhd", alpha.transpose(1, 2) @ lifted, of_value)
        return seen.flatten(-2)

    def _by_head(self, rows: Tensor) -> Tensor:
        """Reshape `[I, Q, C]` to `[I, H, Q, C / H]`."""
        return rows.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class DistanceTerm(nn.Module):
    """Scores nodes by their distance to the nodes that a step refers to, with a learned weight of each.

    Without it, a pointer has to learn from embeddings that near nodes are good ones. Distances count in
    units of the typical distance between neighbours, so that the weights fit instances of any size.

    Args:
        references: R, the number of references of a step.
    """

    def __init__(self, references: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(references))

    def prepare(self, pos: Tensor, node_mask: Tensor) -> Tensor:
        """Return the distances from every node to every other, `[I * N + 1, N]`; the last row is zero.

        Args:
            pos: `[I, N, P]`.
            node_mask: `[I, N]` bool.
        """
        exists = node_mask.unsqueeze(-1) & node_mask.unsqueeze(-2)
        apart = pos.unsqueeze(-2) - pos.unsqueeze(-3)
        distance = apart.square().sum(-1).sqrt().masked_fill(~exists, 0.0)
        count = node_mask.sum(-1)
        mean = distance.sum((-2, -1)) / (count * (count - 1)).clamp(min=1)
        unit = 2 * mean / count.clamp(min=1).sqrt()
        scaled = distance / unit.clamp(min=torch.finfo(pos.dtype).tiny).view(-1, 1, 1)
        return functional.pad(scaled.flatten(0, 1), (0, 0, 0, 1))

    def forward(self, table: Tensor, rows: Tensor) -> Tensor:
        """Return what is added to the scores of all nodes `[I, Q, N]`, from rows of the table `[R, I, Q]`."""
        terms = [
            weight * table.index_select(0, row.reshape(-1)).unflatten(0, row.shape)
            for weight, row in zip(DISTANCE_GAIN * self.weight, rows, strict=True)
        ]
        return -sum(terms[1:], start=terms[0])


def allowed_in(prepared: Prepared, mask: Tensor | None) -> Tensor:
    """Return the nodes that exist and that the mask `[I, Q, N]`, if there is one, allows."""
    exists = prepared.node_mask.unsqueeze(1)
    return exists if mask is None else exists & mask


class Decoder(nn.Module):
    """Base of decoders: from prepared instances and their steps to distributions over actions.

    Attributes:
        spec: what changes from step to step.
        graph_entries: the entries of a graph that are read beside its embeddings; None for all.
    """

    spec: StepSpec
    graph_entries: tuple[str, ...] | None = ("node_mask",)

    @abstractmethod
    def prepare(self, h: Tensor, graph: TensorDictBase) -> Any:
        """Project node embeddings `[I, N, C]` of graphs `[I]`, once per instance."""

    @abstractmethod
    def embeddings(self, prepared: Any) -> Tensor:
        """Return the embeddings that actions are scored by, of instances `[I]`."""

    @abstractmethod
    def with_embeddings(self, prepared: Any, embeddings: Tensor) -> Any:
        """Return what was prepared with other embeddings to score actions by."""

    @abstractmethod
    def forward(self, prepared: Any, observation: TensorDictBase) -> Distribution:
        """Return the distributions of observations of any batch size, which become the batch shape.

        The steps of an instance are next to each other, and each has the same number.
        """

    def tensors(self, prepared: Any, observation: TensorDictBase) -> dict[str, Tensor]:
        """Return the distributions as the named tensors of `Head.outputs`, for export."""
        found = self(prepared, observation)
        return {"logits": found.logits, "action": found.mode}


class PointerDecoder(Decoder):
    """Points to a node: for `ChooseNode`.

    Args:
        config: widths, heads and `logit_clip`.
        spec: what changes from step to step.
        has_positions: whether nodes have positions; scores then also depend on distances.
    """

    def __init__(self, config: ModelConfig, spec: StepSpec, *, has_positions: bool = False) -> None:
        super().__init__()
        self.spec, self.clip = spec, config.logit_clip
        self.glimpse = Glimpse(config.encoder.hidden, config.encoder.heads, spec)
        self.distance = DistanceTerm(len(spec.references)) if has_positions and spec.references else None
        if self.distance is not None:
            self.graph_entries = ("node_mask", "pos")

    def prepare(self, h: Tensor, graph: TensorDictBase) -> Prepared:
        """Project node embeddings `[I, N, C]`."""
        prepared = self.glimpse.prepare(h, graph.get("node_mask"))
        if self.distance is None:
            return prepared
        return prepared._replace(distances=self.distance.prepare(graph.get("pos"), prepared.node_mask))

    def embeddings(self, prepared: Prepared) -> Tensor:
        """Return what the pointer compares, `[I, N, C]`."""
        return prepared.nodes

    def with_embeddings(self, prepared: Prepared, embeddings: Tensor) -> Prepared:
        """Replace what the pointer compares."""
        return prepared._replace(nodes=embeddings)

    def forward(self, prepared: Prepared, observation: TensorDictBase) -> InverseCategorical:
        """Return distributions over nodes."""
        steps = Steps.of(observation, self.spec, instances=prepared.node_mask.shape[0])
        allowed = allowed_in(prepared, steps.mask)
        check_mask(allowed)
        query, lifted = self.glimpse.query(prepared, steps)
        seen = self.glimpse(prepared, query, allowed, lifted)
        score = seen @ prepared.nodes.mT
        if lifted is not None:
            assert self.glimpse.lifted is not None
            score = score + ((seen @ self.glimpse.lifted[2].mT).unsqueeze(-2) @ lifted.mT).squeeze(-2)
        score = score / math.sqrt(self.glimpse.width)
        if self.distance is not None and prepared.distances is not None and steps.references is not None:
            score = score + self.distance(prepared.distances, prepared.rows(steps.references))
        logits = self.clip * torch.tanh(score)
        shape = (*observation.batch_size, logits.shape[-1])
        return InverseCategorical(logits.reshape(shape), allowed.expand_as(logits).reshape(shape))


class SetDecoder(Decoder):
    """Points to a member of the set of nodes that each step offers: for `ChooseFromSet`.

    Only the members are read at a step, so that its cost does not grow with the graph.

    Args:
        config: widths, heads and `logit_clip`.
        spec: what changes from step to step; node features are those of the members.
    """

    def __init__(self, config: ModelConfig, spec: StepSpec) -> None:
        super().__init__()
        self.spec, self.clip = spec, config.logit_clip
        self.glimpse = Glimpse(config.encoder.hidden, config.encoder.heads, spec)

    def prepare(self, h: Tensor, graph: TensorDictBase) -> tuple[Prepared, Tensor]:
        """Project node embeddings `[I, N, C]`, also to rows of keys, values and pointers `[I * N, 3 C]`."""
        prepared = self.glimpse.prepare(h, graph.get("node_mask"))
        rows = [part.transpose(1, 2).flatten(-2) for part in (prepared.key, prepared.value)]
        return prepared, torch.cat((*rows, prepared.nodes), -1).flatten(0, 1)

    def embeddings(self, prepared: tuple[Prepared, Tensor]) -> Tensor:
        """Return what the pointer compares, `[I, N, C]`."""
        return prepared[0].nodes

    def with_embeddings(
        self, prepared: tuple[Prepared, Tensor], embeddings: Tensor
    ) -> tuple[Prepared, Tensor]:
        """Replace what the pointer compares, the last third of the table."""
        projected, table = prepared
        kept = table[:, : -embeddings.shape[-1]]
        return projected._replace(nodes=embeddings), torch.cat((kept, embeddings.flatten(0, 1)), -1)

    def forward(self, prepared: tuple[Prepared, Tensor], observation: TensorDictBase) -> InverseCategorical:
        """Return distributions over places in the set."""
        projected, table = prepared
        count, nodes = projected.node_mask.shape
        steps = Steps.of(observation, self.spec, instances=count)
        assert steps.choices is not None
        assert steps.mask is not None
        check_mask(steps.mask, what="choice")
        query, lifted = self.glimpse.query(projected, steps)
        first = torch.arange(count, device=table.device).view(-1, 1, 1) * nodes
        place = first + torch.where(steps.mask, steps.choices, 0)
        members = table.index_select(0, place.reshape(-1)).unflatten(0, place.shape)
        if lifted is not None:
            assert self.glimpse.lifted is not None
            members = members + lifted @ torch.cat(tuple(self.glimpse.lifted[:3]), -1)
        key, value, pointer = members.chunk(3, -1)
        seen = self._attend(query, key, value, steps.mask)
        score = (pointer @ (query + seen).unsqueeze(-1)).squeeze(-1)
        logits = self.clip * torch.tanh(score / math.sqrt(self.glimpse.width))
        shape = (*observation.batch_size, logits.shape[-1])
        return InverseCategorical(logits.reshape(shape), steps.mask.reshape(shape))

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Attend from every step to its members, `[I, Q, C]`."""
        heads = self.glimpse.heads
        query, key, value = (part.unflatten(-1, (heads, -1)) for part in (query, key, value))
        score = torch.einsum("iqhd,iqkhd->iqhk", query, key) / math.sqrt(query.shape[-1])
        alpha = score.masked_fill(~mask.unsqueeze(2), torch.finfo(score.dtype).min).softmax(-1)
        return torch.einsum("iqhk,iqkhd->iqhd", alpha, value).flatten(-2)


class StepNodes(nn.Module):
    """Adds the context of a step and the features that change to the embeddings of all nodes.

    It lets any policy head and any value network act on steps. Its cost grows with steps times nodes.

    Args:
        width: C, of embeddings.
        heads: of the attention.
        spec: what changes from step to step.
    """

    def __init__(self, width: int, heads: int, spec: StepSpec) -> None:
        super().__init__()
        self.spec = spec
        self.glimpse = Glimpse(width, heads, spec)
        self.mix = nn.Linear(width, width)

    def forward(self, h: Tensor, graph: TensorDictBase, observation: TensorDictBase) -> Tensor:
        """Return node embeddings `[*B, N, C]` of observations `[*B]`, from those of instances `[I, N, C]`."""
        projected = self.glimpse.prepare(h, graph.get("node_mask"))
        steps = at_all_nodes(Steps.of(observation, self.spec, instances=h.shape[0]), h.shape[1])
        query, lifted = self.glimpse.query(projected, steps)
        exists = projected.node_mask.unsqueeze(1)
        seen = self.glimpse(projected, query, exists, lifted)
        nodes = projected.nodes.unsqueeze(1) + (query + seen).unsqueeze(2)
        if lifted is not None:
            assert self.glimpse.lifted is not None
            nodes = nodes + lifted @ self.glimpse.lifted[2]
        nodes = h.unsqueeze(1) + self.mix(functional.silu(nodes))
        nodes = nodes.masked_fill(~exists.unsqueeze(-1), 0.0)
        return nodes.reshape(*observation.batch_size, *nodes.shape[2:])


def at_all_nodes(steps: Steps, num_nodes: int) -> Steps:
    """Return steps with node features of all nodes, zero for those that are not offered."""
    if steps.choices is None or steps.x is None:
        return steps._replace(choices=None)
    mask = torch.ones_like(steps.choices, dtype=torch.bool) if steps.mask is None else steps.mask
    place = torch.where(mask, steps.choices, num_nodes).unsqueeze(-1).expand_as(steps.x)
    x = steps.x.new_zeros(*steps.x.shape[:2], num_nodes + 1, steps.x.shape[-1]).scatter(2, place, steps.x)
    return steps._replace(x=x[:, :, :-1], choices=None)


class NodeDecoder(Decoder):
    """Leaves the distribution to any policy head, on node embeddings of every step.

    Args:
        config: widths.
        spec: what changes from step to step.
        head: of the action layout.
    """

    graph_entries = None

    def __init__(self, config: ModelConfig, spec: StepSpec, head: Head) -> None:
        super().__init__()
        self.spec, self.head = spec, head
        self.nodes = StepNodes(config.encoder.hidden, config.encoder.heads, spec)

    def prepare(self, h: Tensor, graph: TensorDictBase) -> tuple[Tensor, TensorDictBase]:
        """Keep node embeddings with their graphs."""
        return h, graph

    def embeddings(self, prepared: tuple[Tensor, TensorDictBase]) -> Tensor:
        """Return the node embeddings `[I, N, C]`."""
        return prepared[0]

    def with_embeddings(
        self, prepared: tuple[Tensor, TensorDictBase], embeddings: Tensor
    ) -> tuple[Tensor, TensorDictBase]:
        """Replace the node embeddings."""
        return embeddings, prepared[1]

    def forward(self, prepared: tuple[Tensor, TensorDictBase], observation: TensorDictBase) -> Distribution:
        """Return the distribution of the head."""
        return self.head(self.nodes(*prepared, observation), with_graph(observation, prepared[1]))

    def tensors(
        self, prepared: tuple[Tensor, TensorDictBase], observation: TensorDictBase
    ) -> dict[str, Tensor]:
        """Return the distribution of the head as named tensors, for export."""
        return self.head.tensors(self.nodes(*prepared, observation), with_graph(observation, prepared[1]))


def with_graph(observation: TensorDictBase, graph: TensorDictBase) -> TensorDictBase:
    """Return the observation with the graph of its instance at every step."""
    if observation.get(GRAPH, None) is not None:
        return observation
    each = graph.unsqueeze(1).expand(len(graph), observation.numel() // len(graph))
    return observation.copy().set(GRAPH, each.reshape(observation.batch_size))


class StepValue(nn.Module):
    """The value of every step: attention over nodes, then an MLP.

    Args:
        config: widths.
        spec: what changes from step to step.
        nodes_are_chosen: whether actions choose nodes; attention is then over those that are allowed, or over
            all that exist after the last step.
    """

    def __init__(self, config: ModelConfig, spec: StepSpec, *, nodes_are_chosen: bool) -> None:
        super().__init__()
        self.spec, width = spec, config.encoder.hidden
        self.nodes_are_chosen = nodes_are_chosen
        self.glimpse = Glimpse(width, config.encoder.heads, spec)
        self.value = feed_forward(2 * width, config.head_hidden, 1)

    def forward(self, h: Tensor, graph: TensorDictBase, observation: TensorDictBase) -> Tensor:
        """Return values `[*B, 1]` of observations `[*B]`; `h` are the node embeddings `[I, N, C]`."""
        prepared = self.glimpse.prepare(h, graph.get("node_mask"))
        steps = at_all_nodes(Steps.of(observation, self.spec, instances=h.shape[0]), h.shape[1])
        query, lifted = self.glimpse.query(prepared, steps)
        exists, mask = prepared.node_mask.unsqueeze(1), steps.mask if self.nodes_are_chosen else None
        allowed = allowed_in(prepared, mask)
        allowed = torch.where(allowed.any(-1, keepdim=True), allowed, exists)
        seen = self.glimpse(prepared, query, allowed, lifted)
        value = self.value(torch.cat((query.expand_as(seen), seen), -1))
        return value.reshape(*observation.batch_size, 1)
