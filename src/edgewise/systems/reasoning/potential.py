"""Rewards shaped by a potential, which changes how fast a prover learns and not what is best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Potential:
    """What a goal promises: how plausible its first atom is, where that has no variable; else nothing.

    A step gains `gamma` times what the next goal promises less what this one did, and the end of a proof
    promises nothing (https://people.eecs.berkeley.edu/~pabbeel/cs287-fa09/readings/NgHaradaRussell-shaping-ICML1999.pdf).

    Args:
        plausible: ground atoms `[N, 3]` to `[N]`.
        weight: of the promise.
        gamma: the discount that training uses.
    """

    plausible: Callable[[Tensor], Tensor]
    weight: float
    gamma: float

    def gained(self, before: Tensor, after: Tensor, *, over: Tensor, num_entities: int) -> Tensor:
        """What a step adds to the reward, `[B]`.

        Args:
            before: `[B, A, 3]`, goals.
            after: `[B, A, 3]`, what they became, before any reset.
            over: `[B]`, whether that is the end.
            num_entities: greater ids of terms are variables.
        """
        promised = self._promise(after[:, 0], num_entities).masked_fill(over, 0.0)
        return self.gamma * promised - self._promise(before[:, 0], num_entities)

    def _promise(self, atoms: Tensor, num_entities: int) -> Tensor:
        terms = atoms[:, 1:]
        ground = ((terms > 0) & (terms <= num_entities)).all(-1)
        asked = torch.where(ground.unsqueeze(-1), atoms, 1)
        return torch.where(ground, self.weight * self.plausible(asked), 0.0)
