"""Potential-based reward shaping, which leaves the optimal policy unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Potential:
    """Potential of a goal: the plausibility of its first atom if that is ground, else 0.

    A step adds `gamma * potential(next goal) - potential(goal)` to the reward. The end of a proof has
    potential 0 (https://people.eecs.berkeley.edu/~pabbeel/cs287-fa09/readings/NgHaradaRussell-shaping-ICML1999.pdf).

    Args:
        plausibility: ground atoms `[N, 3]` to `[N]`.
        weight: factor of the potential.
        gamma: discount factor of training.
    """

    plausibility: Callable[[Tensor], Tensor]
    weight: float
    gamma: float

    def shaping_reward(self, before: Tensor, after: Tensor, *, over: Tensor, num_entities: int) -> Tensor:
        """Compute the shaping term of the reward, `[B]`.

        Args:
            before: `[B, A, 3]`, goals before the step.
            after: `[B, A, 3]`, goals after it, before any reset.
            over: `[B]`, whether the step ends the proof.
            num_entities: larger ids of terms are variables.
        """
        following = self._potential(after[:, 0], num_entities).masked_fill(over, 0.0)
        return self.gamma * following - self._potential(before[:, 0], num_entities)

    def _potential(self, atoms: Tensor, num_entities: int) -> Tensor:
        terms = atoms[:, 1:]
        ground = ((terms > 0) & (terms <= num_entities)).all(-1)
        inputs = torch.where(ground.unsqueeze(-1), atoms, 1)
        return torch.where(ground, self.weight * self.plausibility(inputs), 0.0)
