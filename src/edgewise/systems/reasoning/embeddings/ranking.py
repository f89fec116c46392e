"""Filtered ranks of the true entity among all entities, on both sides; ties get their mean rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.config.errors import NumericalStop
from edgewise.systems.reasoning.evaluation.candidate_ranks import HITS, hits, mean_reciprocal_rank
from edgewise.systems.reasoning.knowledge.known import KnownAnswers

Scores = Callable[[Tensor, Tensor], Tensor]
"""Scores every entity for m questions, `[m]` and `[m]` → `[m, E]`; column e - 1 is entity e."""


@dataclass(frozen=True)
class Ranks:
    """Ranks of the true entities, from 1; ties may give halves.

    Args:
        head: `[n]` ranks among heads.
        tail: `[n]` ranks among tails.
    """

    head: Tensor
    tail: Tensor

    def metrics(self) -> dict[str, float]:
        """Compute MRR, hits@k and mean rank over both sides, and the MRR of each side."""
        both = torch.cat([self.head, self.tail])
        return {
            "mrr": mean_reciprocal_rank(both),
            **{f"hits@{at}": hits(both, at) for at in HITS},
            "mean_rank": both.mean().item(),
            "mrr_head": mean_reciprocal_rank(self.head),
            "mrr_tail": mean_reciprocal_rank(self.tail),
        }


@torch.no_grad()
def rank_all(
    atoms: Tensor,
    known: Tensor,
    *,
    score_tails: Scores,
    score_heads: Scores,
    num_entities: int,
    chunk: int = 256,
) -> Ranks:
    """Compute the filtered ranks of atoms `[n, 3]` among all entities, on both sides.

    Args:
        atoms: (predicate, head, tail).
        known: `[k, 3]`, all true atoms; other true answers are left out of the ranking.
        score_tails: scores tails for (heads, predicates).
        score_heads: scores heads for (predicates, tails).
        num_entities: E.
        chunk: questions scored at once.

    Raises:
        NumericalStop: a score is not finite.
    """
    tails = KnownAnswers.tails(known, num_entities=num_entities)
    heads = KnownAnswers.heads(known, num_entities=num_entities)
    of_tails, of_heads = [], []
    for part in atoms.split(chunk):
        predicate, head, tail = part.unbind(-1)
        of_tails.append(
            filtered_ranks(score_tails(head, predicate), tail, *tails.of_questions(predicate, head))
        )
        of_heads.append(
            filtered_ranks(score_heads(predicate, tail), head, *heads.of_questions(predicate, tail))
        )
    return Ranks(head=torch.cat(of_heads), tail=torch.cat(of_tails))


def filtered_ranks(scores: Tensor, true: Tensor, owner: Tensor, answers: Tensor) -> Tensor:
    """Compute the ranks of the true entities, `[m]`.

    Args:
        scores: `[m, E]`, column e − 1 for entity e.
        true: `[m]` ids of the true entities.
        owner: `[k]` rows of the known answers.
        answers: `[k]` ids of the known answers, distinct within a row; they are left out.
    """
    own = scores.gather(1, true.unsqueeze(1) - 1)
    if not bool(scores.isfinite().all()):
        raise NumericalStop("a score is not finite: the model has diverged", hint="lower its learning rate")
    other = answers != true[owner]
    owner, answers = owner[other], answers[other]
    left_out, own_score = scores[owner, answers - 1], own.squeeze(1)[owner]
    better = (scores > own).count_nonzero(1).index_add(0, owner, (left_out > own_score).long(), alpha=-1)
    equal = (scores == own).count_nonzero(1).index_add(0, owner, (left_out == own_score).long(), alpha=-1)
    return 1 + better + (equal.double() - 1) / 2
