"""Actions beside the successors of a goal: assume an atom, give up, claim success."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.engine.resolve import Goals


@dataclass(frozen=True)
class ExtraActions:
    """Actions beside the successors by resolution, offered after them in this order.

    Attributes:
        assume: the goal with `<predicate>_kge` as its first predicate, where the first atom is ground and the
            goal not proved; the atom is then assumed on the basis of an embedding.
        give_up: `[Endf]`, where no successor ends the proof.
        claim: `[Endt]`, where no successor ends the proof.
    """

    assume: bool = False
    give_up: bool = False
    claim: bool = False

    def __len__(self) -> int:
        """Return the maximum number of extra actions."""
        return self.assume + self.give_up + self.claim

    def offered(
        self, goals: Goals, *, proved: Tensor, over: Tensor, program: Program
    ) -> list[tuple[Tensor, Tensor]]:
        """Return for each action where it is offered, `[B]` bool, and its goal, `[B, A, 3]` or `[A, 3]`."""
        words, first, actions = program.vocabulary, goals.first, []
        end = first.new_zeros(program.max_atoms, 3)
        if self.assume:
            ground = (first[:, 1:] > 0).all(-1) & (first[:, 1:] <= words.num_entities).all(-1)
            assumed = torch.cat((first.unsqueeze(1), goals.rest), 1)
            assumed = functional.pad(assumed, (0, 0, 0, program.max_atoms - assumed.shape[1]))
            assumed[:, 0, 0] += words.assumed_offset
            actions.append((ground & ~proved & ~goals.failed, assumed))
        for enabled, predicate in ((self.give_up, words.end_false), (self.claim, words.end_true)):
            if enabled:
                goal = end.clone()
                goal[0, 0] = predicate
                actions.append((~over, goal))
        return actions
