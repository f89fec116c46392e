"""The distribution of an action made of parts, each of which may depend on the values before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from torch import Generator, Size, Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint

from edgewise.graphs.actions.composed import ComposedLayout
from edgewise.graphs.actions.parts import Part
from edgewise.models.distributions.masked import JointCategorical, MaskedCategorical, Shape
from edgewise.models.distributions.squashed import SquashedNormal

Values = Mapping[str, Tensor]
PartDistribution = MaskedCategorical | JointCategorical | SquashedNormal
Make = Callable[[Part, Values], PartDistribution]
"""Makes the distribution of a part, given values `[*S, *B, ...]` of the parts before it."""


class ComposedDistribution(Distribution):
    """A joint distribution over the parts of an action: the product of one for each, in their order.

    The log-probability is exact. So is the entropy of parts that depend on nothing, and of a number or
    category for the graph that depends on one choice: it is averaged over all values of that choice. Other
    conditional entropies are estimated at one sample of the values before, with an unbiased gradient.

    Args:
        layout: the parts.
        make: makes the distribution of a part; called once for a part that depends on nothing.
        batch_shape: `[*B]`.
        nodes: number of node slots.
        edges: number of edge slots.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(
        self, layout: ComposedLayout, make: Make, *, batch_shape: Size, nodes: int, edges: int
    ) -> None:
        self.layout, self._make, self._slots = layout, make, (nodes, edges)
        self._fixed: dict[str, PartDistribution] = {}
        super().__init__(batch_shape, Size((sum(layout.widths(nodes, edges)),)), validate_args=False)

    def of(self, part: Part, values: Values) -> PartDistribution:
        """Return the distribution of one part, given the values of those before it."""
        if part.given:
            return self._make(part, values)
        if part.name not in self._fixed:
            self._fixed[part.name] = self._make(part, {})
        return self._fixed[part.name]

    @property
    def mode(self) -> Tensor:
        """The most probable value of each part, given those of the parts before it, `[*B, W]`."""
        values: dict[str, Tensor] = {}
        for part in self.layout.parts:
            values[part.name] = _to_value(part, self.of(part, values).mode)
        return self._joined(values)

    @property
    def deterministic_sample(self) -> Tensor:
        """The same as `mode`."""
        return self.mode

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample actions `[*sample_shape, *B, W]`."""
        return self._joined(self.sample_values(sample_shape, generator), lead=len(sample_shape))

    @torch.no_grad()
    def sample_values(
        self, sample_shape: Shape = (), generator: Generator | None = None
    ) -> dict[str, Tensor]:
        """Sample the value of each part, `[*sample_shape, *B, ...]`."""
        values: dict[str, Tensor] = {}
        for part in self.layout.parts:
            shape = () if part.given else sample_shape
            values[part.name] = _to_value(part, self.of(part, values).sample(shape, generator))
        return values

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log-probabilities `[*B]` of actions `[*B, W]`."""
        nodes, edges = self._slots
        columns = self.layout.split(value, nodes=nodes, edges=edges)
        values: dict[str, Tensor] = {}
        total: Tensor | None = None
        for part, own in zip(self.layout.parts, columns, strict=True):
            values[part.name] = part.value_of(own)
            found = log_prob_of(part, self.of(part, values), values[part.name])
            total = found if total is None else total + found
        assert total is not None
        return total

    def entropy(self) -> Tensor:
        """Return entropies `[*B]`, exact or estimated, see the class."""
        total: Tensor | None = None
        sampled: dict[str, Tensor] | None = None
        for part in self.layout.parts:
            if not part.given:
                found = entropy_of(part, self.of(part, {}))
            elif self._averages(part):
                found = self._average_entropy(part)
            else:
                sampled = self.sample_values() if sampled is None else sampled
                found = self._sampled_entropy(part, sampled)
            total = found if total is None else total + found
        assert total is not None
        return total

    def _averages(self, part: Part) -> bool:
        """Return whether the entropy can be averaged over all values of the one choice before a part."""
        before = [self.layout.part(name) for name in part.given]
        return (
            part.of == "graph" and part.kind != "choose" and len(before) == 1 and before[0].is_single_choice
        )

    def _average_entropy(self, part: Part) -> Tensor:
        before = self.layout.part(part.given[0])
        first = self.of(before, {})
        assert isinstance(first, MaskedCategorical)
        probs = first.probs.movedim(-1, 0)
        every = torch.arange(len(probs), device=probs.device)
        every = every.reshape(-1, *[1] * len(self.batch_shape)).expand_as(probs)
        return (probs * entropy_of(part, self._make(part, {before.name: every}))).sum(0)

    def _sampled_entropy(self, part: Part, values: Values) -> Tensor:
        """Return the entropy at sampled values, with the gradient of its expectation."""
        found = entropy_of(part, self.of(part, values))
        for name in part.given:
            before = self.layout.part(name)
            log_prob = log_prob_of(before, self.of(before, values), values[name])
            found = found + (log_prob - log_prob.detach()) * found.detach()
        return found

    def _joined(self, values: Values, lead: int = 0) -> Tensor:
        """Return the values as one tensor `[*S, *B, W]`."""
        lead += len(self.batch_shape)
        columns = [part.columns_of(values[part.name], lead) for part in self.layout.parts]
        floats = [each.dtype for each in columns if each.is_floating_point()]
        return torch.cat([each.to(floats[0] if floats else torch.int64) for each in columns], -1)


def log_prob_of(part: Part, distribution: PartDistribution, value: Tensor) -> Tensor:
    """Return the log-probability of the value of a part, summed over its rows, `[*B]`."""
    if part.kind != "number":
        return distribution.log_prob(value)
    found = distribution.log_prob(value.unsqueeze(-1) if part.dim == 1 else value)
    return found if part.of == "graph" else found.sum(-1)


def entropy_of(part: Part, distribution: PartDistribution) -> Tensor:
    """Return the entropy of a part, summed over its rows, `[*B]`."""
    found = distribution.entropy()
    return found.sum(-1) if part.kind == "number" and part.of != "graph" else found


def _to_value(part: Part, drawn: Tensor) -> Tensor:
    """Return what a distribution gives in the shape of the part's values."""
    return drawn.squeeze(-1) if part.kind == "number" and part.dim == 1 else drawn
