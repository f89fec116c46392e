"""Exhaustive search against the definition and against figures of whole test sets; proofs that hold up."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.systems.reasoning.engine.bases import WORDS, bases, ground
from tests.systems.reasoning.engine.reference import proof_depth

from edgewise.systems.reasoning.corruption import Corruption
from edgewise.systems.reasoning.engine import expand as expanding
from edgewise.systems.reasoning.engine import oracle
from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.engine.proof import derive, prove
from edgewise.systems.reasoning.knowledge.dataset import Dataset, load_dataset
from edgewise.systems.reasoning.knowledge.leaks import LeakReport

SHARED = Path(__file__).parents[5] / "shared" / "data"


def shared(name, **options):
    if not (SHARED / name).is_dir():
        pytest.skip(f"needs the dataset {name}, which is not part of the repository")
    return load_dataset(SHARED / name, **options)


def depths(found, limit):
    return [int((found.depth == step).sum()) for step in range(1, limit + 1)]


def dataset_of(base):
    facts = torch.tensor(base.facts, dtype=torch.int64).reshape(-1, 3)
    return Dataset(
        "base", WORDS, facts, facts, facts, facts, tuple(base.rules), {}, LeakReport({}, {}, {}, {})
    )


@given(bases, st.lists(ground, min_size=1, max_size=4))
def test_shortest_proofs_are_those_of_the_definition(base, queries):
    found = oracle.search(base.program(16), torch.tensor(queries), depth=2, cap=None)
    facts = list(dict.fromkeys(base.facts))
    wanted = [proof_depth(query, facts, base.rules, limit=2, excluded=query) or 0 for query in queries]
    assert found.depth.tolist() == wanted
    assert not found.truncated.any()


@given(bases, ground, st.integers(1, 4))
def test_a_cap_loses_proofs_only_where_it_says_so(base, query, cap):
    asked = torch.tensor([query])
    full = oracle.search(base.program(16), asked, depth=2, cap=None)
    capped = oracle.search(base.program(16), asked, depth=2, cap=cap)
    assert full.proved >= capped.proved
    assert capped.truncated | (capped.depth == full.depth) | (capped.depth > full.depth)


def test_a_frontier_without_room_is_flagged():
    data = load_dataset("countries_s3")
    found = oracle.search(Program.of(data, max_atoms=6), data.test, depth=4, frontier=30)
    assert 0 < int(found.proved.sum()) < 24
    assert (found.proved | found.truncated).all()


def test_countries_are_proved_as_deep_as_they_were_made():
    data = load_dataset("countries_s3")
    found = oracle.search(Program.of(data, max_atoms=6), data.test, depth=4)
    assert depths(found, 4) == [0, 0, 16, 8]
    for name in ("countries_s1", "countries_s2"):
        data = load_dataset(name)
        assert oracle.search(Program.of(data, max_atoms=6), data.test, depth=2).proved.all()


@pytest.mark.thorough
def test_family_in_two_steps():
    data = shared("family")
    program = Program.of(data, max_atoms=6)
    assert depths(oracle.search(program, data.test, depth=2), 2) == [318, 5004]
    generator = torch.Generator().manual_seed(0)
    false, made = Corruption.of(data).draw(data.test, side="both", generator=generator)
    assert made.all()
    assert oracle.search(program, false, depth=2).proved.float().mean() <= 0.001


@pytest.mark.thorough
def test_wordnet_in_two_steps():
    data = shared("wn18rr", rules="rules_custom_recall_sorted.txt")
    found = oracle.search(Program.of(data, max_atoms=6), data.test, depth=2, cap=2000)
    assert round(float(found.proved.float().mean()), 3) == 0.383


@given(bases, ground)
def test_proofs_are_as_short_as_the_search_says_and_rest_on_facts(base, query):
    data = dataset_of(base)
    found = prove(data, query, depth=2, max_atoms=16)
    depth = int(oracle.search(base.program(16), torch.tensor([query]), depth=2).depth)
    assert (0 if found is None else len(found.origins)) == depth
    if found is not None:
        assert found.complete
        _check(found.tree, base, query)


def _check(node, base, query):
    """Every leaf is a fact other than the query; every inner node follows from its children by its rule."""
    if node.by == "fact":
        assert node.atom in base.facts
        assert node.atom != query
        return
    assert node.by == "rule"
    rule = base.rules[node.rule]
    names = {}
    for (_, *terms), atom in zip(
        (rule.head, *rule.body), (node.atom, *(child.atom for child in node.children)), strict=True
    ):
        for term, value in zip(terms, atom[1:], strict=True):
            assert value == (term if term > 0 else names.setdefault(term, value))
    for child in node.children:
        _check(child, base, query)


def test_a_clause_that_does_not_fit_is_refused():
    data = load_dataset("countries_s3")
    query = data.vocabulary.atom("locatedInCR(zambia,africa)")
    with pytest.raises(ValueError, match="does not fit"):
        derive(data, query, [-1])


def test_a_search_counts_its_goals_wherever_it_runs(monkeypatch):
    data = load_dataset("countries_s2")
    program = Program.of(data, max_atoms=4)
    expected = oracle.search(program, data.test, depth=2)
    monkeypatch.setattr(expanding, "can_count", lambda _: False)
    found = oracle.search(program, data.test, depth=2)
    assert torch.equal(found.depth, expected.depth)
    assert torch.equal(found.nodes, expected.nodes)
    assert prove(data, data.test[0].tolist(), depth=2) is not None
