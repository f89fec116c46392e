"""The distribution over maximal independent sets of graphs that have too many to list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint
from torch.nn import functional

from edgewise.models.distributions.masked import Shape, check_finite
from edgewise.systems.queueing.sets.bits import pack
from edgewise.systems.queueing.sets.diagram import IN, SetDiagram
from edgewise.systems.queueing.sets.diagram_batch import DiagramBatch

DEAD = -1e30
"""Log-weight of states from which no set goes on; finite, so that gradients are."""


class SetDiagrams(nn.Module):
    """The maximal independent sets of each of G graphs as decision diagrams.

    Args:
        adjacency: `[G, N, N]` bool, symmetric, no loops.
        diagrams: one for each graph, of maximal sets.

    Attributes:
        diagrams: the diagrams as one batch.
        neighbours: `[G, N, W]` int64, the neighbours of each node as bits.
    """

    neighbours: Tensor

    def __init__(self, adjacency: Tensor, diagrams: Sequence[SetDiagram]) -> None:
        super().__init__()
        self.diagrams = DiagramBatch(diagrams)
        self.register_buffer("neighbours", pack(adjacency), persistent=False)

    def distribution(self, logits: Tensor, allowed: Tensor, *, graph: Tensor) -> DiagramSet:
        """Return the distribution over the sets of allowed nodes; see `DiagramSet`."""
        return DiagramSet(logits, allowed, tables=self, graph=graph)


class DiagramSet(Distribution):
    """The distribution of `MaximalSet`, `p(S) ∝ exp(Σ logits of S)`, by dynamic programming.

    The partition function is a sum over the paths of a decision diagram, from its end to its start: exact,
    with exact gradients. Samples and the mode follow one path each, and the entropy is a second sum. Time and
    memory grow with the states of the diagram, not with the number of sets. Ties of the mode are broken
    against nodes that are decided early.

    Args:
        logits: `[*B, N]`; ignored for nodes that are not allowed.
        allowed: `[*B, N]` bool.
        tables: the diagrams of some graphs.
        graph: `[*B]` int64, the graph of each world.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(self, logits: Tensor, allowed: Tensor, *, tables: SetDiagrams, graph: Tensor) -> None:
        logits = logits.masked_fill(~allowed, 0.0)
        check_finite(logits)
        super().__init__(logits.shape[:-1], logits.shape[-1:], validate_args=False)
        self.tables, self.graph, self.allowed, self.logits = tables, graph.reshape(-1), allowed, logits
        size = logits.shape[-1]
        self._logits = tables.diagrams.in_order(logits.reshape(-1, size), self.graph)
        self._open = tables.diagrams.in_order(allowed.reshape(-1, size), self.graph)

    @property
    def mode(self) -> Tensor:
        """The most probable set, `[*B, N]` bool."""
        values = self._values(torch.maximum)

        def take(number: int, state: Tensor, child: Tensor) -> Tensor:  # noqa: ARG001
            return self._advantage(values[number + 1], number, child) > 0

        return self._shaped(self.tables.diagrams.walk(self._open, self.graph, take))

    @property
    def deterministic_sample(self) -> Tensor:
        """The same as `mode`."""
        return self.mode

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample sets `[*sample_shape, *B, N]` bool."""
        values = self._log_weights

        def take(number: int, state: Tensor, child: Tensor) -> Tensor:  # noqa: ARG001
            odds = torch.sigmoid(self._advantage(values[number + 1], number, child))
            draw = torch.rand(odds.shape, dtype=odds.dtype, device=odds.device, generator=generator)
            return draw < odds

        size, worlds = self._open.shape
        allowed = self._open.view(size, *[1] * len(sample_shape), worlds).expand(size, *sample_shape, worlds)
        return self._shaped(self.tables.diagrams.walk(allowed, self.graph, take))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log-probabilities `[*B]` of sets `[*B, N]` bool; of others a very large negative number."""
        chosen = value.bool()
        neighbours = self.tables.neighbours[self.graph].view(*self.allowed.shape, -1)
        covered = (neighbours & pack(chosen).unsqueeze(-2)).any(-1)
        legal = torch.where(chosen, self.allowed & ~covered, covered | ~self.allowed).all(-1)
        total = (self.logits * chosen).sum(-1) - self.log_partition
        return total.masked_fill(~legal, torch.finfo(total.dtype).min)

    @property
    def log_partition(self) -> Tensor:
        """The logarithm of the sum of `exp(Σ logits of S)` over all sets, `[*B]`."""
        return self._log_weights[0][0].view(self._batch_shape)

    def entropy(self) -> Tensor:
        """Return entropies `[*B]`: of the first decision, plus those of what follows, and so on."""
        diagrams, after = self.tables.diagrams, self._end(0.0, 0.0)
        for number in reversed(range(diagrams.depth)):
            out, taken, barred = diagrams.after(self._log_weights[number + 1], number, self.graph)
            advantage = self._logits[number] + taken - out
            odds = torch.sigmoid(advantage)
            own = functional.softplus(advantage) - advantage * odds
            out, taken, barred = diagrams.after(after, number, self.graph)
            rest = out + odds * (taken - out)
            after = functional.pad(torch.where(self._open[number], own + rest, barred), (0, 0, 0, 1))
        return after[0].view(self._batch_shape)

    @cached_property
    def _log_weights(self) -> list[Tensor]:
        return self._values(torch.logaddexp)

    def _values(self, join: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
        """Return the values of the states of every layer and of the end, `[S + 1, B]` each."""
        values = [self._end(0.0, DEAD)]
        for number in reversed(range(self.tables.diagrams.depth)):
            out, taken, barred = self.tables.diagrams.after(values[0], number, self.graph)
            found = torch.where(self._open[number], join(out, taken + self._logits[number]), barred)
            values.insert(0, functional.pad(found, (0, 0, 0, 1), value=DEAD))
        return values

    def _end(self, end: float, none: float) -> Tensor:
        """Return the values after the last layer, `[2, B]`."""
        worlds = self._logits.shape[-1]
        return torch.stack([self._logits.new_full((worlds,), value) for value in (end, none)])

    def _advantage(self, values: Tensor, number: int, child: Tensor) -> Tensor:
        """Return by how much it is better to take a node than to leave it out, `[*K, B]`."""
        following = values.expand(*child.shape[:-2], *values.shape)
        left, right = following.gather(-2, child[..., : IN + 1].transpose(-1, -2)).unbind(-2)
        return self._logits[number] + right - left

    def _shaped(self, taken: Tensor) -> Tensor:
        """Return sets `[*K, B, N]` in the shape of the batch."""
        return taken.unflatten(-2, self._batch_shape) if self._batch_shape else taken.squeeze(-2)
