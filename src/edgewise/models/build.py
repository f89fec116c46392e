"""Build encoders and heads: the encoder that a config names, the head that an action layout needs."""

from __future__ import annotations

from typing import Literal

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import (
    ActionLayout,
    AgentsContinuous,
    AgentsDiscrete,
    ChooseEdgePerGroup,
    ChooseFromSet,
    ChooseIndependentSet,
    ChooseNode,
    ChooseSuccessor,
    EdgesDiscrete,
)
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import BUILT_IN_ENCODERS, EncoderConfig, ModelConfig
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.models.heads import AgentsContinuousHead, AgentsDiscreteHead, ChooseNodeHead, Head
from edgewise.models.set_heads import (
    ChooseEdgePerGroupHead,
    ChooseFromSetHead,
    ChooseIndependentSetHead,
    EdgesDiscreteHead,
)
from edgewise.plugins import find, load

HEADS: dict[type[ActionLayout], type[Head]] = {
    ChooseNode: ChooseNodeHead,
    ChooseIndependentSet: ChooseIndependentSetHead,
    ChooseFromSet: ChooseFromSetHead,
    ChooseEdgePerGroup: ChooseEdgePerGroupHead,
    EdgesDiscrete: EdgesDiscreteHead,
    AgentsDiscrete: AgentsDiscreteHead,
    AgentsContinuous: AgentsContinuousHead,
}
"""The head of each action layout; a layout without one here uses the head of its nearest base class."""


def make_encoder(
    graph: GraphSpec, config: EncoderConfig | None = None, *, of: Literal["actor", "critic"] = "actor"
) -> GraphEncoder:
    """Build the encoder of the kind that the config names; `of` is its role.

    Raises:
        ConfigError: an own encoder does not exist, or may not be imported.
    """
    config = config or EncoderConfig()
    encoder: type[GraphEncoder] = (
        load(BUILT_IN_ENCODERS[config.kind])
        if config.kind in BUILT_IN_ENCODERS
        else find("encoder", config.kind)
    )
    return encoder.build(graph, config, role=of)


def register_head(layout: type[ActionLayout], head: type[Head]) -> None:
    """Use `head` for environments whose action layout is a `layout` or a subclass without its own head.

    Args:
        layout: class of the action layout.
        head: class whose `build` makes the head.

    Raises:
        ConfigError: another head is registered for this layout.
    """
    known = HEADS.setdefault(layout, head)
    if known is not head:
        raise ConfigError(
            f"{layout.__name__} has the head {known.__name__}, so it cannot have {head.__name__}",
            hint=f"register {head.__name__} for a subclass of {layout.__name__}",
        )


def make_head(graph: GraphSpec, layout: ActionLayout, config: ModelConfig | None = None) -> Head:
    """Build the head that the config names, or else that of the action layout.

    Raises:
        ConfigError: the head does not exist or may not be imported, or none is registered for the layout.
    """
    config = config or ModelConfig()
    if config.head != "auto":
        chosen: type[Head] = find("head", config.head)
        return chosen.build(graph, config, layout=layout)
    for kind in type(layout).__mro__:
        if kind in HEADS:
            return HEADS[kind].build(graph, config, layout=layout)
    raise _no_head(layout)


def _no_head(layout: ActionLayout) -> ConfigError:
    if isinstance(layout, ChooseSuccessor):
        return ConfigError(
            "ChooseSuccessor has no head: successors are not in the graph, so it needs a policy of its own",
            hint="show them, with `view: padded`, or use a recipe of that environment",
        )
    name = type(layout).__name__
    return ConfigError(f"no head is registered for {name}", hint=f"call register_head({name}, YourHead)")
