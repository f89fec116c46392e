"""How a model is built, without torch, so that a mistake is reported before anything slow is imported."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from edgewise.config.model import Config
from edgewise.config.plugins import encoders

Conv = Literal[
    "GATv2Conv",
    "GATConv",
    "TransformerConv",
    "GINEConv",
    "GINConv",
    "SAGEConv",
    "GENConv",
    "GCNConv",
    "GraphConv",
]
"""The PyG convolutions that `GNN` builds by name; it takes any other as a class."""

BUILT_IN_ENCODERS = {
    "transformer": "edgewise.models.encoders.transformer:GraphTransformer",
    "gnn": "edgewise.models.encoders.gnn:GNN",
    "mlp": "edgewise.models.encoders.mlp:MLP",
}
"""Encoders by the `kind` that chooses them; plug-ins declare more."""

ATTENTION_CONVS: frozenset[str] = frozenset({"GATv2Conv", "GATConv", "TransformerConv"})

REVISION = 1
"""Raised whenever the same weights come to compute something else; a checkpoint of another is refused."""


class EncoderConfig(Config):
    """The part that turns a graph into node embeddings.

    Attributes:
        kind: `transformer` (the default to beat), `gnn` (any PyG convolution), `mlp` (flat, fixed size; a
            baseline), or the name of an encoder that a plug-in declares.
        hidden: width of every embedding; a multiple of `heads`.
        layers: message-passing steps, or hidden layers of the `mlp`.
        heads: attention heads.
        conv: the convolution of kind `gnn`.
        feed_forward: width of the feed-forward part of a transformer block as a multiple of `hidden`; 0
            leaves it out.
        soft_cap: attention logits become `cap * tanh(logit / cap)`; None leaves them.
        beta: gate the skip connection inside attention.
        norm: `layer` normalises each node by itself; `graph` over the whole graph, which breaks locality.
        dropout: of attention weights. Above zero, PPO's ratio is not 1 at identical weights.
        dense: when attention runs on `[N, N]` matrices: `auto` by the measured rule, `always`, `never`.
        compact: whether the sparse path drops padding. By default it does on a CPU, where that is never
            slower, and not where shapes must stay fixed: on a GPU, under vmap, in an export.
        compile: compile the encoder with `torch.compile(dynamic=True)`.
    """

    kind: str = "transformer"
    hidden: int = Field(64, ge=1)
    layers: int = Field(3, ge=1)
    heads: int = Field(4, ge=1)
    conv: Conv = "GATv2Conv"
    feed_forward: int = Field(0, ge=0)
    soft_cap: float | None = Field(None, gt=0)
    beta: bool = False
    norm: Literal["layer", "graph"] = "layer"
    dropout: float = Field(0.0, ge=0, lt=1)
    dense: Literal["auto", "always", "never"] = "auto"
    compact: bool | None = None
    compile: bool = False

    @field_validator("kind")
    @classmethod
    def _names_an_encoder(cls, kind: str) -> str:
        known = [*BUILT_IN_ENCODERS, *encoders()]
        if kind not in known:
            raise ValueError(f'got "{kind}", expected {" or ".join(known)}')
        return kind

    @model_validator(mode="after")
    def _widths_fit(self) -> EncoderConfig:
        attends = self.kind == "transformer" or (self.kind == "gnn" and self.conv in ATTENTION_CONVS)
        if attends and self.hidden % self.heads:
            raise ValueError(
                f"hidden={self.hidden} is not a multiple of heads={self.heads}: "
                "each head gets hidden / heads channels"
            )
        return self


class ModelConfig(Config):
    """An actor and a critic.

    Attributes:
        encoder: of the actor, and of the critic.
        shared_trunk: one encoder for both; else each has its own.
        critic: `graph` gives one value per graph from its pooled nodes; `node` one per agent from its own
            node; `central` one per agent from its own node and the pooled graph; `auto` is `central` where
            agents act, else `graph`.
        recurrent: whether actor and critic each remember, with a GRU as wide as an embedding for every agent.
        pool: how nodes become a graph.
        head_hidden: widths of the hidden layers of every head.
        policy_gain: orthogonal gain of the last layer of the policy; small makes the first policy near
            uniform.
        initial_std: of continuous actions before squashing, at initialisation.
        min_std: below which it never falls.
        sets: how a set of nodes that may not be adjacent is chosen: `in_turn` asks node after node, in the
            order of their slots; `whole` weighs all sets that no node can join, which must be few enough to
            list.
    """

    builder: ClassVar[str] = "edgewise.models.actor_critic:actor_critic_of"

    encoder: EncoderConfig = EncoderConfig()
    shared_trunk: bool = False
    critic: Literal["auto", "graph", "node", "central"] = "auto"
    recurrent: bool = False
    pool: Literal["mean", "sum", "max"] = "mean"
    head_hidden: tuple[int, ...] = (64,)
    policy_gain: float = Field(0.01, gt=0)
    initial_std: float = Field(0.6, gt=0)
    min_std: float = Field(1e-3, gt=0)
    sets: Literal["in_turn", "whole"] = "in_turn"

    @model_validator(mode="after")
    def _stds_fit(self) -> ModelConfig:
        if self.initial_std <= self.min_std:
            raise ValueError(f"initial_std={self.initial_std} must be above min_std={self.min_std}")
        return self


class EgoConfig(Config):
    """A network that sees what one robot sees: itself, and the objects around it.

    Attributes:
        encoder: `flat` concatenates the slots of objects in their order; `graph` passes messages between the
            robot and its objects, whatever their order and however many there are.
        self_width: of the robot's own features, in the flat encoder.
        object_width: of each object's features, in the flat encoder.
        graph: the graph encoder's message passing.
        hidden: width of the two layers between features and output.
        cosines: with which a quantile's level is embedded, where quantiles are learnt.
        inputs: `scaled` where the environment has divided what robots see by these scales; `metres` where it
            has not, and the network should; `raw` where nobody should, as for weights that were trained so.
        self_scale: of the robot's own numbers: goal (2, m), velocity (2, m/s), yaw rate (rad/s), thrust
            (2, N).
        object_scale: of an object's numbers: position (2, m), velocity (2, m/s), radius (m).
    """

    encoder: Literal["flat", "graph"] = "flat"
    self_width: int = Field(56, ge=1)
    object_width: int = Field(40, ge=1)
    graph: EncoderConfig = EncoderConfig(layers=2)
    hidden: int = Field(128, ge=1)
    cosines: int = Field(64, ge=1)
    inputs: Literal["scaled", "metres", "raw"] = "scaled"
    self_scale: tuple[float, ...] = (20.0, 20.0, 2.0, 2.0, 0.5, 1000.0, 1000.0)
    object_scale: tuple[float, ...] = (20.0, 20.0, 2.0, 2.0, 2.0)

    @property
    def metres(self) -> tuple[float, float]:
        """How many metres the units are in which an object's position and its radius are seen."""
        return (self.object_scale[0], self.object_scale[4]) if self.inputs == "scaled" else (1.0, 1.0)

    @model_validator(mode="after")
    def _scales_divide(self) -> EgoConfig:
        if min(*self.self_scale, *self.object_scale) <= 0:
            raise ValueError("self_scale and object_scale are divided by: every number must be above zero")
        return self
