"""Networks on features of deciders: Q-networks, actors and critics."""

from __future__ import annotations

from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.models.agents.linear import FastLinear
from edgewise.models.agents.noisy import Noisiness, linear, noisy_forward
from edgewise.models.features import ILLEGAL, Features, legal_mean, mask_illegal
from edgewise.models.mixers import Mixer
from edgewise.models.size_classes import joined_rows


class QNetwork(nn.Module):
    """A Q-network: the value of every choice of every decider.

    Args:
        features: of the observation, for deciders or for their choices.
        hidden: width of the two hidden layers.
        num_actions: choices of a decider; not used if the features are those of choices.
        dueling: whether to use separate streams for the state value and the advantages
            (https://arxiv.org/abs/1511.06581).
        sigma: initial noise of the last layers (https://arxiv.org/abs/1706.10295); None for plain layers.
        mixer: combines the values of a team into one; None for separate values.

    Example:
        >>> import torch
        >>> from tensordict import TensorDict
        >>> from edgewise.models.agents.ego import EgoSpec, make_ego_encoder
        >>> from edgewise.models.config import EgoConfig
        >>> mask = torch.ones(2, 5, dtype=torch.bool)
        >>> ego = {"self": torch.zeros(2, 7), "objects": torch.zeros(2, 5, 5), "mask": mask}
        >>> network = QNetwork(make_ego_encoder(EgoSpec(), EgoConfig()), hidden=128, num_actions=9)
        >>> network(TensorDict(ego, [2])).shape
        torch.Size([2, 9])
    """

    def __init__(
        self,
        features: Features,
        *,
        hidden: int,
        num_actions: int = 1,
        dueling: bool = False,
        sigma: float | None = None,
        mixer: Mixer | None = None,
    ) -> None:
        super().__init__()
        self.features = features
        self.hidden = two_layers(features.width, hidden)
        self.choices = linear(hidden, 1 if features.per_choice else num_actions, sigma=sigma)
        self.state = linear(hidden, 1, sigma=sigma) if dueling else None
        self.mixer, self.is_noisy = mixer, sigma is not None

    def forward(self, observation: TensorDictBase, noise: Noisiness = "none") -> Tensor:
        """Return action values `[*D, K]`, `ILLEGAL` for illegal choices."""
        classes = self.features.classes(observation) if noise == "none" or not self.is_noisy else None
        if classes is None:
            return self._values(self.features.whole(observation), noise)
        parts = [(each.rows, self._values(each.observation, noise)) for each in classes]
        width = self.features.num_choices(observation)
        return joined_rows(parts, observation.batch_size, width=width, fill=ILLEGAL)

    def _values(self, observation: TensorDictBase, noise: Noisiness) -> Tensor:
        h, legal = self.hidden(self.features(observation)), self.features.legal(observation)
        choices = noisy_forward(self.choices, h, noise)
        if self.features.per_choice:
            choices = choices.squeeze(-1)
        if self.state is not None:
            pooled = legal_mean(h, legal, dim=-2).squeeze(-2) if self.features.per_choice else h
            choices = noisy_forward(self.state, pooled, noise) + choices - legal_mean(choices, legal, dim=-1)
        return mask_illegal(choices, legal)

    def joint(self, values: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the values of teams `[M]` from those of deciders `[M, A]`; unchanged without a mixer."""
        return values if self.mixer is None else self.mixer(values, observation)


class PolicyNetwork(nn.Module):
    """An actor: numbers of every decider before squashing, or logits of its choices.

    Args:
        features: of the observation, for deciders or for their choices.
        hidden: width of the two hidden layers.
        outputs: number of outputs: the dimensions of an action, or twice as many with standard deviations, or
            the number of choices; one for each choice if the features are those of choices.
    """

    def __init__(self, features: Features, *, hidden: int, outputs: int = 1) -> None:
        super().__init__()
        self.features = features
        self.hidden = two_layers(features.width, hidden)
        self.output = nn.Linear(hidden, 1 if features.per_choice else outputs)

    def forward(self, observation: TensorDictBase) -> Tensor:
        """Return unbounded outputs `[*D, outputs]`."""
        found = self.output(self.hidden(self.features(observation)))
        return found.squeeze(-1) if self.features.per_choice else found


class ActionCritic(nn.Module):
    """A critic of continuous actions; the embedded action multiplies the features of the observation.

    Args:
        features: of the observation.
        hidden: width of the hidden layers.
        dim: dimensions of an action.
        mixer: combines the values of a team into one; None for separate values.
    """

    def __init__(self, features: Features, *, hidden: int, dim: int, mixer: Mixer | None = None) -> None:
        super().__init__()
        self.features = features
        self.first = FastLinear(features.width, hidden)
        self.action = FastLinear(dim, hidden)
        self.second = FastLinear(hidden, hidden)
        self.value = nn.Linear(hidden, 1)
        self.mixer = mixer

    def forward(self, observation: TensorDictBase, action: Tensor) -> Tensor:
        """Return values `[*D]` of actions `[*D, dim]`; with a mixer, those of teams `[M]`."""
        h = self.first(self.features(observation)).relu() * self.action(action).relu()
        value = self.value(self.second(h).relu()).squeeze(-1)
        return value if self.mixer is None else self.mixer(value, observation)


def two_layers(inputs: int, width: int) -> nn.Sequential:
    """Build two ReLU layers."""
    return nn.Sequential(FastLinear(inputs, width), nn.ReLU(), FastLinear(width, width), nn.ReLU())
