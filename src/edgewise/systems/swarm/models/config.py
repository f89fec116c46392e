"""Settings of the published InforMARL network, without torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from edgewise.config.model import Config
from edgewise.models.config import EncoderConfig, ModelConfig


class Remedies(Config):
    """What differs from the published network of InforMARL; nothing, as it stands here.

    Attributes:
        aggregation: how the embedding gathers messages: their `sum`, their `mean`, the sum over the `root` of
            their number, or the mean times the `log` of one more than it.
        embed: what is embedded: the `neighbours` of a node, without itself, or the `node` alone.
        embed_norm: whether a LayerNorm follows the embedding.
        layer_norm: whether a LayerNorm follows each attention.
        graph_norm: whether a norm over the whole graph does.
        residual: weight of a second skip connection, around attention and activation.
        beta: whether a gate chooses between message and root.
        dropout: of attention weights while training.
        depth_init: whether all matrices, attention's too, get Xavier weights over the root of the depth.
        soft_cap: logits become `cap * tanh(logit / cap)`.
        logit_clip: logits are clipped at this size, which leaves those beyond without gradient.
        clamp: activations are, likewise.
    """

    aggregation: Literal["sum", "mean", "root", "log"] = "sum"
    embed: Literal["neighbours", "node"] = "neighbours"
    embed_norm: bool = False
    layer_norm: bool = False
    graph_norm: bool = False
    residual: float = 0.0
    beta: bool = False
    dropout: float = Field(0.0, ge=0, lt=1)
    depth_init: bool = False
    soft_cap: float | None = Field(None, gt=0)
    logit_clip: float | None = Field(None, gt=0)
    clamp: float | None = Field(None, gt=0)


class InforMARLConfig(EncoderConfig):
    """The encoder of InforMARL, and what is changed of it.

    Attributes:
        kind: always `informarl`.
        remedies: what is changed of the published network.
    """

    kind: Literal["informarl"] = "informarl"
    remedies: Remedies = Remedies()


class InforMARLModelConfig(ModelConfig):
    """An actor and a critic with the encoder of InforMARL.

    Attributes:
        encoder: of the actor, and of the critic.
    """

    encoder: InforMARLConfig = InforMARLConfig()


FAITHFUL = InforMARLModelConfig(
    encoder=InforMARLConfig(hidden=64, layers=3, heads=3),
    critic="node",
    recurrent=True,
    head_hidden=(),
)
"""Actor and critic of InforMARL as published: summed neighbours, one LayerNorm used twice, GRU heads."""
