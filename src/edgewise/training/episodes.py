"""Compute returns and lengths of episodes that span several batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torch.nn import functional

from edgewise.graphs.keys import RESTARTED
from edgewise.scale.processes.group import ALONE, Group


class EpisodeMeter:
    """Sums rewards and steps of every world over batches; all computation stays on the device.

    With agents, the return is the mean over the agents that were active when the episode began. With two
    players, it is the return of player 0. Evaluations use the same definitions.

    Args:
        group: the processes that train together; means are over the episodes of all of them.
    """

    def __init__(self, group: Group = ALONE) -> None:
        self._group = group
        self._carried: dict[str, Tensor] = {}

    def update(self, batch: TensorDictBase) -> dict[str, Tensor]:
        """Compute means over the episodes that end in a batch `[B, T]`, 0-d each; NaN if none ends.

        Returns:
            `episodes` (their number), `return`, `length`, and the metrics of the environment by name.
        """
        done = batch["next", "done"].squeeze(-1)
        reward, agents = _reward(batch), _agents(batch)
        begun = _carry_into(self._carried, batch) or _initial_carry(done)
        end = _last_end(done)
        summed = begun["return"].unsqueeze(1) + reward.cumsum(1)
        steps = begun["length"].unsqueeze(1) + torch.arange(1, done.shape[1] + 1, device=done.device)
        first = torch.where(begun["running"], begun["agents"], agents[:, 0])
        present = torch.where(end < 0, first.unsqueeze(1), agents.gather(1, end + 1))
        returns, lengths = summed - _at(summed, end), steps - _at(steps, end)
        running = ~done[:, -1]
        self._carried = {
            "return": torch.where(running, returns[:, -1], 0.0),
            "length": torch.where(running, lengths[:, -1], 0.0),
            "agents": present[:, -1],
            "running": running,
        }
        ended = {"return": returns / present, "length": lengths, **_metrics(batch)}
        sums = [torch.where(done, value, 0.0).sum() for value in ended.values()]
        totals = self._group.sum(torch.stack([done.sum().double(), *sums]))
        count = totals[0]
        return {"episodes": count, **dict(zip(ended, totals[1:] / count, strict=True))}

    def state_dict(self) -> dict[str, Any]:
        """Return the sums of unfinished episodes."""
        return dict(self._carried)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the sums of unfinished episodes."""
        self._carried = dict(state)


def _initial_carry(done: Tensor) -> dict[str, Tensor]:
    """Return the carried values before the first batch, `[B]` each."""
    zero = torch.zeros_like(done[:, 0], dtype=torch.float64)
    return {"return": zero, "length": zero, "agents": zero, "running": torch.zeros_like(done[:, 0])}


def _carry_into(carried: dict[str, Tensor], batch: TensorDictBase) -> dict[str, Tensor]:
    """Return the carried values on the device of the batch, zero for worlds that were restarted."""
    device, restarted = batch["next", "done"].device, batch.get(RESTARTED, None)
    here = {name: value.to(device) for name, value in carried.items()}
    if restarted is None:
        return here
    return {name: value.masked_fill(restarted[:, 0], 0) for name, value in here.items()}


def _reward(batch: TensorDictBase) -> Tensor:
    """Return the reward of each world, `[B, T]` float64: the sum over active agents, or that of player 0."""
    reward = batch["next", "reward"].squeeze(-1).double()
    active = batch.get(("agents", "active"), None)
    if active is not None and reward.dim() > 2:
        reward = reward.masked_fill(~active, 0.0).sum(-1)
    player = batch.get("player", None)
    return reward if player is None else torch.where(player == 0, reward, -reward)


def _agents(batch: TensorDictBase) -> Tensor:
    """Return the number of active agents, at least one, `[B, T]` float64."""
    active = batch.get(("agents", "active"), None)
    if active is None or batch["next", "reward"].dim() == 3:
        return torch.ones(batch.batch_size, dtype=torch.float64, device=batch["next", "reward"].device)
    return active.sum(-1).clamp(min=1).double()


def _metrics(batch: TensorDictBase) -> dict[str, Tensor]:
    """Return the metrics of the environment, `[B, T]` float64, nested names joined by a dot."""
    metrics = batch.get(("next", "metrics"), None)
    if metrics is None:
        return {}
    return {
        name if isinstance(name, str) else ".".join(name): value.reshape(batch.batch_size).double()
        for name, value in metrics.items(include_nested=True, leaves_only=True)
    }


def _last_end(done: Tensor) -> Tensor:
    """Return the last step before each at which an episode ended, -1 if none did; `[B, T]` bool to int64."""
    step = torch.arange(done.shape[1], device=done.device).expand_as(done)
    ends = torch.where(done, step, -1).cummax(1).values
    return functional.pad(ends[:, :-1], (1, 0), value=-1)


def _at(values: Tensor, step: Tensor) -> Tensor:
    """Return `values` at `step`, zero where it is -1; all `[B, T]`."""
    return torch.where(step < 0, 0.0, values.gather(1, step.clamp(min=0)))
