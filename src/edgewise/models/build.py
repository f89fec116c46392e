"""Build encoders and heads: the encoder that a config names, the head that an action layout names."""

from __future__ import annotations

from typing import Literal

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import BUILT_IN_ENCODERS, EncoderConfig, ModelConfig
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.models.heads import Head
from edgewise.plugins import find, load
from edgewise.plugins.addresses import resolve_part


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
    refuse_abstract(encoder)
    return encoder.build(graph, config, role=of)


def make_head(graph: GraphSpec, layout: ActionLayout, config: ModelConfig | None = None) -> Head:
    """Build the head that the config names, or else that of the action layout.

    Raises:
        ConfigError: the head does not exist or may not be imported, or the layout has none.
    """
    config = config or ModelConfig()
    head: type[Head] = resolve_part(layout.head) if config.head == "auto" else find("head", config.head)
    refuse_abstract(head)
    return head.build(graph, config, layout=layout)


def refuse_abstract(kind: type) -> None:
    """Raise ConfigError if a class of a user's own lacks a method that its base class needs."""
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise ConfigError(
            f"{kind.__name__} does not define {', '.join(missing)}",
            hint=f"help({kind.__mro__[1].__name__}.{missing[0]}) says what it returns",
        )
