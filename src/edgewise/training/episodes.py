"""Returns and lengths of the episodes that end in a batch, though they began in an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torch.nn import functional

ANEW = "anew"
"""Bool, where a batch `[B, T]` has it: worlds that begin with this step, whatever they did before it."""


class EpisodeMeter:
    """Follows every world from batch to batch; all arithmetic stays on the device.

    The return of a world with agents is the mean over the agents that were active when the episode began,
    that of a game is in the view of player 0: as in an evaluation.
    """

    def __init__(self) -> None:
        self._carried: dict[str, Tensor] = {}

    def update(self, batch: TensorDictBase) -> dict[str, Tensor]:
        """Means over the episodes that end in a batch `[B, T]`, each 0-d; NaN where none ends.

        Returns:
            `episodes` (how many), `return`, `length`, and the environment's own metrics by name.
        """
        done = batch["next", "done"].squeeze(-1)
        reward, agents = _reward(batch), _agents(batch)
        begun = _going_on(self._carried, batch) or _nothing(done)
        end = _last_end(done)
        gathered = begun["return"].unsqueeze(1) + reward.cumsum(1)
        steps = begun["length"].unsqueeze(1) + torch.arange(1, done.shape[1] + 1, device=done.device)
        first = torch.where(begun["running"], begun["agents"], agents[:, 0])
        present = torch.where(end < 0, first.unsqueeze(1), agents.gather(1, end + 1))
        returns, lengths = gathered - _at(gathered, end), steps - _at(steps, end)
        running = ~done[:, -1]
        self._carried = {
            "return": torch.where(running, returns[:, -1], 0.0),
            "length": torch.where(running, lengths[:, -1], 0.0),
            "agents": present[:, -1],
            "running": running,
        }
        ended = {"return": returns / present, "length": lengths, **_metrics(batch)}
        count = done.sum().double()
        means = {name: torch.where(done, value, 0.0).sum() / count for name, value in ended.items()}
        return {"episodes": count, **means}

    def state_dict(self) -> dict[str, Any]:
        """What unfinished episodes have gathered."""
        return dict(self._carried)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue with those episodes."""
        self._carried = dict(state)


def _nothing(done: Tensor) -> dict[str, Tensor]:
    """What is carried before the first batch, `[B]` each."""
    zero = torch.zeros_like(done[:, 0], dtype=torch.float64)
    return {"return": zero, "length": zero, "agents": zero, "running": torch.zeros_like(done[:, 0])}


def _going_on(carried: dict[str, Tensor], batch: TensorDictBase) -> dict[str, Tensor]:
    """What is carried into a batch, on its device, without the worlds that were broken off before it."""
    device, anew = batch["next", "done"].device, batch.get(ANEW, None)
    here = {name: value.to(device) for name, value in carried.items()}
    return here if anew is None else {name: value.masked_fill(anew[:, 0], 0) for name, value in here.items()}


def _reward(batch: TensorDictBase) -> Tensor:
    """The world's reward, `[B, T]` float64: the sum over active agents, in the view of player 0."""
    reward = batch["next", "reward"].squeeze(-1).double()
    active = batch.get(("agents", "active"), None)
    if active is not None and reward.dim() > 2:
        reward = reward.masked_fill(~active, 0.0).sum(-1)
    player = batch.get("player", None)
    return reward if player is None else torch.where(player == 0, reward, -reward)


def _agents(batch: TensorDictBase) -> Tensor:
    """How many active agents share the reward, one at least, `[B, T]` float64."""
    active = batch.get(("agents", "active"), None)
    if active is None or batch["next", "reward"].dim() == 3:
        return torch.ones(batch.batch_size, dtype=torch.float64, device=batch["next", "reward"].device)
    return active.sum(-1).clamp(min=1).double()


def _metrics(batch: TensorDictBase) -> dict[str, Tensor]:
    """The environment's metrics of the episode so far, `[B, T]` float64, nested names joined by a dot."""
    metrics = batch.get(("next", "metrics"), None)
    if metrics is None:
        return {}
    return {
        name if isinstance(name, str) else ".".join(name): value.reshape(batch.batch_size).double()
        for name, value in metrics.items(include_nested=True, leaves_only=True)
    }


def _last_end(done: Tensor) -> Tensor:
    """The last step before each at which an episode ended, -1 where none did; `[B, T]` bool to int64."""
    step = torch.arange(done.shape[1], device=done.device).expand_as(done)
    ends = torch.where(done, step, -1).cummax(1).values
    return functional.pad(ends[:, :-1], (1, 0), value=-1)


def _at(values: Tensor, step: Tensor) -> Tensor:
    """`values` at `step`, zero where it is -1; all `[B, T]`."""
    return torch.where(step < 0, 0.0, values.gather(1, step.clamp(min=0)))
