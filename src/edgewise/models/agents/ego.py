"""Encoders of one agent's own observation: the agent itself and the objects around it."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.config.errors import ConfigError
from edgewise.graphs.keys import MASK
from edgewise.graphs.pair_features import Displacement, Distance, PairFunction, Pairs
from edgewise.graphs.proximity import Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.models.agents.linear import FastLinear
from edgewise.models.config import EgoConfig
from edgewise.models.encoders.transformer import GraphTransformer
from edgewise.models.features import Features

_POSITION, _VELOCITY, _RADIUS = slice(0, 2), slice(2, 4), slice(4, 5)


@dataclass(frozen=True)
class EgoSpec:
    """The sizes of an agent's own observation (its ego observation).

    An observation is a TensorDict of `self [*B, own]`, `objects [*B, slots, features]` and
    `mask [*B, slots]`, true where a slot holds an object. The features of an object start with its position,
    velocity and radius in the agent's frame. The third and fourth number of `self` are the agent's velocity.
    The content of empty slots is ignored.

    Args:
        own: numbers about the agent itself.
        features: numbers about an object.
        slots: largest number of objects.

    Example:
        >>> ego = TensorDict({"self": torch.zeros(7), "objects": torch.zeros(5, 5)}, [])
        >>> EgoSpec.of(ego)
        EgoSpec(own=7, features=5, slots=5)
    """

    own: int = 7
    features: int = 5
    slots: int = 5

    @classmethod
    def of(cls, ego: TensorDictBase) -> EgoSpec:
        """Return the spec of an observation."""
        slots, features = ego["objects"].shape[-2:]
        return cls(own=ego["self"].shape[-1], features=features, slots=slots)


class EgoEncoder(Features):
    """Base of encoders that map an agent's observation `[*B]` to features `[*B, width]`.

    Args:
        spec: sizes of the observation.
        config: see `EgoConfig`.

    Attributes:
        width: of the features.
        any_slots: whether it takes any number of objects.
    """

    any_slots = False
    self_scale: Tensor
    object_scale: Tensor

    def __init__(self, spec: EgoSpec, config: EgoConfig) -> None:
        super().__init__()
        self.spec = spec
        for name, scale, count in (
            ("self_scale", config.self_scale, spec.own),
            ("object_scale", config.object_scale, spec.features),
        ):
            physical = config.inputs == "physical"
            if len(scale) != count and (scale or physical):
                raise ConfigError(
                    f"model.{name} has {len(scale)} numbers, but {count} are observed",
                    hint="give one for each, or none with other inputs than physical",
                )
            divisor = torch.tensor(scale if physical else [1.0] * count)
            self.register_buffer(name, divisor.reciprocal(), persistent=False)

    @abstractmethod
    def forward(self, observation: TensorDictBase) -> Tensor:
        """Return features `[*B, width]`."""

    def legal(self, observation: TensorDictBase) -> Tensor | None:
        """Return the agents' `action_mask`, if there is one."""
        mask: Tensor | None = observation.get(MASK, None)
        return mask

    def scaled(self, ego: TensorDictBase) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scaled numbers of the agent and of its objects (zero in empty slots), and the mask."""
        mask = ego["mask"]
        objects = (ego["objects"] * self.object_scale).masked_fill_(~mask.unsqueeze(-1), 0.0)
        return ego["self"] * self.self_scale, objects, mask


class FlatEgo(EgoEncoder):
    """One linear layer for the agent, one shared by all objects, with the outputs concatenated by slot."""

    def __init__(self, spec: EgoSpec, config: EgoConfig) -> None:
        super().__init__(spec, config)
        self.own = FastLinear(spec.own, config.self_width)
        self.objects = nn.Linear(spec.features, config.object_width)
        self.width = config.self_width + spec.slots * config.object_width

    def forward(self, observation: TensorDictBase) -> Tensor:
        """Return features `[*B, width]`."""
        own, objects, mask = self.scaled(observation)
        # The mask multiplies the bias: embeddings of empty slots are zero without a pass over all embeddings.
        slots = torch.cat((objects, mask.unsqueeze(-1)), -1)
        weight = torch.cat((self.objects.weight.t(), self.objects.bias.unsqueeze(0)))
        embedded = (slots.flatten(0, -2) @ weight).view(*own.shape[:-1], self.width - self.own.out_features)
        return torch.cat((self.own(own), embedded), -1).relu_()


class GraphEgo(EgoEncoder):
    """A graph transformer on the agent and its objects; the features are the agent's node embedding.

    The graph has `1 + slots` nodes and is complete. Its edge features are the relative displacement,
    distance, velocity and clearance of the two nodes. So the output does not depend on the order of objects,
    and the weights fit any number of objects.
    """

    any_slots = True

    def __init__(self, spec: EgoSpec, config: EgoConfig) -> None:
        super().__init__(spec, config)
        relative = PairFunction(_relative_motion, 3)
        graph = GraphSpec(
            1 + spec.slots,
            spec.own + spec.features,
            edges=Radius(math.inf, features=(Displacement(), Distance(), relative)),
            position_dim=2,
            node_types=2,
        )
        self.encoder = GraphTransformer(graph, config.graph)
        self.width = config.graph.hidden

    def forward(self, observation: TensorDictBase) -> Tensor:
        """Return features `[*B, width]`."""
        return self.encoder(self.graph(observation))[..., 0, :]

    def graph(self, ego: TensorDictBase) -> TensorDict:
        """Build the graph of the agent, at the origin of its own frame, and its objects.

        The agent's features are zero for objects, and those of objects are zero for the agent.
        `motion [*B, 1 + slots, 3]` has velocity and radius; the agent's radius is set to zero.
        """
        own, objects, mask = self.scaled(ego)
        features = torch.cat(
            (
                functional.pad(own, (0, self.spec.features)).unsqueeze(-2),
                functional.pad(objects, (own.shape[-1], 0)),
            ),
            -2,
        )
        # The same scale for all velocities, so that their differences are meaningful.
        velocity = (ego["self"][..., _VELOCITY] * self.object_scale[_VELOCITY]).unsqueeze(-2)
        motion = torch.cat((functional.pad(velocity, (0, 1)), objects[..., 2:5]), -2)
        entries = {
            "x": features,
            "pos": functional.pad(objects[..., _POSITION], (0, 0, 1, 0)),
            "node_mask": functional.pad(mask, (1, 0), value=True),
            "node_type": functional.pad(torch.ones_like(mask, dtype=torch.int64), (1, 0)),
            "motion": motion,
        }
        return TensorDict(entries, mask.shape[:-1])


def _relative_motion(graph: TensorDict, pairs: Pairs) -> Tensor:
    """Compute the velocity of the source relative to the target, and their clearance, `[*B, N, N, 3]`."""
    motion = graph["motion"]
    velocity, radius = motion[..., :2], motion[..., 2]
    closing = velocity.unsqueeze(-2) - velocity.unsqueeze(-3)
    gap = pairs.distance - radius.unsqueeze(-1) - radius.unsqueeze(-2)
    return torch.cat((closing, gap.unsqueeze(-1)), -1)


def make_ego_encoder(spec: EgoSpec, config: EgoConfig) -> EgoEncoder:
    """Build the encoder that `config.encoder` names."""
    return GraphEgo(spec, config) if config.encoder == "graph" else FlatEgo(spec, config)


def nearest_gap(ego: TensorDictBase, *, radius: float, units: tuple[float, float] = (1.0, 1.0)) -> Tensor:
    """Return the clearance between an agent and the nearest object, `[*B]`; infinite without objects.

    Args:
        ego: observations of agents.
        radius: of the agent.
        units: factors of an object's position and radius, see `EgoConfig.units`.
    """
    objects, (position_unit, radius_unit) = ego["objects"], units
    distance = position_unit * objects[..., _POSITION].square().sum(-1).sqrt()
    gap = distance - radius_unit * objects[..., _RADIUS].squeeze(-1) - radius
    return gap.masked_fill(~ego["mask"], math.inf).amin(-1)
