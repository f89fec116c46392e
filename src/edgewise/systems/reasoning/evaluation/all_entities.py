"""Rank all entities by rules, embeddings, proofs and all together; fitted on validation atoms alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from edgewise.systems.reasoning.evaluation.search_curve import UNPROVED
from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.systems.reasoning.knowledge.known import KnownAnswers
from edgewise.systems.reasoning.mining.relations import Ints

Prover = Callable[[int, Ints], Tensor]
"""Maps questions relation(x, ?) to log-probabilities of proofs, `[m, E]`; minus infinity without a proof."""
FEATURES = ("embedding", "concluded", "greatest confidence", "noisy-or")
HARDEST, RANDOM = 100, 100
"""Candidates of a validation question by each of its scores, and random ones, for the fit of the hybrid."""
FITTED = 1000
"""Validation atoms for the fit."""
QUESTIONS = 64
SIDES: tuple[Literal["head", "tail"], ...] = ("head", "tail")


@dataclass(frozen=True)
class AllEntities:
    """Ranks among all entities by method.

    Attributes:
        ranks: by method; `Ranks.metrics` has MRR and hits.
        differences: MRR of the first method minus the second, with its paired interval over questions.
        fusions: weights of each hybrid, if there are embeddings.
        thresholds: similarity from which rules are redundant, by predicate id.
    """

    ranks: dict[str, Ranks]
    differences: dict[tuple[str, str], Interval]
    fusions: dict[str, Fusion]
    thresholds: dict[int, float]


def rank_all_entities(
    dataset: Dataset,
    atoms: Tensor,
    *,
    scorer: RuleScorer,
    embedding: KnowledgeEmbedding | None = None,
    provers: Mapping[str, Prover] | None = None,
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
        provers: each adds a method of its name, and with embeddings `hybrid_NAME`, the hybrid and its proofs.
        methods: of `METHODS`.
        seed: random seed of the validation sample.
        progress: called with the number of answered questions, those of the fit included.
    """
    if "non_redundant" in methods:
        scorer.fit_clusters(dataset)
    ranker = _Ranker(dataset, scorer, embedding, provers or {}, methods)
    fusions = {} if embedding is None else ranker.fit(seed, progress)
    ranks = ranker.rank(atoms, fusions, progress)
    reciprocal = {name: torch.cat([one.head, one.tail]).reciprocal().numpy() for name, one in ranks.items()}
    return AllEntities(ranks, pairwise_differences(reciprocal), fusions, scorer.thresholds)


def num_questions(dataset: Dataset, atoms: Tensor, *, fitted: bool) -> int:
    """Return how many questions `rank_all_entities` answers, with those of the fit."""
    return 2 * (len(atoms) + (min(FITTED, len(dataset.valid)) if fitted else 0))


def pairwise_differences(reciprocal: dict[str, Any]) -> dict[tuple[str, str], Interval]:
    """Return the mean difference of every two columns `[n]`, the greater one first, with its interval."""
    found = {}
    for first, second in combinations(reciprocal, 2):
        one, two = np.asarray(reciprocal[first]), np.asarray(reciprocal[second])
        if one.mean() < two.mean():
            first, second, one, two = second, first, two, one
        found[first, second] = paired_difference(one, two)
    return found


class _Ranker:
    def __init__(
        self,
        dataset: Dataset,
        scorer: RuleScorer,
        embedding: KnowledgeEmbedding | None,
        provers: Mapping[str, Prover],
        methods: tuple[str, ...],
    ) -> None:
        self.dataset, self.scorer, self.embedding, self.methods = dataset, scorer, embedding, methods
        self.provers = provers
        self.names = (*FEATURES, *(part for name in provers for part in _proof_features(name)))
        known, entities = dataset.known(), dataset.vocabulary.num_entities
        self.answers = {
            "head": KnownAnswers.heads(known, num_entities=entities),
            "tail": KnownAnswers.tails(known, num_entities=entities),
        }

    def rank(self, atoms: Tensor, fusions: dict[str, Fusion], progress: Progress | None) -> dict[str, Ranks]:
        names = [*self.methods, *(("kge",) if fusions else ()), *self.provers, *fusions]
        found = {name: torch.zeros(2, len(atoms), dtype=torch.float64) for name in names}
        for row, side in enumerate(SIDES):
            for batch in self._batches(atoms, side):
                for name, table in self._tables(batch, side, fusions).items():
                    found[name][row, batch.atom] = self._ranks(table, batch, atoms, side)
                if progress is not None:
                    progress(len(batch.atom))
        return {name: Ranks(head=both[0], tail=both[1]) for name, both in found.items()}

    def _tables(
        self, batch: Batch, side: Literal["head", "tail"], fusions: dict[str, Fusion]
    ) -> dict[str, Tensor]:
        """Return the scores of all entities by method, each `[m, E]`."""
        needed = (*self.methods, *(("confidence", "noisy_or") if fusions else ()))
        scores = self.scorer.scores(batch.relation, batch.given, needed)
        proofs = self._proofs(batch)
        tables = {name: torch.from_numpy(scores[name]) for name in self.methods}
        tables |= {name: table.clamp(min=UNPROVED) for name, table in proofs.items()}
        if fusions:
            features = self._features(batch, side, scores, proofs)
            tables["kge"] = features[..., 0]
            for name, fusion in fusions.items():
                tables[name] = fusion(self._of_names(features, fusion.names))
        return tables

    def fit(self, seed: int, progress: Progress | None) -> dict[str, Fusion]:
        """Fit the hybrids on lists of the true answer, the hardest false ones and random ones.

        Proofs are added to the scores that have a weight without them.
        """
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.dataset.valid), generator=generator)[:FITTED]
        atoms, lists = self.dataset.valid[order], []
        for side in SIDES:
            for batch in self._batches(atoms, side):
                scores = self.scorer.scores(batch.relation, batch.given, ("confidence", "noisy_or"))
                features = self._features(batch, side, scores, self._proofs(batch))[batch.question]
                lists.append(self._hard_lists(features, atoms[batch.atom], side, generator))
                if progress is not None:
                    progress(len(batch.atom))
        values = torch.cat(lists)
        exists = values.isfinite().all(-1)
        values = torch.where(exists.unsqueeze(-1), values, 0.0)
        fusions = {"hybrid": fit(values[..., : len(FEATURES)], exists, names=FEATURES)}
        chosen = [name for name, weight in fusions["hybrid"].by_name.items() if weight]
        for name in self.provers:
            names = (*chosen, *_proof_features(name))
            fusions[f"hybrid_{name}"] = fit(self._of_names(values, names), exists, names=names)
        return fusions

    def _of_names(self, features: Tensor, names: tuple[str, ...]) -> Tensor:
        """Pick the scores with these names from all features `[..., F]`."""
        return features[..., [self.names.index(name) for name in names]]

    def _proofs(self, batch: Batch) -> dict[str, Tensor]:
        return {name: prover(batch.relation, batch.given) for name, prover in self.provers.items()}

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
    def _features(
        self,
        batch: Batch,
        side: Literal["head", "tail"],
        scores: dict[str, Any],
        proofs: dict[str, Tensor],
    ) -> Tensor:
        """Return the scores of all entities, `[m, E, F]`."""
        assert self.embedding is not None
        given = torch.from_numpy(batch.given) + 1
        predicate = torch.full_like(given, batch.relation % self.scorer.relations.num_predicates + 1)
        if side == "tail":
            score = self.embedding.score_tails(given, predicate)
        else:
            score = self.embedding.score_heads(predicate, given)
        confidence = torch.from_numpy(scores["confidence"])
        parts = [
            score.double().log_softmax(-1),
            (confidence > 0).double(),
            confidence,
            torch.from_numpy(scores["noisy_or"]),
        ]
        for table in proofs.values():
            proved = table.isfinite()
            parts += [proved.double(), torch.where(proved, table, 0.0)]
        return torch.stack(parts, -1)

    def _batches(self, atoms: Tensor, side: str) -> Any:
        predicates = self.scorer.relations.num_predicates
        return question_batches(atoms, num_predicates=predicates, side=side, size=QUESTIONS)

    def _ranks(self, table: Tensor, batch: Batch, atoms: Tensor, side: str) -> Tensor:
        rows = atoms[batch.atom]
        given, true = (1, 2) if side == "tail" else (2, 1)
        questions = self.answers[side].of_questions(rows[:, 0], rows[:, given])
        return filtered_ranks(table[batch.question], rows[:, true], *questions)


def _proof_features(name: str) -> tuple[str, str]:
    return f"proved by {name}", f"log probability by {name}"
