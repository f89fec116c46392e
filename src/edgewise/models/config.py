"""Settings of models. Never imports torch, so that errors are reported quickly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator, model_validator

from edgewise.config.bounds import DEPTH, REAL, ROWS, VECTOR, WIDTH, Real, Width
from edgewise.config.model import AppliesIf, Config
from edgewise.plugins import Address, listed

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
"""PyG convolutions that `GNN` builds by name; others are given by their address, or passed as classes."""

BUILT_IN_ENCODERS = {
    "transformer": "edgewise.models.encoders.transformer:GraphTransformer",
    "gnn": "edgewise.models.encoders.gnn:GNN",
    "mlp": "edgewise.models.encoders.mlp:MLP",
}
"""Addresses of the built-in encoders by `kind`; plug-ins declare more."""

ATTENTION_CONVS: frozenset[str] = frozenset({"GATv2Conv", "GATConv", "TransformerConv"})

MIN_STD = 1e-3
"""Lower bound of the standard deviation of continuous actions, before squashing."""

REVISION = 1
"""Incremented when a model computes something else from the same weights; other checkpoints are refused."""


IF_ATTENTION = AppliesIf("the encoder has attention", lambda _, own: own.kind != "mlp" and own.attends)
IF_CONVOLUTION = AppliesIf("kind is gnn", lambda _, own: own.kind not in ("transformer", "mlp"))
IF_TRANSFORMER = AppliesIf("kind is transformer", lambda _, own: own.kind not in ("gnn", "mlp"))
IF_MESSAGES = AppliesIf("kind is not mlp", lambda _, own: own.kind != "mlp")
IF_FLAT = AppliesIf("encoder is flat", lambda _, own: own.encoder == "flat")
IF_GRAPH = AppliesIf("encoder is graph", lambda _, own: own.encoder == "graph")
IF_GRAPH_READ = AppliesIf("observe is not ego", lambda _, own: own.observe != "ego")
IF_EGO_READ = AppliesIf("observe is not graph", lambda _, own: own.observe != "graph")
IF_QUANTILES = AppliesIf("quantiles are learned", lambda run, _: hasattr(run.algorithm, "quantiles"))


class EncoderConfig(Config):
    """Settings of an encoder, which computes node embeddings from a graph."""

    removed: ClassVar[Mapping[str, Any]] = {
        "soft_cap": None,
        "beta": False,
        "dropout": 0.0,
        "compile": False,
    }

    kind: str = "transformer"
    """`transformer` (the default), `gnn` (any PyG convolution), `mlp` (a baseline for graphs of fixed size),
    or the name or address of an own encoder, such as `my_encoder.py:MyEncoder`."""
    hidden: int = Field(64, ge=1, le=WIDTH)
    """Width of every embedding; a multiple of `heads`."""
    layers: int = Field(3, ge=1, le=DEPTH)
    """Number of message-passing layers, or of hidden layers of the `mlp`."""
    heads: Annotated[int, IF_ATTENTION] = Field(4, ge=1, le=DEPTH)
    """Number of attention heads."""
    conv: Annotated[str, IF_CONVOLUTION] = "GATv2Conv"
    """Convolution of kind `gnn`: `GATv2Conv`, `GATConv`, `TransformerConv`, `GINEConv`, `GINConv`,
    `SAGEConv`, `GENConv`, `GCNConv`, `GraphConv`, or the name or address of an own one, such as
    `my_conv.py:MyConv`."""
    edge_hidden: Annotated[int, IF_MESSAGES] = Field(0, ge=0, le=WIDTH)
    """Width of a layer with an activation that edge features pass before all message-passing layers, so that
    messages are no longer linear in them; 0 for no such layer."""
    feed_forward: Annotated[int, IF_MESSAGES] = Field(0, ge=0, le=WIDTH)
    """Width of the feed-forward part of a transformer block as a multiple of `hidden`; 0 for no such part."""
    norm: Annotated[Literal["layer", "instance"], IF_TRANSFORMER] = "layer"
    """`layer` normalises the embedding of each node before every part of a block. `instance` normalises each
    channel over the nodes of a graph after every part, which learns faster where nodes are chosen from a
    whole instance, as in tours; the nodes of a graph then depend on each other without any path."""
    dense: Annotated[Literal["auto", "always", "never"], IF_TRANSFORMER] = "auto"
    """When attention uses `[N, N]` matrices: `auto` (by a measured rule), `always` or `never`."""
    compact: Annotated[bool | None, IF_MESSAGES] = None
    """Whether the sparse path drops padding. By default it does on a CPU, where that is never slower, and not
    where shapes must be static: on a GPU, under vmap, in an export."""
    part_size: Annotated[int | None, IF_MESSAGES] = Field(None, ge=1, le=ROWS)
    """Largest number of nodes that receive messages at once, for graphs whose messages do not fit into
    memory: larger batches run part by part, and again in the backward pass, with equal results. By default
    all nodes at once."""

    @property
    def attends(self) -> bool:
        """Whether messages are weighted by attention; that of an own encoder is not known."""
        return self.kind != "gnn" or self.conv in ATTENTION_CONVS or self.conv not in get_args(Conv)

    @field_validator("kind")
    @classmethod
    def _encoder_exists(cls, kind: str) -> str:
        known = [*BUILT_IN_ENCODERS, *listed("encoder")]
        if kind not in known and Address.parse(kind) is None:
            raise ValueError(f'got "{kind}", expected {" or ".join(known)}')
        return kind

    @field_validator("conv")
    @classmethod
    def _convolution_exists(cls, conv: str) -> str:
        known = [*get_args(Conv), *listed("convolution")]
        if conv not in known and Address.parse(conv) is None:
            raise ValueError(f'got "{conv}", expected one of {", ".join(known[:-1])} or {known[-1]}')
        return conv

    @model_validator(mode="after")
    def _can_run_in_parts(self) -> EncoderConfig:
        if self.part_size is None:
            return self
        reasons = {
            "the mlp passes no messages": self.kind == "mlp",
            "GCNConv needs the degrees of senders": self.kind == "gnn" and self.conv == "GCNConv",
            "dense always uses matrices of whole graphs": self.dense == "always",
            "norm instance reads all nodes of a graph": self.norm == "instance",
        }
        wrong = [reason for reason, applies in reasons.items() if applies]
        if wrong:
            raise ValueError(f"part_size cannot be used here: {'; '.join(wrong)}")
        return self

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> EncoderConfig:
        if self.kind in ("transformer", "gnn") and self.attends and self.hidden % self.heads:
            raise ValueError(
                f"hidden={self.hidden} is not a multiple of heads={self.heads}: "
                "each head gets hidden / heads channels"
            )
        return self


class ModelConfig(Config):
    """Settings of an actor and a critic."""

    removed: ClassVar[Mapping[str, Any]] = {"sets": "in_turn", "min_std": 1e-3}

    builder: ClassVar[str] = "edgewise.models.actor_critic:actor_critic_of"

    encoder: EncoderConfig = EncoderConfig()
    """Encoder of the actor and of the critic."""
    shared_trunk: bool = False
    """Whether actor and critic share one encoder."""
    critic: Literal["auto", "graph", "node", "central"] = "auto"
    """`graph`: one value per graph, from its pooled nodes. `node`: one value per agent, from its node.
    `central`: one value per agent, from its node and the pooled graph. `auto`: `central` if agents act, else
    `graph`."""
    recurrent: bool = False
    """Whether actor and critic each have a GRU per agent, as wide as an embedding."""
    pool: Literal["mean", "sum", "max"] = "mean"
    """How node embeddings are pooled into a graph embedding."""
    head: str = "auto"
    """Policy head: `auto` for the one of the environment's action layout, or the name or address of an own
    one, such as `my_head.py:MyHead`."""
    head_hidden: tuple[Width, ...] = (64,)
    """Widths of the hidden layers of every head."""
    policy_gain: float = Field(0.01, gt=0, le=REAL)
    """Gain of the orthogonal initialisation of the last policy layer; a small gain makes the initial policy
    almost uniform."""
    reencode: bool = False
    """Where an environment describes an instance once: whether to encode it again in every step, as the graph
    of the nodes that are left (https://arxiv.org/abs/2301.03313). It costs an encoder pass per step."""
    logit_clip: float = Field(10.0, gt=0, le=REAL)
    """Largest absolute logit of the pointer decoder, which environments that describe an instance once use to
    choose nodes."""
    initial_std: float = Field(0.6, gt=0, le=100)
    """Initial standard deviation of continuous actions, before squashing."""
    prior: float | None = Field(None, gt=0, le=100)
    """Initial weight of `action_prior`, what a rule would do, which some environments give: a score of each
    choice, or the action of the rule if that is made of numbers. It is added to the logits, or to the mean
    before squashing, with a positive weight, so a policy with a small `policy_gain` begins as the rule,
    exactly so for numbers with a weight of 1. The weight is learned unless `algorithm.prior_weight` sets it.
    None ignores the prior."""

    @field_validator("head")
    @classmethod
    def _head_exists(cls, head: str) -> str:
        known = ["auto", *listed("head")]
        if head not in known and Address.parse(head) is None:
            raise ValueError(f'got "{head}", expected {" or ".join(known)}, or an address')
        return head

    @model_validator(mode="after")
    def _std_is_above_minimum(self) -> ModelConfig:
        if self.initial_std <= MIN_STD:
            raise ValueError(f"initial_std={self.initial_std} must be above {MIN_STD}")
        return self


class EgoConfig(Config):
    """A network over one agent's egocentric view: its own features and the objects around it."""

    encoder: Literal["flat", "graph"] = "flat"
    """`flat` concatenates the object slots in order; `graph` passes messages between the agent and its
    objects, independent of their order and number."""
    self_width: Annotated[int, IF_FLAT] = Field(56, ge=1, le=VECTOR)
    """Width of the embedding of the agent's own features, in the flat encoder."""
    object_width: Annotated[int, IF_FLAT] = Field(40, ge=1, le=VECTOR)
    """Width of the embedding of each object, in the flat encoder."""
    graph: Annotated[EncoderConfig, IF_GRAPH] = EncoderConfig(layers=2)
    """Settings of the graph encoder."""
    hidden: int = Field(128, ge=1, le=VECTOR)
    """Width of the two layers between features and output."""
    cosines: Annotated[int, IF_QUANTILES] = Field(64, ge=1, le=VECTOR)
    """Number of cosines that embed a quantile level, if quantiles are learned."""
    radius: float = Field(0.0, ge=0, le=REAL)
    """Radius of an agent, for its distance to objects."""
    inputs: Literal["scaled", "physical", "raw"] = "scaled"
    """`scaled` if the environment has already divided observations by these scales; `physical` if the network
    should divide them; `raw` for no scaling."""
    self_scale: tuple[Real, ...] = ()
    """Divisors of the agent's own features; empty for none."""
    object_scale: tuple[Real, ...] = ()
    """Divisors of an object's features; empty for none."""

    @property
    def units(self) -> tuple[float, float]:
        """Factors that turn an object's observed position and radius into physical units."""
        if self.inputs != "scaled" or not self.object_scale:
            return 1.0, 1.0
        return self.object_scale[0], self.object_scale[4]

    @model_validator(mode="after")
    def _scales_are_positive(self) -> EgoConfig:
        if any(scale <= 0 for scale in (*self.self_scale, *self.object_scale)):
            raise ValueError("self_scale and object_scale are divisors: every number must be above zero")
        return self


class ValueConfig(Config):
    """Networks of the off-policy algorithms: what they read, and their widths."""

    observe: Literal["auto", "ego", "graph", "both"] = "auto"
    """What the networks read: `ego`, what each agent observes by itself; `graph`, the observed graph; `both`;
    `auto`: `ego` if the environment has `agents.ego` and agents have no memory, else `graph`."""
    encoder: Annotated[EncoderConfig, IF_GRAPH_READ] = EncoderConfig()
    """Encoder of the observed graph, in every network."""
    pooled: Annotated[bool, IF_GRAPH_READ] = True
    """Whether values also depend on the pooled graph, and not only on what reaches a node by messages."""
    pool: Annotated[Literal["mean", "sum", "max"], IF_GRAPH_READ] = "mean"
    """How node embeddings are pooled into a graph embedding."""
    recurrent: Annotated[bool, IF_GRAPH_READ] = False
    """Whether each agent has a GRU, as wide as an embedding; with DQN and IQN, which then learn from
    sequences (https://openreview.net/forum?id=r1lyTjAqYX)."""
    hidden: int = Field(128, ge=1, le=VECTOR)
    """Width of the two layers between features and output."""
    cosines: Annotated[int, IF_QUANTILES] = Field(64, ge=1, le=VECTOR)
    """Number of cosines that embed a quantile level, if quantiles are learned."""
    ego: Annotated[EgoConfig, IF_EGO_READ] = EgoConfig()
    """Encoder of `agents.ego`, if the networks read it."""
