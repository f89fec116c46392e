"""Actions beside the successors of a goal: to assume an atom, to give up, and to claim success."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.engine.resolve import Goals


@dataclass(frozen=True)
class Further:
    """Actions beside the successors that resolution gives, offered in this order, after them.

    Attributes:
        assume: take the first atom, if it is ground and the goal not proved, on the word of an embedding: the
            goal with `<predicate>_kge` in place of the first predicate.
        give_up: `[Endf]`, where no successor ends the proof by itself.
        claim: `[Endt]`, where no successor does.
    """

    assume: bool = False
    give_up: bool = False
    claim: bool = False

    def __len__(self) -> int:
        """How many there can be."""
        return self.assume + self.give_up + self.claim

    def offered(
        self, goals: Goals, *, proved: Tensor, over: Tensor, program: Program
    ) -> list[tuple[Tensor, Tensor]]:
        """Where each action is offered `[B]` bool, and where it leads: `[B, A, 3]` or `[A, 3]`."""
        words, first, actions = program.vocabulary, goals.first, []
        end = first.new_zeros(program.max_atoms, 3)
        if self.assume:
            ground = (first[:, 1:] > 0).all(-1) & (first[:, 1:] <= words.num_entities).all(-1)
            assumed = torch.cat((first.unsqueeze(1), goals.rest), 1)
            assumed = functional.pad(assumed, (0, 0, 0, program.max_atoms - assumed.shape[1]))
            assumed[:, 0, 0] += words.assumed_offset
            actions.append((ground & ~proved & ~goals.failed, assumed))
        for wanted, word in ((self.give_up, words.end_false), (self.claim, words.end_true)):
            if wanted:
                leads = end.clone()
                leads[0, 0] = word
                actions.append((~over, leads))
        return actions
