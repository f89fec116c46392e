"""What a prover may choose from: successors by resolution, less those met before, and actions that end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.systems.reasoning.engine.expand import Expansion, expand
from edgewise.systems.reasoning.engine.further import Further
from edgewise.systems.reasoning.engine.program import Program


@dataclass(frozen=True)
class Successors:
    """Goals to their successors, one call for worlds that step and for minibatches.

    It holds the program and nothing else, so a recipe can hand it to a model, which recomputes successors
    from the goals that a rollout kept.

    Args:
        program: facts and rules.
        cap: the most successors, further actions included.
        memory: whether to leave out goals whose hash is in `history`.
        further: actions beside successors.

    Example:
        >>> found = env.successors(root["goal"])
        >>> found.successors[found.offsets[:-1] + action]
    """

    program: Program
    cap: int
    memory: bool = True
    further: Further = field(default_factory=Further)

    def __call__(self, goal: TensorDictBase) -> Expansion:
        """Successors of goals in one row after another.

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
        """As a call, from tensors `[B, A, 3]`, `[B, 3]` and `[B, H]`; `counted` as `expand` takes it."""
        return expand(
            self.program,
            atoms,
            excluded=query,
            cap=self.cap - len(self.further),
            history=history if self.memory else None,
            further=self.further,
            counted=counted,
        )

    def to(self, device: torch.device | str) -> Successors:
        """The same on another device."""
        return replace(self, program=self.program.to(device))
