"""Proofs of all entities, and their hybrid with rules and embeddings, against slow and separate searches."""

import math

import numpy as np
import pytest
import torch
from tests.systems.reasoning.mining import slow

from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation import proof_scores
from edgewise.systems.reasoning.evaluation.all_entities import FEATURES, rank_all_entities
from edgewise.systems.reasoning.evaluation.candidates import Candidates
from edgewise.systems.reasoning.evaluation.entity_proofs import EntityProofs
from edgewise.systems.reasoning.evaluation.proof_scores import beam_search_proofs, policy_steps
from edgewise.systems.reasoning.evaluation.rule_ranking import RuleScorer
from edgewise.systems.reasoning.models.build import make_prover
from edgewise.systems.reasoning.models.config import ProofConfig

ENTITIES, PREDICATES = 8, 2
RULES = (
    "a:0.5:q(X,Y) -> p(X,Y)\n"
    "b:0.8:q(X,Z), p(Z,Y) -> p(X,Y)\n"
    "c:0.3:p(Y,X) -> q(X,Y)\n"
    "d:0.6:p(X,Z), q(Y,Z) -> q(X,Y)\n"
    "e:0.4:p(X,'e3') -> q(X,'e5')\n"
)


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    train = sorted(slow.random_facts(1, entities=ENTITIES, predicates=PREDICATES, count=22))
    other = slow.random_facts(2, entities=ENTITIES, predicates=PREDICATES, count=24)
    rest = sorted(other - set(train))
    parts = {"train": train, "valid": rest[::3], "test": [atom for i, atom in enumerate(rest) if i % 3]}
    for name, atoms in parts.items():
        lines = [f"e{head}\t{'pq'[predicate - 1]}\te{tail}\n" for predicate, head, tail in atoms]
        (folder / f"{name}.txt").write_text("".join(lines))
    (folder / "rules.txt").write_text(RULES)
    config = ReasoningConfig(data=str(folder), view="state", max_steps=2, max_successors=60)
    return ReasoningEnv(config, num_envs=1, seed=0)


@pytest.fixture(scope="module")
def steps(env):
    torch.manual_seed(3)
    return policy_steps(env, make_prover(env, ProofConfig(hidden=8, rounds=1, policy_gain=5.0)).actor)


@pytest.fixture(scope="module")
def embedding():
    torch.manual_seed(4)
    return KnowledgeEmbedding(
        EmbeddingConfig(dim=4), num_entities=ENTITIES, num_predicates=PREDICATES
    ).requires_grad_(False)


@pytest.fixture(scope="module")
def concluded(env):
    """The atoms that a rule concludes, by a slow reading of the rules."""
    data = env.dataset
    facts = {tuple(row) for row in data.train.tolist()}
    return {
        (rule.head[0], *pair)
        for rule in data.rules
        for pair in slow.conclusions(facts, rule.head, rule.body, ENTITIES)
    }


def prover(env, steps, beam):
    return EntityProofs(env, steps, RuleScorer(env.dataset).book, beam=beam)


def score_of(env, steps, atom, beam):
    """The log-probability of one atom, searched alone."""
    alone = Candidates(torch.tensor([[atom]]), torch.ones(1, 1, dtype=torch.bool), *torch.zeros(2, 1).long())
    return float(beam_search_proofs(env, steps, alone, beam=beam, depth=2).log_probability)


def assert_close(one, other):
    """Equal but for the rounding of a policy in single precision, which depends on the batch."""
    torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


SEARCHED: dict[tuple, dict[int, float]] = {}


def slow_scores(env, steps, concluded, question, side, beam):
    """The log-probabilities of all entities as answers of a question (predicate, given), one at a time."""
    if (question, side, beam) not in SEARCHED:
        SEARCHED[question, side, beam] = _slow_scores(env, steps, concluded, question, side, beam)
    return SEARCHED[question, side, beam]


def _slow_scores(env, steps, concluded, question, side, beam):
    predicate, given = question
    found = {}
    for entity in range(1, ENTITIES + 1):
        atom = (predicate, given, entity) if side == "tail" else (predicate, entity, given)
        found[entity] = score_of(env, steps, atom, beam) if atom in concluded else -math.inf
    return found


@pytest.mark.parametrize("beam", [1, 50])
def test_what_rules_conclude_is_searched_alone_and_nothing_else_is(env, steps, concluded, beam):
    entities = prover(env, steps, beam)
    given = np.array([6, 0, 3, 5])
    for relation in range(2 * PREDICATES):
        side = "tail" if relation < PREDICATES else "head"
        table = entities(relation, given)
        assert table.shape == (len(given), ENTITIES)
        for row, x in zip(table, given, strict=True):
            question = (relation % PREDICATES + 1, int(x) + 1)
            expected = slow_scores(env, steps, concluded, question, side, beam)
            assert_close(row, torch.tensor(list(expected.values()), dtype=torch.float64))
    asked = [atom for atom in concluded for entity in atom[1:] if entity - 1 in given]
    assert entities.searched == len(asked) > 20
    assert entities.expanded > entities.searched


def test_a_wide_beam_proves_all_that_rules_conclude(env, steps, concluded):
    table = prover(env, steps, 500)(0, np.arange(ENTITIES))
    proved = {(1, head + 1, tail + 1) for head, tail in table.isfinite().nonzero().tolist()}
    assert proved == {atom for atom in concluded if atom[0] == 1}


def test_batches_change_nothing(env, steps, monkeypatch):
    expected = prover(env, steps, 4)(1, np.arange(ENTITIES))
    monkeypatch.setattr(proof_scores, "GOALS_AT_ONCE", 12)
    assert_close(prover(env, steps, 4)(1, np.arange(ENTITIES)), expected)


def slow_ranks(env, score):
    """Filtered ranks of the test atoms, heads first, by a function from questions to scores."""
    known, found = {tuple(row) for row in env.dataset.known().tolist()}, []
    for side in ("head", "tail"):
        for predicate, head, tail in env.dataset.test.tolist():
            given, true = (head, tail) if side == "tail" else (tail, head)
            answers = {
                entity
                for entity in range(1, ENTITIES + 1)
                if ((predicate, given, entity) if side == "tail" else (predicate, entity, given)) in known
            }
            scores = score((predicate, given), side)
            found.append(slow.rank(scores, true, answers - {true}, ENTITIES, None))
    return found


def ranked(env, embedding, **provers):
    data = env.dataset
    return rank_all_entities(
        data, data.test, scorer=RuleScorer(data), embedding=embedding, provers=provers, methods=("greatest",)
    )


def listed(ranks):
    return torch.cat([ranks.head, ranks.tail]).tolist()


def test_ranks_by_proofs_and_by_the_hybrid_are_those_of_a_slow_ranking(env, steps, embedding, concluded):
    found = ranked(env, embedding, rl=prover(env, steps, 2))
    assert list(found.ranks) == ["greatest", "kge", "rl", "hybrid", "hybrid_rl"]
    by_proofs = slow_ranks(env, lambda *asked: slow_scores(env, steps, concluded, *asked, 2))
    assert listed(found.ranks["rl"]) == by_proofs

    facts = {tuple(row) for row in env.dataset.train.tolist()}
    rules = env.dataset.rules
    pairs = [slow.conclusions(facts, rule.head, rule.body, ENTITIES) for rule in rules]
    for name in ("hybrid", "hybrid_rl"):
        fusion = found.fusions[name]
        own = dict(zip(fusion.names, fusion.weights, strict=True))
        weights = [own.get(feature, 0.0) for feature in (*FEATURES, "proved by rl", "log probability by rl")]

        def hybrid(question, side, weights=weights):
            proofs = slow_scores(env, steps, concluded, question, side, 2)
            lists = slow.lists_of_weights(pairs, rules, question, side)
            predicate, given = (torch.tensor([value]) for value in question)
            raw = (
                embedding.score_tails(given, predicate)
                if side == "tail"
                else embedding.score_heads(predicate, given)
            )
            sure = raw.double().log_softmax(-1)[0].tolist()
            scores = {}
            for entity in range(1, ENTITIES + 1):
                own = [weight for weight, _ in lists.get(entity, [])]
                proved = proofs[entity] > -math.inf
                parts = (
                    sure[entity - 1],
                    float(bool(own)),
                    max(own, default=0.0),
                    -sum(math.log(1 - weight) for weight in own),
                    float(proved),
                    proofs[entity] if proved else 0.0,
                )
                scores[entity] = round(sum(a * b for a, b in zip(weights, parts, strict=True)), 9)
            return scores

        assert listed(found.ranks[name]) == pytest.approx(slow_ranks(env, hybrid))


def test_weights_come_from_the_validation_atoms_and_proofs_leave_the_other_columns_alone(
    env, steps, embedding
):
    both = ranked(env, embedding, rl=prover(env, steps, 2), chance=prover(env, policy_steps(env, None), 2))
    plain = ranked(env, embedding)
    assert plain.fusions["hybrid"] == both.fusions["hybrid"]
    for name in plain.ranks:
        assert listed(plain.ranks[name]) == listed(both.ranks[name])
    alone = ranked(env, embedding, chance=prover(env, policy_steps(env, None), 2))
    assert alone.fusions["hybrid_chance"] == both.fusions["hybrid_chance"]
    assert listed(alone.ranks["hybrid_chance"]) == listed(both.ranks["hybrid_chance"])
    assert both.fusions["hybrid_chance"].weights != both.fusions["hybrid_rl"].weights
    data = env.dataset
    few = rank_all_entities(
        data,
        data.test[:1],
        scorer=RuleScorer(data),
        embedding=embedding,
        provers={"rl": prover(env, steps, 2)},
        methods=(),
    )
    assert few.fusions["hybrid_rl"] == both.fusions["hybrid_rl"]
    assert few.fusions["hybrid_rl"].fitted_on == 2 * len(data.valid) < 2 * len(data.test)
    kept = [name for name, weight in zip(FEATURES, few.fusions["hybrid"].weights, strict=True) if weight]
    assert few.fusions["hybrid_rl"].names == (*kept, "proved by rl", "log probability by rl")
    assert all(few.fusions["hybrid_rl"].weights)


def test_proofs_alone_need_no_embeddings(env, steps):
    found = ranked(env, None, rl=prover(env, steps, 2))
    assert list(found.ranks) == ["greatest", "rl"]
    assert not found.fusions
