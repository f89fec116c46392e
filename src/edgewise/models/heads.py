"""From node embeddings to a distribution over actions: the base of all heads, and those where nodes act."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from tensordict import NestedKey, TensorDict
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn import functional

from edgewise.graphs.actions import AgentsContinuous, AgentsDiscrete
from edgewise.graphs.keys import ACTIVE, GRAPH
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import ModelConfig
from edgewise.models.distributions.masked import MaskedCategorical, check_mask
from edgewise.models.distributions.squashed import SquashedNormal

MASK = "action_mask"


class Head(nn.Module):
    """Node embeddings and the rest of an observation in, a distribution over actions out.

    Args:
        graph: the graph's shape and edge source.

    Attributes:
        in_keys: what is read of an observation; entries other than the graph may be missing.
    """

    in_keys: Sequence[NestedKey] = (GRAPH, MASK)

    def __init__(self, graph: GraphSpec) -> None:
        super().__init__()
        self.graph = graph

    def retarget(self, graph: GraphSpec) -> None:
        """Run on graphs of another topology or rule from now on; features and types must be the same."""
        self.graph = graph

    @abstractmethod
    def forward(self, h: Tensor, tensordict: TensorDict) -> Distribution:
        """The distribution over actions of every world; `h` is `[*B, N, C]`."""


def feed_forward(inputs: int, hidden: Sequence[int], outputs: int, *, gain: float = 1.0) -> nn.Sequential:
    """ReLU layers with orthogonal weights and zero biases; `gain` is that of the last layer."""
    widths = [inputs, *hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [orthogonal(nn.Linear(before, after), math.sqrt(2)), nn.ReLU()]
    return nn.Sequential(*layers, orthogonal(nn.Linear(widths[-1], outputs), gain))


def orthogonal(layer: nn.Linear, gain: float) -> nn.Linear:
    """The layer with orthogonal weights and zero biases."""
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def allowed_nodes(tensordict: TensorDict) -> Tensor:
    """Nodes that exist and that the mask, where there is one, allows, `[*B, N]` bool."""
    exists = tensordict.get(GRAPH).get("node_mask")
    mask = tensordict.get(MASK, None)
    return exists if mask is None else exists & mask


def acting_agents(tensordict: TensorDict, num_agents: int) -> Tensor:
    """Which agents exist and act, `[*B, A]` bool.

    A is what the observation says: the width of `agents.active`, else that of `action_mask`, else
    `num_agents`; so a model trained on one number of agents runs on another.
    """
    exists = tensordict.get(GRAPH).get("node_mask")
    active = tensordict.get(ACTIVE, None)
    if active is not None:
        return exists[..., : active.shape[-1]] & active
    mask = tensordict.get(MASK, None)
    return exists[..., : num_agents if mask is None else mask.shape[-2]]


class ChooseNodeHead(Head):
    """One logit per node; absent nodes and those that `action_mask [*B, N]` forbids cannot be chosen.

    Args:
        graph: the graph's shape.
        config: widths and gain.
    """

    def __init__(self, graph: GraphSpec, config: ModelConfig) -> None:
        super().__init__(graph)
        self.score = feed_forward(config.encoder.hidden, config.head_hidden, 1, gain=config.policy_gain)

    def forward(self, h: Tensor, tensordict: TensorDict) -> MaskedCategorical:
        """A distribution over nodes, batch `[*B]`."""
        allowed = allowed_nodes(tensordict)
        check_mask(allowed)
        return MaskedCategorical(self.score(h).squeeze(-1), allowed)


class AgentsDiscreteHead(Head):
    """K logits per agent; agents that are absent or inactive give action 0 with certainty.

    Args:
        graph: the graph's shape.
        config: widths and gain.
        layout: how many agents and actions.
    """

    in_keys: Sequence[NestedKey] = (GRAPH, MASK, ACTIVE)

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: AgentsDiscrete) -> None:
        super().__init__(graph)
        self.layout = layout
        width, outputs = config.encoder.hidden, layout.num_actions
        self.score = feed_forward(width, config.head_hidden, outputs, gain=config.policy_gain)

    def forward(self, h: Tensor, tensordict: TensorDict) -> MaskedCategorical:
        """A distribution per agent, batch `[*B, A]`."""
        acting = acting_agents(tensordict, self.layout.num_agents)
        mask = tensordict.get(MASK, None)
        if mask is not None:
            check_mask(mask, needed=acting, what="action")
        return MaskedCategorical(self.score(h[..., : acting.shape[-1], :]), mask, counted=acting)


class AgentsContinuousHead(Head):
    """A squashed normal per agent; agents that are absent or inactive give the middle of the range.

    The standard deviation depends on the state and is never below `min_std`.

    Args:
        graph: the graph's shape.
        config: widths, gain and standard deviations.
        layout: how many agents and numbers, and their bounds.
    """

    in_keys: Sequence[NestedKey] = (GRAPH, ACTIVE)

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: AgentsContinuous) -> None:
        super().__init__(graph)
        self.layout, self.min_std = layout, config.min_std
        self.start = math.log(math.expm1(config.initial_std - config.min_std))
        width, outputs = config.encoder.hidden, 2 * layout.dim
        self.parameterise = feed_forward(width, config.head_hidden, outputs, gain=config.policy_gain)

    def forward(self, h: Tensor, tensordict: TensorDict) -> SquashedNormal:
        """A distribution per agent, batch `[*B, A]`."""
        acting = acting_agents(tensordict, self.layout.num_agents)
        loc, raw = self.parameterise(h[..., : acting.shape[-1], :]).chunk(2, -1)
        scale = functional.softplus(raw + self.start) + self.min_std
        return SquashedNormal(loc, scale, low=self.layout.low, high=self.layout.high, counted=acting)
