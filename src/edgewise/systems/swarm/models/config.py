"""Settings of the InforMARL network. Never imports torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgewise.config.bounds import REAL, Real
from edgewise.config.model import Config
from edgewise.models.config import EncoderConfig, ModelConfig


class Remedies(Config):
    """Changes to the published InforMARL network; the defaults change nothing."""

    aggregation: Literal["sum", "mean", "root", "log"] = "sum"
    """How the embedding aggregates messages: their `sum`, their `mean`, their sum over the `root` of their
    number, or their mean times the `log` of their number plus one."""
    embed: Literal["neighbours", "node"] = "neighbours"
    """What is embedded: the `neighbours` of a node without itself, or the `node` alone."""
    embed_norm: bool = False
    """Whether a LayerNorm follows the embedding."""
    layer_norm: bool = False
    """Whether a LayerNorm follows each attention layer."""
    graph_norm: bool = False
    """Whether a norm over the whole graph follows each attention layer."""
    residual: Real = 0.0
    """Weight of a second skip connection, around attention and activation."""
    beta: bool = False
    """Whether a gate weighs messages against the node itself."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout of attention weights during training."""
    depth_init: bool = False
    """Whether all matrices, also those of attention, are initialised by Xavier, divided by the root of the
    depth."""
    soft_cap: float | None = Field(None, gt=0, le=REAL)
    """Attention logits become `cap * tanh(logit / cap)`; none for no cap."""
    logit_clip: float | None = Field(None, gt=0, le=REAL)
    """Bound at which attention logits are clipped, without gradient beyond it; none for no bound."""
    clamp: float | None = Field(None, gt=0, le=REAL)
    """Bound at which activations are clipped, without gradient beyond it; none for no bound."""


class InforMARLConfig(EncoderConfig):
    """Settings of the InforMARL encoder."""

    kind: Literal["informarl"] = "informarl"
    """Always `informarl`."""
    remedies: Remedies = Remedies()
    """Changes to the published network."""


class InforMARLModelConfig(ModelConfig):
    """Settings of an actor and a critic with the InforMARL encoder."""

    encoder: InforMARLConfig = InforMARLConfig()
    """Encoder of the actor and of the critic."""


FAITHFUL = InforMARLModelConfig(
    encoder=InforMARLConfig(hidden=64, layers=3, heads=3),
    critic="node",
    recurrent=True,
    head_hidden=(),
)
"""Actor and critic of InforMARL as published: summed neighbours, one LayerNorm used twice, GRU heads."""
