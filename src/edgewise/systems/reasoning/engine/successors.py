"""The choices at a goal: successors by resolution without loops, and extra actions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.systems.reasoning.engine.expand import Expansion, expand
from edgewise.systems.reasoning.engine.extra_actions import ExtraActions
from edgewise.systems.reasoning.engine.program import Program


@dataclass(frozen=True)
class Successors:
    """Maps goals to their successors, for environment steps and for minibatches.

    It holds only the program, so a model can use it to recompute successors from the goals of a rollout.

    Args:
        program: facts and rules.
        cap: maximum number of successors, extra actions included.
        memory: whether to leave out goals whose hash is in `history`.
        extra_actions: actions beside successors.

    Example:
        >>> found = env.successors(root["goal"])
        >>> found.successors[found.offsets[:-1] + action]
    """

    program: Program
    cap: int
    memory: bool = True
    extra_actions: ExtraActions = field(default_factory=ExtraActions)

    def __call__(self, goal: TensorDictBase) -> Expansion:
        """Compute the successors of goals, flattened to one row per successor.

        Args:
            goal: `atoms` `[*B, A, 3]`, `query` `[*B, 3]` and, with memory, `history` `[*B, H]`; leading
                dimensions are flattened in their order.
        """
        history = goal.get("history").flatten(0, -2) if self.memory else None
        return self.of(goal.get("atoms").flatten(0, -3), goal.get("query").flatten(0, -2), history=history)

    def of(
        self,
        atoms: Tensor,
        query: Tensor,
        *,
        history: Tensor | None = None,
        counted: bool | None = None,
    ) -> Expansion:
        """Compute successors from tensors `[B, A, 3]`, `[B, 3]` and `[B, H]`; see `expand` for `counted`."""
        return expand(
            self.program,
            atoms,
            excluded=query,
            cap=self.cap - len(self.extra_actions),
            history=history if self.memory else None,
            extra_actions=self.extra_actions,
            counted=counted,
        )

    def to(self, device: torch.device | str) -> Successors:
        """Return a copy on another device."""
        return replace(self, program=self.program.to(device))
