"""Turn rollouts into sequences of steps with the hidden state before them, for recurrent agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from tensordict import NestedKey, TensorDict, TensorDictBase

from edgewise.data.transitions import Transitions, unpacked
from edgewise.graphs.keys import RECURRENT

HIDDEN = (RECURRENT, "values")
"""The hidden states that a recurrent value network writes while it acts, `[*B, A, C]`."""


class Sequences(Transitions):
    """Makes sequences of one-step transitions of whole worlds (https://openreview.net/forum?id=r1lyTjAqYX).

    A sequence has `burn_in` steps and then `length` steps to learn from. The next one of a world begins
    `length` steps later: every step but the first `burn_in` of a run is learnt from in one sequence. Episodes
    may end within a sequence. Steps that do not fill one yet are carried over to the next call.

    Args:
        observed: entries of the root that networks read.
        length: steps to learn from.
        burn_in: steps before them.
        bounds: exclusive upper bounds of integer entries, which are stored in as few bytes as possible.
        discount: γ of one step.
        team_reward: see `Transitions`.
    """

    def __init__(
        self,
        observed: Sequence[NestedKey],
        *,
        length: int,
        burn_in: int,
        bounds: Mapping[NestedKey, int],
        discount: float,
        team_reward: bool,
    ) -> None:
        super().__init__(observed, bounds=bounds, discount=discount, team_reward=team_reward)
        self.length, self.burn_in = length, burn_in

    def stored(self, batch: TensorDictBase) -> TensorDict:
        """Return the sequences `[M]` that are complete with this batch `[B, T]`, oldest first.

        Returns:
            `observation`, `next_observation`, `action`, `reward`, `terminated` and `done`, each
            `[M, L, ...]`, and `hidden [M, A, C]` before the first step.
        """
        rollout = self._with_carried(self._select(batch))
        worlds, steps = rollout.batch_size
        span, device = self.burn_in + self.length, rollout["next", "done"].device
        start = torch.arange(0, max(steps - span + 1, 0), self.length, device=device)
        self._carried = rollout[:, len(start) * self.length :].clone()
        first = start.repeat_interleave(worlds)
        world = torch.arange(worlds, device=device).repeat(len(start))
        at = (world.unsqueeze(-1).expand(-1, span), first.unsqueeze(-1) + torch.arange(span, device=device))
        terminated = self._terminated(rollout)
        rows = {
            "observation": self._at(rollout, at),
            "next_observation": self._at(rollout["next"], at),
            "action": self._packed("action", rollout["action"][at]),
            "reward": self._rewards(rollout)[at],
            "terminated": terminated[at],
            "done": self._ended(rollout, terminated)[at],
            "hidden": rollout[HIDDEN][world, first],
        }
        return TensorDict(rows, batch_size=[len(world)], device=device)

    def expand(self, stored: TensorDictBase) -> TensorDict:
        """Return sequences of the replay buffer as algorithms take them.

        Integers are int64 again, and `discount` (γ, or 0 at a termination) replaces `terminated`. The
        observation has the first hidden state and `("next", "done")`, by which networks know a sequence.
        """
        samples = stored.exclude("terminated", "done", "hidden")
        done, hidden = stored["done"], stored["hidden"]
        for name in ("observation", "next_observation"):
            samples.set(name, stored[name].apply(unpacked))
            samples[name].batch_size = done.shape  # a restored buffer knows its first dimension only
        samples["observation"].set(("next", "done"), done.unsqueeze(-1))
        samples["observation"].set(HIDDEN, hidden.unsqueeze(1).expand(-1, done.shape[1], -1, -1))
        samples.set("action", unpacked(stored["action"]))
        return samples.set("discount", self.discount * ~stored["terminated"])

    def _select(self, batch: TensorDictBase) -> TensorDictBase:
        return super()._select(batch).set(HIDDEN, batch[HIDDEN])
