"""The fact index against lists: membership, ranges of every pattern, and the places of single facts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.systems.reasoning.knowledge.index import FactIndex

PREDICATES, ENTITIES = 3, 5
predicates, entities = st.integers(1, PREDICATES), st.integers(1, ENTITIES)
facts = st.lists(st.tuples(predicates, entities, entities), max_size=20)
terms = st.integers(1, ENTITIES + 2)
patterns = st.tuples(st.integers(1, PREDICATES + 2), terms, terms)


def index_of(rows):
    tensor = torch.tensor(rows, dtype=torch.int64).reshape(-1, 3)
    return FactIndex(tensor, num_predicates=PREDICATES, num_entities=ENTITIES)


def unifies(pattern, fact):
    free = [term > ENTITIES for term in pattern[1:]]
    fits = all(open_ or wanted == got for open_, wanted, got in zip(free, pattern[1:], fact[1:], strict=True))
    return pattern[0] == fact[0] and fits and not (pattern[1] == pattern[2] and fact[1] != fact[2])


@given(facts, st.lists(st.tuples(*[st.integers(0, 8)] * 3), min_size=1))
def test_membership_is_that_of_a_set(rows, asked):
    atoms = torch.tensor(asked)
    assert index_of(rows).contains(atoms).tolist() == [atom in rows for atom in asked]
    barred = index_of(rows).key(atoms)
    assert not index_of(rows).contains(atoms, without=barred).any()


@given(facts, st.lists(patterns, min_size=1, max_size=5))
def test_matches_are_the_facts_that_unify(rows, asked):
    index = index_of(rows)
    start, count = index.matches(torch.tensor(asked))
    for pattern, first, number in zip(asked, start.tolist(), count.tolist(), strict=True):
        found = index.fact[first : first + number].tolist()
        assert len(found) == len(set(found))
        assert {rows[row] for row in found} == {fact for fact in rows if unifies(pattern, fact)}
        assert [tuple(pair) for pair in index.arguments[first : first + number].tolist()] == [
            rows[row][1:] for row in found
        ]


@given(facts.filter(len), st.data())
def test_the_place_of_a_fact_is_in_the_range_of_what_it_matches(rows, data):
    index, fact = index_of(rows), data.draw(st.sampled_from(rows))
    pattern = list(fact)
    for side in (1, 2):
        if data.draw(st.booleans()):
            pattern[side] = ENTITIES + side
    atom = torch.tensor([pattern])
    start, count = index.matches(atom)
    place = index.place(torch.tensor([fact]), index.section(atom))
    assert start <= place < start + count
    assert rows[int(index.fact[place])] == fact
    absent = index.place(torch.tensor([[PREDICATES, 0, 0]]), index.section(atom))
    assert absent == index.last


def test_repeated_facts_count_once():
    index = index_of([(1, 2, 3), (1, 2, 3), (2, 1, 1)])
    assert len(index) == 2


@pytest.mark.parametrize("row", [(0, 1, 1), (PREDICATES + 1, 1, 1), (1, ENTITIES + 1, 1), (1, 1, 0)])
def test_ids_outside_of_the_vocabulary_are_refused(row):
    with pytest.raises(ValueError, match="fact 1 is"):
        index_of([(1, 1, 1), row])


def test_too_many_names_are_refused():
    with pytest.raises(ValueError, match="63 bits"):
        FactIndex(torch.ones(1, 3, dtype=torch.int64), num_predicates=1000, num_entities=2**30)
