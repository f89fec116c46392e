"""Networks over what one robot sees: values of choices, actors of continuous actions, and their critics."""

from __future__ import annotations

from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.models.agents.ego import EgoSpec, make_ego_encoder
from edgewise.models.config import EgoConfig


class EgoValues(nn.Module):
    """The value of every choice.

    Args:
        spec: how much is seen.
        config: see `EgoConfig`.
        num_actions: choices.
        dueling: whether the value of the state and the advantages of choices are told apart
            (https://arxiv.org/abs/1511.06581).
    """

    def __init__(self, spec: EgoSpec, config: EgoConfig, *, num_actions: int, dueling: bool = False) -> None:
        super().__init__()
        self.encoder = make_ego_encoder(spec, config)
        self.hidden = _hidden(self.encoder.width, config.hidden)
        self.choices = nn.Linear(config.hidden, num_actions)
        self.state = nn.Linear(config.hidden, 1) if dueling else None

    def forward(self, ego: TensorDictBase) -> Tensor:
        """`[*B, num_actions]`."""
        h = self.hidden(self.encoder(ego))
        choices = self.choices(h)
        return choices if self.state is None else self.state(h) + choices - choices.mean(-1, keepdim=True)


class EgoActor(nn.Module):
    """Numbers for every dimension of a continuous action, not yet squashed.

    Args:
        spec: how much is seen.
        config: see `EgoConfig`.
        outputs: how many numbers; twice the dimensions where a deviation is given too.
    """

    def __init__(self, spec: EgoSpec, config: EgoConfig, *, outputs: int) -> None:
        super().__init__()
        self.encoder = make_ego_encoder(spec, config)
        self.hidden = _hidden(self.encoder.width, config.hidden)
        self.output = nn.Linear(config.hidden, outputs)

    def forward(self, ego: TensorDictBase) -> Tensor:
        """`[*B, outputs]`."""
        return self.output(self.hidden(self.encoder(ego)))


class EgoCritic(nn.Module):
    """The value of a continuous action, which gates the features in the middle of the network.

    Args:
        spec: how much is seen.
        config: see `EgoConfig`.
        dim: dimensions of an action.
    """

    def __init__(self, spec: EgoSpec, config: EgoConfig, *, dim: int) -> None:
        super().__init__()
        width = config.hidden
        self.encoder = make_ego_encoder(spec, config)
        self.first = nn.Linear(self.encoder.width, width)
        self.action = nn.Linear(dim, width)
        self.second = nn.Linear(width, width)
        self.value = nn.Linear(width, 1)

    def forward(self, ego: TensorDictBase, action: Tensor) -> Tensor:
        """`[*B]` from actions `[*B, dim]`."""
        h = self.first(self.encoder(ego)).relu() * self.action(action).relu()
        return self.value(self.second(h).relu()).squeeze(-1)


def _hidden(inputs: int, width: int) -> nn.Sequential:
    """Two layers."""
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
