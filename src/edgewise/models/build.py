"""From a config to modules: which encoder, and which head for which way to act."""

from __future__ import annotations

from typing import Literal

from edgewise.config.errors import ConfigError
from edgewise.config.plugins import encoders, load
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
    MaximalSetHead,
)


def make_encoder(
    graph: GraphSpec, config: EncoderConfig | None = None, *, of: Literal["actor", "critic"] = "actor"
) -> GraphEncoder:
    """Build the encoder of the kind that the config names; `of` is its role."""
    config = config or EncoderConfig()
    encoder: type[GraphEncoder] = load((BUILT_IN_ENCODERS | encoders())[config.kind])
    return encoder.build(graph, config, role=of)


def make_head(graph: GraphSpec, layout: ActionLayout, config: ModelConfig | None = None) -> Head:
    """The head that fits an environment's way to act."""
    config = config or ModelConfig()
    match layout:
        case ChooseNode():
            return ChooseNodeHead(graph, config)
        case AgentsDiscrete():
            return AgentsDiscreteHead(graph, config, layout=layout)
        case AgentsContinuous():
            return AgentsContinuousHead(graph, config, layout=layout)
        case ChooseIndependentSet():
            whole = config.sets == "whole"
            return MaximalSetHead(graph, config) if whole else ChooseIndependentSetHead(graph, config)
        case EdgesDiscrete():
            return EdgesDiscreteHead(graph, config, layout=layout)
        case ChooseEdgePerGroup():
            return ChooseEdgePerGroupHead(graph, config)
        case ChooseFromSet():
            return ChooseFromSetHead(graph, config, layout=layout)
        case ChooseSuccessor():
            raise ConfigError(
                "a choice among successors that are not in the graph needs a policy that knows what they are",
                hint="show them, with `view: padded`, or use a recipe of that environment",
            )
