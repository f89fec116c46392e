"""Filtered ranks among all entities by rules alone: greatest confidence, noisy-or, non-redundant noisy-or."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgewise.systems.reasoning.embeddings.ranking import filtered_ranks
from edgewise.systems.reasoning.evaluation.candidates import Candidates
from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.systems.reasoning.knowledge.known import KnownAnswers
from edgewise.systems.reasoning.mining.aggregation import (
    Floats,
    clustered_noisy_or,
    clusters,
    greatest,
    greatest_then_next,
    noisy_or,
    similar_rules,
)
from edgewise.systems.reasoning.mining.relations import Ints, Relations
from edgewise.systems.reasoning.mining.rule_book import RuleBook

METHODS = ("greatest", "noisy_or", "non_redundant")
THRESHOLDS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 2.0)
"""Jaccard similarities from which two rules are in one cluster; 0 for a single one, 2 for none."""
QUESTIONS = 128
"""Questions of one relation that are answered at once."""
FITTED = 100
"""Validation questions of a predicate and direction from which its clusters are fitted."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Batch:
    """Questions of one directed relation.

    Attributes:
        relation: p for tails of predicate p + 1, P + p for its heads.
        given: `[m]` distinct entities from 0.
        atom: `[k]` rows of the atoms that ask one of these questions.
        question: `[k]` the question of each.
    """

    relation: int
    given: Ints
    atom: Ints
    question: Ints


def question_batches(atoms: Tensor, *, num_predicates: int, side: str, size: int) -> Iterator[Batch]:
    """Group the questions of atoms `[n, 3]` about one side by predicate, equal ones once."""
    predicate, head, tail = atoms.numpy().T - 1
    given = head if side == "tail" else tail
    for number in np.unique(predicate):
        rows = np.flatnonzero(predicate == number)
        distinct, question = np.unique(given[rows], return_inverse=True)
        relation = int(number) + (0 if side == "tail" else num_predicates)
        for start in range(0, len(distinct), size):
            within = (question >= start) & (question < start + size)
            yield Batch(relation, distinct[start : start + size], rows[within], question[within] - start)


class RuleScorer:
    """Scores of all entities for questions, by rules.

    Args:
        dataset: the facts and rules; the rules are applied once, to the facts as they are.
    """

    def __init__(self, dataset: Dataset) -> None:
        words = dataset.vocabulary
        facts = dataset.with_facts_in_training().train.numpy()
        self.relations = Relations(
            facts, num_predicates=words.num_predicates, num_entities=words.num_entities
        )
        self.book = RuleBook(dataset.rules, self.relations)
        self.cluster: Ints = np.arange(max(1, len(self.book)))
        self.thresholds: dict[int, float] = {}

    def scores(self, relation: int, given: Ints, methods: tuple[str, ...] = METHODS) -> dict[str, Floats]:
        """Score all entities for questions relation(x, ?), each `[m, E]`; 0 where no rule concludes one."""
        concluded, weight = self.book.concluded(relation, given), self.book.weight
        compute: dict[str, Callable[[], Floats]] = {
            "greatest": lambda: greatest_then_next(concluded, weight, questions=len(given)),
            "noisy_or": lambda: noisy_or(concluded, weight),
            "non_redundant": lambda: clustered_noisy_or(concluded, weight, self.cluster),
            "confidence": lambda: greatest(concluded, weight),
        }
        return {name: compute[name]().reshape(len(given), -1) for name in methods}

    def fit_clusters(self, dataset: Dataset, *, progress: Progress | None = None) -> None:
        """Choose the clusters of the rules of each predicate by the MRR of validation questions.

        SAFRAN (Ott, Meilicke and Samwald, 2021, https://arxiv.org/abs/2109.08002) chooses them alike.
        """
        known, entities = dataset.known(), dataset.vocabulary.num_entities
        predicates = self.relations.num_predicates
        answers = {
            "tail": KnownAnswers.tails(known, num_entities=entities),
            "head": KnownAnswers.heads(known, num_entities=entities),
        }
        for predicate in dataset.valid[:, 0].unique().tolist():
            atoms = dataset.valid[dataset.valid[:, 0] == predicate][:FITTED]
            batches = [
                (side, batch)
                for side in ("tail", "head")
                for batch in question_batches(atoms, num_predicates=predicates, side=side, size=FITTED)
            ]
            self._fit_predicate(predicate, atoms, batches, answers)
            if progress is not None:
                progress(len(atoms))

    def _fit_predicate(
        self,
        predicate: int,
        atoms: Tensor,
        batches: list[tuple[str, Batch]],
        answers: dict[str, KnownAnswers],
    ) -> None:
        from scipy import sparse

        concluded = [self.book.concluded(batch.relation, batch.given) for _, batch in batches]
        everything = sparse.vstack(concluded).tocsr()
        used = np.unique(everything.indices)
        if len(used) < 2:
            return
        similarity = similar_rules(everything[:, used])
        best, chosen = -1.0, self.cluster
        for threshold in THRESHOLDS:
            trial = self.cluster.copy()
            trial[used] = used[clusters(similarity, threshold)]
            total = 0.0
            for (side, batch), table in zip(batches, concluded, strict=True):
                score = clustered_noisy_or(table, self.book.weight, trial).reshape(len(batch.given), -1)
                found = _ranks(score, batch, atoms, side, answers[side])
                total += float(found.reciprocal().sum())
            if total > best + 1e-9:
                best, chosen, self.thresholds[predicate] = total, trial, threshold
        self.cluster = chosen


def list_scores(scorer: RuleScorer, lists: Candidates) -> dict[str, Tensor]:
    """Score the candidates of lists by rules, each `[Q, K]` float64; padding gets −1.

    `greatest` orders the candidates of one list by their greatest confidence, ties by the next ones.
    `confidence` is that confidence itself, and `noisy_or` −log of the probability that all rules are wrong.
    """
    methods = ("greatest", "confidence", "noisy_or")
    found = {name: torch.full(lists.exists.shape, -1.0, dtype=torch.float64) for name in methods}
    sides: tuple[tuple[str, int], ...] = (("head", 1), ("tail", 2))
    for side, column in sides:
        rows = (lists.side == column).nonzero().squeeze(1)
        atoms = lists.atoms[rows, 0]
        predicates = scorer.relations.num_predicates
        for batch in question_batches(atoms, num_predicates=predicates, side=side, size=QUESTIONS):
            scores, list_rows = scorer.scores(batch.relation, batch.given, methods), rows[batch.atom]
            entity = (lists.atoms[list_rows, :, column] - 1).clamp(min=0)
            for name in methods:
                value = torch.from_numpy(scores[name])[batch.question].gather(1, entity)
                found[name][list_rows] = value.masked_fill(~lists.exists[list_rows], -1.0)
    return found


def _ranks(
    score: NDArray[np.float64], batch: Batch, atoms: Tensor, side: str, answers: KnownAnswers
) -> Tensor:
    rows = atoms[batch.atom]
    given, true = (1, 2) if side == "tail" else (2, 1)
    table = torch.from_numpy(score)[batch.question]
    return filtered_ranks(table, rows[:, true], *answers.of_questions(rows[:, 0], rows[:, given]))
