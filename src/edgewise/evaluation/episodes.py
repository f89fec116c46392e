"""Play one episode in every world of a batch without resets, and sum up returns, lengths and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from edgewise.envs.policy import Policy
from edgewise.graphs.keys import RECURRENT

CHECK_EVERY = 16
"""Steps between reports of progress, and between checks whether all worlds are done on devices other than a
CPU, where each check synchronises."""

Progress = Callable[[int, int, int], None]
"""Called with the number of worlds done, the number of worlds, and the steps so far."""

Step = Callable[[TensorDictBase], TensorDictBase]
"""Maps roots with `action` to the entries of `next`."""


@dataclass
class Tally:
    """Sums over the steps of each world so far, as tensors on the device."""

    returns: Tensor
    """`[B]`, or `[B, A]` where agents act, float64."""
    acted: Tensor
    """bool, of the shape of `returns`."""
    lengths: Tensor
    finished: Tensor
    metrics: dict[str, Tensor]

    @staticmethod
    def start(root: TensorDictBase) -> Tally:
        """Return sums of zero."""
        agents = root.get(("agents", "active"), None)
        finished = root["done"].new_zeros(root.batch_size)
        counted = finished if agents is None else torch.zeros_like(agents)
        zeros = counted.new_zeros(counted.shape, dtype=torch.float64)
        return Tally(zeros, counted, finished.long(), finished, {})

    @staticmethod
    def cat(parts: list[Tally]) -> Tally:
        """Return the worlds of all parts, one after another."""
        return Tally(
            torch.cat([part.returns for part in parts]),
            torch.cat([part.acted for part in parts]),
            torch.cat([part.lengths for part in parts]),
            torch.cat([part.finished for part in parts]),
            {name: torch.cat([part.metrics[name] for part in parts]) for name in parts[0].metrics},
        )

    def add(self, root: TensorDictBase, following: TensorDictBase) -> None:
        """Add one step of the worlds that are not done yet."""
        playing = ~self.finished
        reward = following["reward"].squeeze(-1).to(self.returns.dtype)
        active = root.get(("agents", "active"), None)
        counts = playing if active is None else playing.unsqueeze(-1) & active
        if (player := root.get("player", None)) is not None:
            reward = torch.where(player == 0, reward, -reward)
        self.returns = self.returns + torch.where(counts, reward, 0.0)
        self.acted = self.acted | counts
        self.lengths = self.lengths + playing
        for name, value in _episode_metrics(following).items():
            before = self.metrics.get(name)
            self.metrics[name] = value if before is None else torch.where(playing, value, before)
        self.finished = self.finished | following["done"].reshape(self.finished.shape)

    def team_returns(self) -> Tensor:
        """Return one number per world, `[B]`: the return, or its mean over the agents that acted."""
        if self.returns.ndim == 1:
            return self.returns
        return (self.returns * self.acted).sum(-1) / self.acted.sum(-1).clamp(min=1)

    def select(self, rows: Tensor) -> Tally:
        """Return the worlds of `rows` `[R]` int64, with tensors of their own."""
        return Tally(
            self.returns[rows],
            self.acted[rows],
            self.lengths[rows],
            self.finished[rows],
            {name: value[rows] for name, value in self.metrics.items()},
        )


def play(
    step: Step,
    policy: Policy,
    root: TensorDictBase,
    *,
    limit: int,
    record: int = 0,
    progress: Progress | None = None,
    first: Tensor | None = None,
) -> tuple[Tally, list[TensorDictBase], list[TensorDictBase]]:
    """Step all worlds until each is done.

    Args:
        step: steps the worlds.
        policy: sets `action`.
        root: `[B]`.
        limit: largest number of steps.
        record: number of worlds to record, the first ones.
        progress: called every few steps.
        first: actions of the first step, `[B, ...]`; None for the policy's.

    Returns:
        The sums, the states `[record]` over time, and the recorded steps.
    """
    names = list(root.keys(include_nested=True, leaves_only=True))
    tally, recorded = Tally.start(root), [_states(root, record)]
    steps: list[TensorDictBase] = []
    can_sync = root["done"].device.type == "cpu"
    for number in range(1, limit + 1):
        acted = policy(root.copy())
        if first is not None and number == 1:
            acted.set("action", first)
        following = step(acted)
        tally.add(root, following)
        recorded.append(_states(following, record))
        steps.append(_step(acted, tally, record))
        carried = following.select(*names, RECURRENT, strict=False)
        is_kept = not can_sync or bool(tally.finished.any())
        root = carried.where(~tally.finished, acted.select(*carried.keys())) if is_kept else carried
        is_due = number % CHECK_EVERY == 0 or number == limit
        if is_due or can_sync:
            done = int(tally.finished.sum())
            is_over = done == len(tally.finished)
            if progress is not None and (is_due or is_over):
                progress(done, len(tally.finished), number)
            if is_over:
                break
    return tally, recorded, steps


def _states(root: TensorDictBase, record: int) -> TensorDictBase:
    return root["state"][:record].clone() if record else TensorDict({}, batch_size=[0])


def _step(acted: TensorDictBase, tally: Tally, record: int) -> TensorDictBase:
    """Return the action of one step and the return so far, `[record]`."""
    entries = {"action": acted["action"][:record].clone(), "return": tally.returns[:record].clone()}
    return TensorDict(entries if record else {}, batch_size=[record])


def _episode_metrics(following: TensorDictBase) -> dict[str, Tensor]:
    """Return the metrics of the environment, float64 `[B]`, nested names joined by a dot."""
    metrics = following.get("metrics", None)
    if metrics is None:
        return {}
    return {
        name if isinstance(name, str) else ".".join(name): value.reshape(following.batch_size).double()
        for name, value in metrics.items(include_nested=True, leaves_only=True)
    }
