"""Mined rules against a slow, independent count; determinism; and no use of validation or test atoms."""

from itertools import pairwise

import numpy as np
import pytest
from tests.systems.reasoning.mining import slow

from edgewise.systems.reasoning.knowledge.dataset import NO_RULES, load_dataset
from edgewise.systems.reasoning.mining.config import MiningConfig
from edgewise.systems.reasoning.mining.miner import mine

ENTITIES, PREDICATES = 6, 2
EVERYTHING = MiningConfig(
    min_support=1, min_confidence=0, max_chains=10**6, max_constants=10**6, branches=10**3, pessimism=5
)


def mined(facts, config=EVERYTHING, **sizes):
    sizes = {"num_predicates": PREDICATES, "num_entities": ENTITIES} | sizes
    return mine(np.array(sorted(facts)), config=config, **sizes).rules


def true_heads(facts, predicate):
    return {atom[1:] for atom in facts if atom[0] == predicate}


@pytest.mark.parametrize("seed", range(3))
def test_support_and_conclusions_are_those_of_a_slow_count(seed):
    facts = slow.random_facts(seed, entities=ENTITIES, predicates=PREDICATES, count=22)
    rules = mined(facts)
    assert {len(rule.body) for rule in rules} == {1, 2, 3}
    for rule in rules[:: max(1, len(rules) // 150)]:
        concluded = slow.conclusions(facts, rule.head, rule.body, ENTITIES)
        assert rule.body_size == len(concluded), rule
        assert rule.support == len(concluded & true_heads(facts, rule.head[0])), rule
        assert rule.weight == pytest.approx(rule.support / (rule.body_size + 5), abs=1e-6)


def all_bodies(length):
    """All chains from −1 to −2, as bodies of atoms."""
    ends = [-1, *(-3 - i for i in range(length - 1)), -2]
    bodies = [()]
    for first, second in pairwise(ends):
        bodies = [
            (*body, atom)
            for body in bodies
            for p in range(1, PREDICATES + 1)
            for atom in ((p, first, second), (p, second, first))
        ]
    return bodies


@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_chain_with_support_is_found_unless_another_concludes_the_same(length):
    facts = slow.random_facts(7, entities=ENTITIES, predicates=PREDICATES, count=14)
    rules = [rule for rule in mined(facts) if rule.head[1:] == (-1, -2)]
    covered = {
        (rule.head[0], frozenset(slow.conclusions(facts, rule.head, rule.body, ENTITIES))) for rule in rules
    }
    for body in all_bodies(length):
        for predicate in (1, 2):
            concluded = slow.conclusions(facts, (predicate, -1, -2), body, ENTITIES)
            if body != ((predicate, -1, -2),) and concluded & true_heads(facts, predicate):
                assert (predicate, frozenset(concluded)) in covered


def test_no_two_chains_of_a_predicate_conclude_the_same():
    facts = slow.random_facts(7, entities=ENTITIES, predicates=PREDICATES, count=14)
    rules = [rule for rule in mined(facts) if rule.head[1:] == (-1, -2)]
    found = [
        (rule.head[0], frozenset(slow.conclusions(facts, rule.head, rule.body, ENTITIES))) for rule in rules
    ]
    assert len(set(found)) == len(found) > 10


def test_the_most_confident_chains_of_each_predicate_are_kept():
    facts = slow.random_facts(7, entities=ENTITIES, predicates=PREDICATES, count=14)
    chains = [rule for rule in mined(facts) if rule.head[1:] == (-1, -2)]
    few = [
        rule
        for rule in mined(facts, EVERYTHING.model_copy(update={"max_chains": 3}))
        if rule.head[1:] == (-1, -2)
    ]
    for predicate in range(1, PREDICATES + 1):
        weights = sorted((rule.weight for rule in chains if rule.head[0] == predicate), reverse=True)
        kept = sorted((rule.weight for rule in few if rule.head[0] == predicate), reverse=True)
        assert kept == weights[:3]
        assert len(weights) > 3


def test_a_rule_with_constants_stays_only_if_no_more_general_one_is_as_confident():
    # Everyone who lives anywhere (2) works for c (1): living in d says nothing more.
    people = range(1, 9)
    facts = {(1, x, 20) for x in people} | {(2, x, 21 + x % 2) for x in people}
    rules = mined(facts, MiningConfig(min_support=2), num_entities=25)
    bodies = [rule.body for rule in rules if rule.head == (1, -1, 20)]
    assert bodies == [((2, -1, -2),)]


def test_the_same_seed_gives_the_same_rules_with_any_number_of_processes():
    facts = slow.random_facts(1, entities=40, predicates=3, count=300)
    config = MiningConfig(pairs=100, branches=2, max_paths=500, min_confidence=0)
    sizes = {"num_predicates": 3, "num_entities": 40}
    one, two = mined(facts, config, **sizes), mined(facts, config.model_copy(update={"jobs": 2}), **sizes)
    assert one == two
    assert mined(facts, config.model_copy(update={"seed": 1}), **sizes) != one


def test_the_time_limit_stops_the_count_and_keeps_what_was_found():
    facts = slow.random_facts(1, entities=40, predicates=3, count=300)
    config = MiningConfig(minutes=1e-9)
    found = mine(np.array(sorted(facts)), num_predicates=3, num_entities=40, config=config)
    assert not found.complete
    assert found.bodies < found.candidates
    assert found.rules


def test_a_sample_of_paths_estimates_the_confidence_of_all():
    facts = slow.random_facts(2, entities=200, predicates=2, count=3000)
    sizes = {"num_predicates": 2, "num_entities": 200}
    config = MiningConfig(length=2, constants=False, min_confidence=0, pessimism=0)
    all_of = {(r.head, r.body): r for r in mined(facts, config, **sizes)}
    some = mined(facts, config.model_copy(update={"max_paths": 5000}), **sizes)
    sampled = [rule for rule in some if rule.body_size < all_of[rule.head, rule.body].body_size]
    assert sampled
    for rule in sampled:
        assert rule.weight == pytest.approx(all_of[rule.head, rule.body].weight, abs=0.02)


def write(folder, train, valid, test):
    for name, triples in (("train", train), ("valid", valid), ("test", test)):
        (folder / f"{name}.txt").write_text("".join(f"e{h}\tp{p}\te{t}\n" for p, h, t in sorted(triples)))
    return folder


def test_validation_and_test_atoms_change_no_rule(tmp_path, edgewise):
    """A planted leak: p1 follows from p2 in validation and test atoms alone."""
    train = slow.random_facts(3, entities=30, predicates=3, count=150)
    train |= {(2, x, x % 30 + 1) for x in range(1, 31)}
    train -= {(1, head, tail) for predicate, head, tail in train if predicate == 2}
    leak = {(1, x, x % 30 + 1) for x in range(1, 31)}
    other = slow.random_facts(4, entities=30, predicates=3, count=30) - train
    texts = []
    for name, held in (("leaking", leak), ("plain", other)):
        folder = tmp_path / name
        folder.mkdir()
        write(folder, train, held, held)
        out = folder / "mined.txt"
        assert (
            edgewise(
                "reasoning", "mine", folder, "--out", out, "--min-support", 1, "--min-confidence", 0
            ).code
            == 0
        )
        texts.append([line for line in out.read_text().splitlines() if not line.startswith("%")])
    assert texts[0] == texts[1]
    data = load_dataset(tmp_path / "leaking", rules=NO_RULES)
    rules = load_dataset(tmp_path / "leaking", rules="mined.txt").rules
    words = data.vocabulary
    head, body = (words.predicate("p1"), -1, -2), ((words.predicate("p2"), -1, -2),)
    assert all((rule.head, rule.body) != (head, body) for rule in rules)


def test_facts_beside_the_training_file_are_mined_too(tmp_path, edgewise):
    train = slow.random_facts(3, entities=20, predicates=2, count=60)
    folders = []
    for name in ("merged", "apart"):
        folder = tmp_path / name
        folder.mkdir()
        folders.append(write(folder, train, {(1, 1, 2)}, {(1, 1, 2)}))
    half = sorted(train)[::2]
    write(folders[1], train - set(half), {(1, 1, 2)}, {(1, 1, 2)})
    (folders[1] / "facts.txt").write_text("".join(f"e{h}\tp{p}\te{t}\n" for p, h, t in half))
    texts = []
    for folder in folders:
        out = folder / "mined.txt"
        assert edgewise("reasoning", "mine", folder, "--out", out).code == 0
        texts.append([line for line in out.read_text().splitlines() if not line.startswith("%")])
    assert texts[0] == texts[1]
