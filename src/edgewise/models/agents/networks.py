"""Networks on an agent's own observation: Q-networks, actors and critics."""

from __future__ import annotations

from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.models.agents.ego import EgoSpec, make_ego_encoder
from edgewise.models.config import EgoConfig


class EgoQNetwork(nn.Module):
    """A Q-network: the value of every discrete action.

    Args:
        spec: sizes of the observation.
        config: see `EgoConfig`.
        num_actions: number of actions.
        dueling: whether to use separate streams for the state value and the advantages
            (https://arxiv.org/abs/1511.06581).

    Example:
        >>> import torch
        >>> from tensordict import TensorDict
        >>> mask = torch.ones(2, 5, dtype=torch.bool)
        >>> ego = {"self": torch.zeros(2, 7), "objects": torch.zeros(2, 5, 5), "mask": mask}
        >>> EgoQNetwork(EgoSpec(), EgoConfig(), num_actions=9)(TensorDict(ego, [2])).shape
        torch.Size([2, 9])
    """

    def __init__(self, spec: EgoSpec, config: EgoConfig, *, num_actions: int, dueling: bool = False) -> None:
        super().__init__()
        self.encoder = make_ego_encoder(spec, config)
        self.hidden = _hidden(self.encoder.width, config.hidden)
        self.choices = nn.Linear(config.hidden, num_actions)
        self.state = nn.Linear(config.hidden, 1) if dueling else None

    def forward(self, ego: TensorDictBase) -> Tensor:
        """Return action values `[*B, num_actions]`."""
        h = self.hidden(self.encoder(ego))
        choices = self.choices(h)
        return choices if self.state is None else self.state(h) + choices - choices.mean(-1, keepdim=True)


class EgoActor(nn.Module):
    """An actor of continuous actions, before squashing.

    Args:
        spec: sizes of the observation.
        config: see `EgoConfig`.
        outputs: number of outputs: the dimensions of an action, or twice as many with standard deviations.
    """

    def __init__(self, spec: EgoSpec, config: EgoConfig, *, outputs: int) -> None:
        super().__init__()
        self.encoder = make_ego_encoder(spec, config)
        self.hidden = _hidden(self.encoder.width, config.hidden)
        self.output = nn.Linear(config.hidden, outputs)

    def forward(self, ego: TensorDictBase) -> Tensor:
        """Return unbounded outputs `[*B, outputs]`."""
        return self.output(self.hidden(self.encoder(ego)))


class EgoCritic(nn.Module):
    """A critic of continuous actions; the embedded action multiplies the features of the observation.

    Args:
        spec: sizes of the observation.
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
        """Return values `[*B]` of actions `[*B, dim]`."""
        h = self.first(self.encoder(ego)).relu() * self.action(action).relu()
        return self.value(self.second(h).relu()).squeeze(-1)


def _hidden(inputs: int, width: int) -> nn.Sequential:
    """Build two ReLU layers."""
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
