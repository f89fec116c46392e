"""What one robot sees, as features: itself and a few objects around it, by slots or as a graph."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.rules import Displacement, Distance, PairFunction, Pairs, Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EgoConfig
from edgewise.models.encoders.transformer import GraphTransformer

_POSITION, _VELOCITY, _RADIUS = slice(0, 2), slice(2, 4), slice(4, 5)


@dataclass(frozen=True)
class EgoSpec:
    """How much a robot sees.

    A view is a TensorDict of `self [*B, own]`, `objects [*B, slots, features]` and `mask [*B, slots]`, true
    where a slot holds an object. An object's numbers begin with position, velocity and radius in the robot's
    own frame; of the robot's own, the third and fourth are its velocity. What an empty slot holds never
    matters.

    Args:
        own: numbers about the robot itself.
        features: numbers about an object.
        slots: objects at most.
    """

    own: int = 7
    features: int = 5
    slots: int = 5

    @classmethod
    def of(cls, ego: TensorDictBase) -> EgoSpec:
        """The spec of a view."""
        slots, features = ego["objects"].shape[-2:]
        return cls(own=ego["self"].shape[-1], features=features, slots=slots)


class EgoEncoder(nn.Module):
    """A view of any leading shape in, features `[*B, width]` out.

    Args:
        spec: how much is seen.
        config: see `EgoConfig`.

    Attributes:
        width: of the features.
    """

    self_scale: Tensor
    object_scale: Tensor
    width: int

    def __init__(self, spec: EgoSpec, config: EgoConfig) -> None:
        super().__init__()
        self.spec = spec
        for name, scale, count in (
            ("self_scale", config.self_scale, spec.own),
            ("object_scale", config.object_scale, spec.features),
        ):
            if len(scale) != count:
                raise ValueError(f"model.{name} has {len(scale)} numbers, but {count} are seen")
            divisor = torch.tensor(scale if config.inputs == "metres" else [1.0] * count)
            self.register_buffer(name, divisor.reciprocal(), persistent=False)

    @abstractmethod
    def forward(self, ego: TensorDictBase) -> Tensor:
        """`[*B, width]`."""

    def scaled(self, ego: TensorDictBase) -> tuple[Tensor, Tensor, Tensor]:
        """The robot's own numbers, those of objects (zero where there is none), and which there are."""
        mask = ego["mask"]
        objects = (ego["objects"] * self.object_scale).masked_fill(~mask.unsqueeze(-1), 0.0)
        return ego["self"] * self.self_scale, objects, mask


class FlatEgo(EgoEncoder):
    """One layer for the robot, one shared by all objects, and everything concatenated slot by slot."""

    def __init__(self, spec: EgoSpec, config: EgoConfig) -> None:
        super().__init__(spec, config)
        self.own = nn.Linear(spec.own, config.self_width)
        self.objects = nn.Linear(spec.features, config.object_width)
        self.width = config.self_width + spec.slots * config.object_width

    def forward(self, ego: TensorDictBase) -> Tensor:
        """`[*B, width]`."""
        own, objects, mask = self.scaled(ego)
        seen = self.objects(objects).relu().masked_fill(~mask.unsqueeze(-1), 0.0)
        return torch.cat((self.own(own).relu(), seen.flatten(-2)), -1)


class GraphEgo(EgoEncoder):
    """The robot and its objects as one graph of `1 + slots` nodes; the features are the robot's embedding.

    Everybody hears everybody, along edges that carry what is relative between the two: displacement,
    distance, velocity and clearance. So the order of objects does not matter, and weights fit any number.
    """

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

    def forward(self, ego: TensorDictBase) -> Tensor:
        """`[*B, width]`."""
        return self.encoder(self.graph(ego))[..., 0, :]

    def graph(self, ego: TensorDictBase) -> TensorDict:
        """The robot, at the origin of its own frame, and its objects; features of one are zero for the other.

        `motion [*B, 1 + slots, 3]` holds velocity and radius; the robot's radius is counted as zero.
        """
        own, objects, mask = self.scaled(ego)
        features = torch.cat(
            (
                functional.pad(own, (0, self.spec.features)).unsqueeze(-2),
                functional.pad(objects, (own.shape[-1], 0)),
            ),
            -2,
        )
        # One scale for all velocities, so that differences are differences.
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
    """Velocity of the sender as the receiver sees it, and the gap between the two, `[*B, N, N, 3]`."""
    motion = graph["motion"]
    velocity, radius = motion[..., :2], motion[..., 2]
    closing = velocity.unsqueeze(-2) - velocity.unsqueeze(-3)
    gap = pairs.distance - radius.unsqueeze(-1) - radius.unsqueeze(-2)
    return torch.cat((closing, gap.unsqueeze(-1)), -1)


def make_ego_encoder(spec: EgoSpec, config: EgoConfig) -> EgoEncoder:
    """The encoder that the config names."""
    return GraphEgo(spec, config) if config.encoder == "graph" else FlatEgo(spec, config)


def nearest_gap(ego: TensorDictBase, *, radius: float, metres: tuple[float, float] = (1.0, 1.0)) -> Tensor:
    """From a robot's hull, of this radius, to that of the nearest object, `[*B]`; infinite without any."""
    objects, (place, size) = ego["objects"], metres
    distance = place * objects[..., _POSITION].square().sum(-1).sqrt()
    gap = distance - size * objects[..., _RADIUS].squeeze(-1) - radius
    return gap.masked_fill(~ego["mask"], math.inf).amin(-1)
