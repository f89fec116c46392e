"""Ranks by rules against a slow, independent ranking, for all ways to join the rules of a candidate."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from tests.systems.reasoning.mining import slow

from edgewise.systems.reasoning.embeddings.ranking import filtered_ranks
from edgewise.systems.reasoning.evaluation.rule_ranking import METHODS, RuleScorer, question_batches
from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.systems.reasoning.knowledge.known import KnownAnswers
from edgewise.systems.reasoning.knowledge.leaks import find_leaks
from edgewise.systems.reasoning.knowledge.rules import Rule
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary
from edgewise.systems.reasoning.mining.aggregation import (
    clusters,
    greatest,
    greatest_then_next,
    similar_rules,
)
from edgewise.systems.reasoning.mining.config import MiningConfig
from edgewise.systems.reasoning.mining.miner import mine

ENTITIES, PREDICATES = 7, 2


def dataset(seed: int, *, rules=None, most=60) -> Dataset:
    train = sorted(slow.random_facts(seed, entities=ENTITIES, predicates=PREDICATES, count=24))
    rest = sorted(
        slow.random_facts(seed + 100, entities=ENTITIES, predicates=PREDICATES, count=30) - set(train)
    )
    words = Vocabulary.of(map(str, range(1, ENTITIES + 1)), ("p", "q"))
    parts = {
        "train": torch.tensor(train),
        "valid": torch.tensor(rest[::2]),
        "test": torch.tensor(rest[1::2]),
    }
    if rules is None:
        config = MiningConfig(min_support=1, min_confidence=0)
        found = mine(np.array(train), num_predicates=PREDICATES, num_entities=ENTITIES, config=config).rules
        rules = found[:: max(1, len(found) // most)]
        # Equal weights make ties that only the next rules can break.
        rules = tuple(replace(rule, weight=round(rule.weight, 1) + 0.05) for rule in rules)
    return Dataset(
        name="random",
        vocabulary=words,
        facts=parts["train"],
        rules=tuple(rules),
        domains={},
        leaks=find_leaks(parts, words),
        **parts,
    )


def slow_ranks(data: Dataset, method: str, cluster, concluded) -> torch.Tensor:
    known = {tuple(row) for row in data.known().tolist()}
    found = []
    for side in ("head", "tail"):
        for predicate, head, tail in data.test.tolist():
            given, true = (head, tail) if side == "tail" else (tail, head)
            lists = slow.lists_of_weights(concluded, data.rules, (predicate, given), side)
            if method == "greatest":
                scores = {entity: [weight for weight, _ in one] for entity, one in lists.items()}
                nothing = []
            elif method == "noisy_or":
                scores = {entity: slow.noisy_or([w for w, _ in one]) for entity, one in lists.items()}
                nothing = 0.0
            else:
                scores, nothing = {}, 0.0
                for entity, one in lists.items():
                    best: dict[int, float] = {}
                    for weight, number in one:
                        best[cluster[number]] = max(best.get(cluster[number], 0.0), weight)
                    scores[entity] = slow.noisy_or(list(best.values()))
            answers = {
                entity
                for entity in range(1, ENTITIES + 1)
                if ((predicate, given, entity) if side == "tail" else (predicate, entity, given)) in known
            }
            found.append(slow.rank(scores, true, answers - {true}, ENTITIES, nothing))
    return torch.tensor(found, dtype=torch.float64)


def ranks_by_rules(scorer, data):
    """The ranks of test atoms by every method, heads before tails."""
    atoms, found = data.test, {name: torch.zeros(2, len(data.test), dtype=torch.float64) for name in METHODS}
    known = {"num_entities": ENTITIES}
    answers = KnownAnswers.heads(data.known(), **known), KnownAnswers.tails(data.known(), **known)
    for side, (name, true, given) in enumerate((("head", 1, 2), ("tail", 2, 1))):
        for batch in question_batches(atoms, num_predicates=PREDICATES, side=name, size=128):
            rows = atoms[batch.atom]
            left_out = answers[side].of_questions(rows[:, 0], rows[:, given])
            for method, score in scorer.scores(batch.relation, batch.given, METHODS).items():
                table = torch.from_numpy(score)[batch.question]
                found[method][side, batch.atom] = filtered_ranks(table, rows[:, true], *left_out)
    return {method: ranks.flatten() for method, ranks in found.items()}


@pytest.mark.parametrize("seed", [0, 1])
def test_ranks_are_those_of_a_slow_ranking(seed):
    data = dataset(seed)
    facts = {tuple(row) for row in data.train.tolist()}
    concluded = [slow.conclusions(facts, rule.head, rule.body, ENTITIES) for rule in data.rules]
    scorer = RuleScorer(data)
    assert not scorer.book.left_out
    # Any clusters will do; sums of logarithms are rounded, since their order differs.
    scorer.cluster = np.arange(len(scorer.book)) % 5
    by_place = dict(zip(scorer.book.order.tolist(), scorer.cluster.tolist(), strict=True))
    exact = scorer.scores
    scorer.scores = lambda *given: {name: score.round(9) for name, score in exact(*given).items()}
    for method, found in ranks_by_rules(scorer, data).items():
        assert found.tolist() == slow_ranks(data, method, by_place, concluded).tolist(), method


def test_ties_are_broken_by_the_next_rules_and_by_their_number():
    lists = [[0, 2], [0, 1], [1], [], [0, 1, 2], [0, 2]]
    weight = np.array([0.9, 0.5, 0.5])  # rules 1 and 2 weigh the same
    table = sparse.lil_matrix((6, 3), dtype=np.int8)
    for row, rules in enumerate(lists):
        table[row, rules] = 1
    score = greatest_then_next(table.tocsr(), weight, questions=1)
    assert score[4] > score[0] == score[1] == score[5] > score[2] > score[3] == 0
    assert greatest(table.tocsr(), np.array([0.9, 0.5, 0.4])).tolist() == [0.9, 0.9, 0.5, 0.0, 0.9, 0.9]


def test_ranks_of_one_question_do_not_depend_on_the_others():
    data = dataset(3)
    scorer = RuleScorer(data)
    alone = [scorer.scores(0, np.array([x]))["noisy_or"][0] for x in range(ENTITIES)]
    together = scorer.scores(0, np.arange(ENTITIES))["noisy_or"]
    assert np.allclose(np.stack(alone), together)


def test_other_shapes_are_left_out_and_counted():
    rules = [
        Rule("chain", 0.5, (1, -1, -2), ((2, -1, -2),)),
        Rule("two conditions on one pair", 0.5, (1, -1, -2), ((2, -1, -2), (2, -2, -1))),
        Rule("detour", 0.5, (1, -1, -2), ((2, -1, -2), (2, -2, -3))),
        Rule("constant inside", 0.5, (1, -1, -2), ((2, -1, 3), (2, 3, -2))),
        Rule("four atoms", 0.5, (1, -1, -2), ((2, -1, -3), (2, -3, -4), (2, -4, -5), (2, -5, -2))),
        Rule("reflexive", 0.5, (1, -1, -1), ((2, -1, 4),)),
    ]
    book = RuleScorer(dataset(0, rules=rules)).book
    assert book.left_out == [1, 2, 3, 4]
    assert sorted(book.order.tolist()) == [0, 5]


def test_clusters_join_rules_that_conclude_the_same():
    table = sparse.csr_matrix(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=np.int8))
    similarity = similar_rules(table)
    assert similarity.toarray()[0, 1] == pytest.approx(2 / 3)
    assert similarity.toarray()[1, 2] == pytest.approx(1 / 4)
    assert clusters(similarity, 0.5).tolist() == [0, 0, 1]
    assert len(set(clusters(similarity, 2.0).tolist())) == 3
    assert len(set(clusters(similarity, 0.0).tolist())) == 1


def test_clusters_are_fitted_on_validation_atoms_alone():
    data = dataset(5)
    one, two = RuleScorer(data), RuleScorer(data)
    one.fit_clusters(data)
    two.fit_clusters(replace(data, test=data.test[:0], leaks=data.leaks))
    assert one.thresholds.keys() == {1, 2}
    # Filtering knows the test atoms, as it does in every filtered ranking, but their answers are not ranked.
    assert all(value in (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 2.0) for value in one.thresholds.values())
