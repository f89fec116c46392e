"""From node embeddings to a distribution over actions: one head for each way to act on a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tensordict import NestedKey, TensorDict
from torch import Tensor, nn
from torch.distributions import Distribution

from edgewise.graphs.actions import ActionLayout, AgentsDiscrete, ChooseNode
from edgewise.graphs.spec import GRAPH, GraphSpec
from edgewise.models.config import ModelConfig
from edgewise.models.distributions import MaskedCategorical, check_mask

MASK = "action_mask"
ACTIVE: NestedKey = ("agents", "active")


class Head(Protocol):
    """Node embeddings and the rest of an observation in, a distribution over actions out."""

    in_keys: Sequence[NestedKey]

    def __call__(self, h: Tensor, tensordict: TensorDict) -> Distribution:
        """`h` is `[*B, N, C]`."""


def feed_forward(inputs: int, hidden: Sequence[int], outputs: int, *, gain: float = 1.0) -> nn.Sequential:
    """ReLU layers with orthogonal weights and zero biases; `gain` is that of the last layer."""
    widths = [inputs, *hidden]
    layers: list[nn.Module] = []
    for before, after in zip(widths, widths[1:], strict=False):
        layers += [_orthogonal(nn.Linear(before, after), 2**0.5), nn.ReLU()]
    return nn.Sequential(*layers, _orthogonal(nn.Linear(widths[-1], outputs), gain))


def _orthogonal(layer: nn.Linear, gain: float) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def agents_present(tensordict: TensorDict, num_agents: int) -> Tensor:
    """Which agents exist and act, `[*B, A]` bool.

    A is what the observation says: the width of `agents.active`, else that of `action_mask`, else `num_agents`; so a
    model trained on one number of agents runs on another.
    """
    exists = tensordict.get(GRAPH).get("node_mask")
    active = tensordict.get(ACTIVE, None)
    if active is not None:
        return exists[..., : active.shape[-1]] & active
    mask = tensordict.get(MASK, None)
    return exists[..., : num_agents if mask is None else mask.shape[-2]]


class ChooseNodeHead(nn.Module):
    """One logit per node; absent nodes and those that `action_mask [*B, N]` forbids cannot be chosen."""

    in_keys: Sequence[NestedKey] = (GRAPH, MASK)

    def __init__(self, channels: int, config: ModelConfig) -> None:
        super().__init__()
        self.score = feed_forward(channels, config.head_hidden, 1, gain=config.policy_gain)

    def forward(self, h: Tensor, tensordict: TensorDict) -> MaskedCategorical:
        """A distribution over nodes, batch `[*B]`."""
        allowed = allowed_nodes(tensordict)
        check_mask(allowed)
        return MaskedCategorical(self.score(h).squeeze(-1), allowed)


def allowed_nodes(tensordict: TensorDict) -> Tensor:
    """Nodes that exist and that the mask, where there is one, allows, `[*B, N]` bool."""
    exists = tensordict.get(GRAPH).get("node_mask")
    mask = tensordict.get(MASK, None)
    return exists if mask is None else exists & mask


class AgentsDiscreteHead(nn.Module):
    """K logits per agent node; agents that are absent or inactive do nothing (0) with certainty."""

    in_keys: Sequence[NestedKey] = (GRAPH, MASK, ACTIVE)

    def __init__(self, channels: int, layout: AgentsDiscrete, config: ModelConfig) -> None:
        super().__init__()
        self.layout = layout
        self.score = feed_forward(channels, config.head_hidden, layout.num_actions, gain=config.policy_gain)

    def forward(self, h: Tensor, tensordict: TensorDict) -> MaskedCategorical:
        """A distribution per agent, batch `[*B, A]`."""
        present = agents_present(tensordict, self.layout.num_agents)
        mask = tensordict.get(MASK, None)
        if mask is not None:
            check_mask(mask, needed=present, what="action")
        return MaskedCategorical(self.score(h[..., : present.shape[-1], :]), mask, counted=present)


def make_head(layout: ActionLayout, graph: GraphSpec, config: ModelConfig) -> Head:
    """The head that fits an environment's way to act."""
    channels = config.encoder.hidden
    if isinstance(layout, ChooseNode):
        return ChooseNodeHead(channels, config)
    if isinstance(layout, AgentsDiscrete):
        return AgentsDiscreteHead(channels, layout, config)
    raise TypeError(f"no head for the action layout {layout!r}")
