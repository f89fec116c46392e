"""Rank all entities by rules, by embeddings and by both; the weights are fitted on validation atoms alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from edgewise.evaluation.statistics import Interval, paired_difference
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.ranking import Ranks, filtered_ranks
from edgewise.systems.reasoning.evaluation.fusion import Fusion, fit
from edgewise.systems.reasoning.evaluation.rule_ranking import (
    METHODS,
    Batch,
    Progress,
    RuleScorer,
    question_batches,
)
from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.systems.reasoning.knowledge.known import KnownAnswers

FEATURES = ("embedding", "concluded", "greatest confidence", "noisy-or")
HARDEST, RANDOM = 100, 100
"""Candidates of a validation question by each of its scores, and random ones, for the fit of the hybrid."""
FITTED = 1000
"""Validation atoms for the fit."""
QUESTIONS = 64


@dataclass(frozen=True)
class AllEntities:
    """Ranks among all entities by method.

    Attributes:
        ranks: by method; `Ranks.metrics` has MRR and hits.
        differences: MRR of the first method minus the second, with its paired interval over questions.
        fusion: weights of the hybrid, if there are embeddings.
        thresholds: similarity from which rules are redundant, by predicate id.
    """

    ranks: dict[str, Ranks]
    differences: dict[tuple[str, str], Interval]
    fusion: Fusion | None
    thresholds: dict[int, float]


def rank_all_entities(
    dataset: Dataset,
    atoms: Tensor,
    *,
    scorer: RuleScorer,
    embedding: KnowledgeEmbedding | None = None,
    methods: tuple[str, ...] = METHODS,
    seed: int = 0,
    progress: Progress | None = None,
) -> AllEntities:
    """Rank atoms `[n, 3]` among all entities, filtered, on both sides; ties get their mean rank.

    Args:
        dataset: known atoms, and the validation atoms that everything is fitted on.
        atoms: atoms to rank.
        scorer: the rules; its clusters are fitted here, if they are used.
        embedding: adds the methods `kge` and `hybrid`.
        methods: of `METHODS`.
        seed: random seed of the validation sample.
        progress: called with the number of answered questions.
    """
    if "non_redundant" in methods:
        scorer.fit_clusters(dataset)
    ranker = _Ranker(dataset, scorer, embedding, methods)
    fusion = None if embedding is None else ranker.fit(seed)
    ranks = ranker.rank(atoms, fusion, progress)
    reciprocal = {name: torch.cat([one.head, one.tail]).reciprocal().numpy() for name, one in ranks.items()}
    return AllEntities(ranks, pairwise_differences(reciprocal), fusion, scorer.thresholds)


def pairwise_differences(reciprocal: dict[str, Any]) -> dict[tuple[str, str], Interval]:
    """Return the mean difference of every two columns `[n]`, the greater one first, with its interval."""
    found = {}
    for first, second in combinations(reciprocal, 2):
        one, two = np.asarray(reciprocal[first]), np.asarray(reciprocal[second])
        if one.mean() < two.mean():
            first, second, one, two = second, first, two, one
        found[first, second] = paired_difference(one, two, generator=np.random.default_rng(0))
    return found


class _Ranker:
    def __init__(
        self,
        dataset: Dataset,
        scorer: RuleScorer,
        embedding: KnowledgeEmbedding | None,
        methods: tuple[str, ...],
    ) -> None:
        self.dataset, self.scorer, self.embedding, self.methods = dataset, scorer, embedding, methods
        known, entities = dataset.known(), dataset.vocabulary.num_entities
        self.answers = {
            "head": KnownAnswers.heads(known, num_entities=entities),
            "tail": KnownAnswers.tails(known, num_entities=entities),
        }

    def rank(self, atoms: Tensor, fusion: Fusion | None, progress: Progress | None) -> dict[str, Ranks]:
        names = [*self.methods, *(("kge", "hybrid") if fusion is not None else ())]
        needed = (*self.methods, *(("confidence", "noisy_or") if fusion is not None else ()))
        found = {name: torch.zeros(2, len(atoms), dtype=torch.float64) for name in names}
        sides: tuple[Literal["head", "tail"], ...] = ("head", "tail")
        for row, side in enumerate(sides):
            for batch in self._batches(atoms, side):
                scores = self.scorer.scores(batch.relation, batch.given, needed)
                tables = {name: torch.from_numpy(scores[name]) for name in self.methods}
                if fusion is not None:
                    features = self._features(batch, side, scores)
                    tables |= {"kge": features[..., 0], "hybrid": fusion(features)}
                for name, table in tables.items():
                    found[name][row, batch.atom] = self._ranks(table, batch, atoms, side)
                if progress is not None:
                    progress(len(batch.atom))
        return {name: Ranks(head=both[0], tail=both[1]) for name, both in found.items()}

    def fit(self, seed: int) -> Fusion:
        """Fit the hybrid on lists of the true answer, the hardest false ones and random ones."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.dataset.valid), generator=generator)[:FITTED]
        atoms, lists = self.dataset.valid[order], []
        sides: tuple[Literal["head", "tail"], ...] = ("head", "tail")
        for side in sides:
            for batch in self._batches(atoms, side):
                scores = self.scorer.scores(batch.relation, batch.given, ("confidence", "noisy_or"))
                features = self._features(batch, side, scores)[batch.question]
                lists.append(self._hard_lists(features, atoms[batch.atom], side, generator))
        values = torch.cat(lists)
        exists = values.isfinite().all(-1)
        return fit(torch.where(exists.unsqueeze(-1), values, 0.0), exists, names=FEATURES)

    def _hard_lists(self, features: Tensor, rows: Tensor, side: str, generator: torch.Generator) -> Tensor:
        """Return the features of the true answer and of chosen false ones, `[k, K, F]`; NaN for none."""
        given, true = (1, 2) if side == "tail" else (2, 1)
        owner, answer = self.answers[side].of_questions(rows[:, 0], rows[:, given])
        false = torch.ones(features.shape[:2], dtype=torch.bool)
        false[owner, answer - 1] = False
        random = torch.rand(false.shape, generator=generator, dtype=torch.float64)
        chosen = torch.zeros_like(false)
        for score, count in ((features[..., 0], HARDEST), (features[..., 3], HARDEST), (random, RANDOM)):
            best = score.masked_fill(~false, -torch.inf).topk(min(count, false.shape[1]), dim=1).indices
            chosen.scatter_(1, best, True)
        chosen &= false
        width = 2 * HARDEST + RANDOM
        place = chosen.double().mul(1 + random).topk(min(width, chosen.shape[1]), dim=1).indices
        place = torch.cat([rows[:, true : true + 1] - 1, place], 1)
        listed = chosen.gather(1, place)
        listed[:, 0] = True
        table = features.gather(1, place.unsqueeze(-1).expand(-1, -1, features.shape[-1]))
        table = table.masked_fill(~listed.unsqueeze(-1), torch.nan)
        missing = width + 1 - table.shape[1]
        return torch.nn.functional.pad(table, (0, 0, 0, missing), value=torch.nan)

    @torch.no_grad()
    def _features(self, batch: Batch, side: Literal["head", "tail"], scores: dict[str, Any]) -> Tensor:
        """Return the scores of all entities, `[m, E, F]`."""
        assert self.embedding is not None
        given = torch.from_numpy(batch.given) + 1
        predicate = torch.full_like(given, batch.relation % self.scorer.relations.num_predicates + 1)
        if side == "tail":
            score = self.embedding.score_tails(given, predicate)
        else:
            score = self.embedding.score_heads(predicate, given)
        confidence = torch.from_numpy(scores["confidence"])
        parts = (
            score.double().log_softmax(-1),
            (confidence > 0).double(),
            confidence,
            torch.from_numpy(scores["noisy_or"]),
        )
        return torch.stack(parts, -1)

    def _batches(self, atoms: Tensor, side: str) -> Any:
        predicates = self.scorer.relations.num_predicates
        return question_batches(atoms, num_predicates=predicates, side=side, size=QUESTIONS)

    def _ranks(self, table: Tensor, batch: Batch, atoms: Tensor, side: str) -> Tensor:
        rows = atoms[batch.atom]
        given, true = (1, 2) if side == "tail" else (2, 1)
        questions = self.answers[side].of_questions(rows[:, 0], rows[:, given])
        return filtered_ranks(table[batch.question], rows[:, true], *questions)
