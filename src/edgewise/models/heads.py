"""Policy heads: the base of all heads, and those in which nodes act."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from tensordict import NestedKey, TensorDict, TensorDictBase
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn import functional

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout, AgentsContinuous, AgentsDiscrete
from edgewise.graphs.keys import ACTIVE, GRAPH, MASK, PRIOR
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import MIN_STD, ModelConfig
from edgewise.models.distributions.masked import MaskedCategorical, check_mask
from edgewise.models.distributions.squashed import SquashedNormal
from edgewise.models.policy_function import Decode

SMALLEST_WEIGHT = 1e-9
"""Weight of a prior that has faded out."""
BOUND_OF_PRIOR = 1 - 1e-4
"""Largest size of a number that a rule gives, as a share of its range; squashing reaches no bound."""


class Head(nn.Module, ABC):
    """Base of modules that map node embeddings and an observation to a distribution over actions.

    A subclass defines `forward`.

    Every head takes the same arguments, so that `make_head` can build the head of any action layout.

    Args:
        graph: shape and edge source of the graphs.
        config: widths and gain.
        layout: action layout that the head is for.

    Attributes:
        in_keys: entries of an observation that the head reads; all but the graph are optional.
        takes_prior: whether the head can add `action_prior` to its logits; see `ModelConfig.prior`.
        outputs: what `tensors` returns, by name, with its meaning.
        decoding: how an action follows from these tensors, in words.
        decode: how an action follows from them; None if `action` is among them.
    """

    in_keys: Sequence[NestedKey] = (GRAPH, MASK)
    takes_prior = False
    outputs: Mapping[str, str] = {
        "logits": "log-probability of each choice, about -3e38 for those that are not allowed",
        "action": "the most probable choice; 0 for who does not act",
    }
    decoding: str = (
        "`action` is the most probable choice, the argmax of `logits` over its last dimension. For a random "
        "action, sample with the probabilities exp(`logits`)."
    )
    decode: Decode | None = None

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> None:
        super().__init__()
        self.graph = graph
        self.layout = layout
        self.prior_weight: nn.Parameter | None = None
        if config.prior is not None:
            if not self.takes_prior:
                raise ConfigError(
                    f"model.prior is set, and actions of {type(layout).__name__} have no action_prior",
                    hint="leave model.prior out",
                )
            self.in_keys = (*self.in_keys, PRIOR)
            self.prior_weight = nn.Parameter(torch.tensor(math.log(math.expm1(config.prior))))

    def with_prior(self, logits: Tensor, tensordict: TensorDict) -> Tensor:
        """Add `action_prior` with the learned weight; return `logits` if the model has no such weight."""
        prior = self.prior_in(tensordict)
        return logits if prior is None else logits + self.weight_of_prior() * prior

    def prior_in(self, tensordict: TensorDict) -> Tensor | TensorDictBase | None:
        """Return `action_prior` of an observation; None if the model does not use it."""
        if self.prior_weight is None:
            return None
        prior: Tensor | TensorDictBase | None = tensordict.get(PRIOR, None)
        if prior is None:
            raise ConfigError(
                "model.prior is set, and the environment gives no action_prior",
                hint="set env.prior, or leave model.prior out",
            )
        return prior

    def weight_of_prior(self) -> Tensor:
        """Return the weight of the prior, 0-d."""
        assert self.prior_weight is not None
        return functional.softplus(self.prior_weight)

    @torch.no_grad()
    def set_weight_of_prior(self, weight: float) -> None:
        """Set the weight of the prior, as schedules do.

        Raises:
            ValueError: the model has no prior.
        """
        if self.prior_weight is None:
            raise ValueError("the model has no prior: set model.prior to its first weight")
        self.prior_weight.fill_(math.log(math.expm1(max(weight, SMALLEST_WEIGHT))))

    @classmethod
    def build(cls, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> Head:
        """Build the head; a class overrides this if the config chooses between several."""
        return cls(graph, config, layout=layout)

    def set_graph(self, graph: GraphSpec) -> None:
        """Use another topology or edge rule from now on; features and node types must be the same."""
        self.graph = graph

    @abstractmethod
    def forward(self, h: Tensor, tensordict: TensorDict) -> Distribution:
        """Return the distribution over actions of every world; `h` is `[*B, N, C]`."""

    def tensors(self, h: Tensor, tensordict: TensorDict) -> dict[str, Tensor]:
        """Return the distribution as the named tensors of `outputs`, for export."""
        found = self(h, tensordict)
        return {"logits": found.logits, "action": found.mode}


class Rows(nn.Sequential):
    """Layers on the rows of a tensor of any shape, which is made a matrix once and not before every layer."""

    def forward(self, values: Tensor) -> Tensor:
        """Apply the layers to `[*B, C]`."""
        if values.dim() < 3:
            return super().forward(values)
        found: Tensor = super().forward(values.flatten(0, -2))
        return found.unflatten(0, values.shape[:-1])


def unsquashed(values: Tensor, *, low: float, high: float) -> Tensor:
    """Return the mean before squashing of numbers between two bounds."""
    unit = (2 * values - low - high) / (high - low)
    return torch.atanh(unit.clamp(-BOUND_OF_PRIOR, BOUND_OF_PRIOR))


def feed_forward(inputs: int, hidden: Sequence[int], outputs: int, *, gain: float = 1.0) -> nn.Sequential:
    """Build an MLP of ReLU layers with orthogonal weights and zero biases; the last layer has `gain`."""
    widths = [inputs, *hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [orthogonal(nn.Linear(before, after), math.sqrt(2)), nn.ReLU()]
    return Rows(*layers, orthogonal(nn.Linear(widths[-1], outputs), gain))


def orthogonal(layer: nn.Linear, gain: float) -> nn.Linear:
    """Initialise a layer with orthogonal weights and zero biases, in place, and return it."""
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def allowed_nodes(tensordict: TensorDict) -> Tensor:
    """Return the nodes that exist and that the mask, if there is one, allows, `[*B, N]` bool."""
    exists = tensordict.get(GRAPH).get("node_mask")
    mask = tensordict.get(MASK, None)
    return exists if mask is None else exists & mask


def acting_agents(tensordict: TensorDict, num_agents: int) -> Tensor:
    """Return which agents exist and act, `[*B, A]` bool.

    A is read from the observation: the width of `agents.active`, else that of `action_mask`, else
    `num_agents`. So a model trained with one number of agents runs with another.
    """
    exists = tensordict.get(GRAPH).get("node_mask")
    active = tensordict.get(ACTIVE, None)
    if active is not None:
        return exists[..., : active.shape[-1]] & active
    mask = tensordict.get(MASK, None)
    return exists[..., : num_agents if mask is None else mask.shape[-2]]


class ChooseNodeHead(Head):
    """One logit per node; absent nodes and those that `action_mask [*B, N]` forbids have probability zero."""

    takes_prior = True

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> None:
        super().__init__(graph, config, layout=layout)
        self.score = feed_forward(config.encoder.hidden, config.head_hidden, 1, gain=config.policy_gain)

    def forward(self, h: Tensor, tensordict: TensorDict) -> MaskedCategorical:
        """Return a distribution over nodes, batch `[*B]`."""
        allowed = allowed_nodes(tensordict)
        check_mask(allowed)
        return MaskedCategorical(self.with_prior(self.score(h).squeeze(-1), tensordict), allowed)


class AgentsDiscreteHead(Head):
    """K logits per agent; absent and inactive agents take action 0 with probability one.

    Args:
        graph: shape of the graphs.
        config: widths and gain.
        layout: number of agents and actions.
    """

    in_keys: Sequence[NestedKey] = (GRAPH, MASK, ACTIVE)
    takes_prior = True

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: AgentsDiscrete) -> None:
        super().__init__(graph, config, layout=layout)
        width, outputs = config.encoder.hidden, layout.num_actions
        self.score = feed_forward(width, config.head_hidden, outputs, gain=config.policy_gain)

    def forward(self, h: Tensor, tensordict: TensorDict) -> MaskedCategorical:
        """Return a distribution per agent, batch `[*B, A]`."""
        acting = acting_agents(tensordict, self.layout.num_agents)
        mask = tensordict.get(MASK, None)
        if mask is not None:
            check_mask(mask, needed=acting, what="action")
        logits = self.with_prior(self.score(h[..., : acting.shape[-1], :]), tensordict)
        return MaskedCategorical(logits, mask, counted=acting)


class AgentsContinuousHead(Head):
    """A squashed normal per agent; absent and inactive agents take the middle of the range.

    The standard deviation depends on the observation and is never below `MIN_STD`.

    Args:
        graph: shape of the graphs.
        config: widths, gain and standard deviations.
        layout: number of agents, numbers per agent and their bounds.
    """

    in_keys: Sequence[NestedKey] = (GRAPH, ACTIVE)
    outputs: Mapping[str, str] = {
        "action": "the median action within its bounds; the middle of the range for who does not act",
        "loc": "mean of an action before squashing",
        "scale": "standard deviation of an action before squashing",
    }
    takes_prior = True
    layout: AgentsContinuous

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: AgentsContinuous) -> None:
        super().__init__(graph, config, layout=layout)
        self.raw_offset = math.log(math.expm1(config.initial_std - MIN_STD))
        width, outputs = config.encoder.hidden, 2 * layout.dim
        self.parameterise = feed_forward(width, config.head_hidden, outputs, gain=config.policy_gain)
        middle, half = (layout.low + layout.high) / 2, (layout.high - layout.low) / 2
        self.decoding = (
            f"`action` is the median. For a random action, compute {middle:g} + {half:g} * tanh(`loc` + "
            "`scale` * z) with z from a standard normal."
        )

    def forward(self, h: Tensor, tensordict: TensorDict) -> SquashedNormal:
        """Return a distribution per agent, batch `[*B, A]`."""
        acting = acting_agents(tensordict, self.layout.num_agents)
        loc, raw = self.parameterise(h[..., : acting.shape[-1], :]).chunk(2, -1)
        scale = functional.softplus(raw + self.raw_offset) + MIN_STD
        low, high = self.layout.low, self.layout.high
        prior = self.prior_in(tensordict)
        if isinstance(prior, Tensor):
            loc = loc + self.weight_of_prior() * unsquashed(prior, low=low, high=high)
        return SquashedNormal(loc, scale, low=low, high=high, counted=acting)

    def tensors(self, h: Tensor, tensordict: TensorDict) -> dict[str, Tensor]:
        """Return the median action, and the parameters of the distribution."""
        found = self(h, tensordict)
        return {"action": found.mode, "loc": found.loc, "scale": found.scale}
