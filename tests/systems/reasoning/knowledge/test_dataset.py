"""Names become ids once; files, rules, domains and leaks are read for what they say."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from edgewise.config.errors import DataError
from edgewise.systems.reasoning.knowledge.dataset import NO_RULES, load_dataset, shipped_datasets
from edgewise.systems.reasoning.knowledge.files import read_triples
from edgewise.systems.reasoning.knowledge.known import KnownAnswers
from edgewise.systems.reasoning.knowledge.leaks import among, find_leaks
from edgewise.systems.reasoning.knowledge.vocabulary import SPECIALS, Vocabulary

SHARED = Path(__file__).resolve().parents[5] / "shared" / "data"

SIZES = {
    "countries_s1_clean": (271, 4, 1110, 24, 24, 1),
    "countries_s2_clean": (271, 4, 1062, 24, 24, 2),
    "countries_s3_clean": (271, 4, 984, 24, 24, 3),
    "family": (2968, 12, 19845, 2799, 5626, 143),
    "nations": (14, 55, 1592, 199, 201, 2107),
    "umls": (135, 46, 5216, 652, 661, 2251),
    "wn18rr": (40943, 11, 86835, 3034, 3134, 42),
}


def write(folder, **files):
    """A dataset of three splits, any of them replaced; other files may be added."""
    splits = {"train": "a\tr\tb\nb\ts\tc\n", "valid": "a\ts\tc\n", "test": "c\tr\ta\n", **files}
    for name, content in splits.items():
        (folder / f"{name}.txt").write_text(content)
    return folder


@pytest.mark.parametrize("predicates", [1, 4, 48])
def test_tables_sized_by_the_vocabulary_hold_every_id(predicates):
    words = Vocabulary.of(["x", "y"], [f"p{i}" for i in range(predicates)])
    assert words.num_predicate_ids == 2 * predicates + 4
    table = nn.Embedding(words.num_predicate_ids + 1, 2, padding_idx=0)
    ids = [
        *(words.predicate(name) for name in words.predicates),
        words.true,
        words.false,
        words.end_false,
        words.end_true,
        *(words.predicate(name) + words.assumed_offset for name in words.predicates),
    ]
    assert sorted(ids) == list(range(1, words.num_predicate_ids + 1))
    assert table(torch.tensor(ids)).shape == (2 * predicates + 4, 2)
    too_small = nn.Embedding(predicates + 1, 2)
    with pytest.raises(IndexError):
        too_small(torch.tensor(ids))


def test_every_id_has_the_name_it_was_given():
    words = Vocabulary.of(["oslo", "norway", "oslo"], ["near", "in"])
    assert words.entities == ("norway", "oslo")
    assert words.predicate_names == ("", "in", "near", *SPECIALS, "in_kge", "near_kge")
    assert words.text((words.predicate("in"), 2, 1)) == "in(oslo,norway)"
    assert words.text((words.predicate("in") + words.assumed_offset, 2, 3)) == "in_kge(oslo,X1)"
    assert words.text((words.true, 0, 0)) == "True"
    assert words.atom(" near( oslo , norway ). ") == (2, 2, 1)
    assert words.num_term_ids(12) == 14


@given(st.lists(st.text("abcxyz_", min_size=1, max_size=4), min_size=1, unique=True))
def test_ids_are_a_bijection_that_the_order_of_names_does_not_change(names):
    words, again = Vocabulary.of(names, ["r"]), Vocabulary.of(reversed(names), ["r"])
    assert words == again
    assert words.digest == again.digest
    assert [words.entity(words.term_name(i)) for i in range(1, len(names) + 1)] == list(
        range(1, len(names) + 1)
    )


def test_the_digest_tells_entities_from_predicates_and_order():
    digests = {
        Vocabulary(("a", "b"), ("r",)).digest,
        Vocabulary(("b", "a"), ("r",)).digest,
        Vocabulary(("a",), ("b", "r")).digest,
        Vocabulary(("a", "b"), ("s",)).digest,
    }
    assert len(digests) == 4


@pytest.mark.parametrize(("name", "hint"), [("osl", "oslo"), ("zzz", None)])
def test_an_unknown_name_is_refused_with_a_near_one(name, hint):
    with pytest.raises(DataError, match=f"no entity is called {name}") as caught:
        Vocabulary.of(["oslo", "norway"], ["in"]).entity(name)
    assert caught.value.hint == (f"did you mean {hint}?" if hint else None)


@pytest.mark.parametrize(
    "content",
    [
        "a\tr\tb\nb\ts\tc\n",
        "a\tr\tb\r\nb\ts\tc\r\n",
        "a\tr\tb\nb\ts\tc",
        "\ufeffa\tr\tb\n\n b\t s\tc \n",
        "r(a,b).\ns(b,c).\n",
        "r(a,b).\r\ns( b , c )\r\n",
        "% remark\nr(a, b).\n% another\ns(b,c).",
    ],
)
def test_both_ways_to_write_triples_and_both_line_ends_read_alike(tmp_path, content):
    path = tmp_path / "train.txt"
    path.write_bytes(content.encode())
    assert read_triples(path) == [("r", "a", "b"), ("s", "b", "c")]


def test_a_dataset_holds_atoms_as_predicate_head_tail(tmp_path):
    data = load_dataset(write(tmp_path))
    assert data.train.tolist() == [[1, 1, 2], [2, 2, 3]]
    assert data.train.dtype == torch.int64
    assert [data.vocabulary.text(atom) for atom in data.test] == ["r(c,a)"]
    assert data.facts is data.train
    assert data.rules == ()
    assert data.domains == {}


def test_facts_of_their_own_are_what_a_prover_may_use(tmp_path):
    data = load_dataset(write(tmp_path, facts="r(a,c).\nr(d,a).\n"))
    assert [data.vocabulary.text(atom) for atom in data.facts] == ["r(a,c)", "r(d,a)"]
    assert len(data.train) == 2
    assert len(data.known()) == 6


def test_rules_have_negative_variables_by_first_appearance_head_first(tmp_path):
    text = "r1:0.5:r(x,z), s(z,y) -> s(y,x)\nr2:2:r(X,X) -> s(X,X)\nr3:0:r(x,'c'),s(x,y)->r(x,\"b\")\n"
    data = load_dataset(write(tmp_path, rules=text))
    r, s, b, c = 1, 2, 2, 3
    first, second, third = data.rules
    assert (first.identifier, first.weight) == ("r1", 0.5)
    assert (first.head, first.body) == ((s, -1, -2), ((r, -2, -3), (s, -3, -1)))
    assert (second.head, second.body) == ((s, -1, -1), ((r, -1, -1),))
    assert (third.head, third.body) == ((r, -1, b), ((r, -1, c), (s, -1, -2)))
    assert first.text(data.vocabulary) == "r(V2,V3), s(V3,V1) -> s(V1,V2)"


def test_rule_files_are_found_by_name_in_either_place_and_can_be_left_out(tmp_path):
    write(tmp_path)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rules.txt").write_text("a1:1:r(x,y) -> s(x,y)\n")
    (tmp_path / "rules" / "rules_few.txt").write_text("few:1:s(x,y) -> r(x,y)\n")
    assert [rule.identifier for rule in load_dataset(tmp_path).rules] == ["a1"]
    for name in ("rules_few.txt", "rules/rules_few.txt", str(tmp_path / "rules" / "rules_few.txt")):
        assert [rule.identifier for rule in load_dataset(tmp_path, rules=name).rules] == ["few"]
    assert load_dataset(tmp_path, rules=NO_RULES).rules == ()


def test_leaks_are_counted_and_logged(tmp_path, caplog):
    write(
        tmp_path,
        train="a\tr\tb\na\tr\tb\nb\tr\tc\n",
        valid="a\tr\tb\nc\tr\ta\n",
        test="c\tr\ta\nd\tr\ta\nd\tq\te\n",
    )
    with caplog.at_level("WARNING"):
        leaks = load_dataset(tmp_path).leaks
    assert leaks.duplicates == {"train": 1, "valid": 0, "test": 0}
    assert leaks.overlaps == {"train∩valid": 1, "train∩test": 0, "valid∩test": 1}
    assert (leaks.unseen["test"].entities, leaks.unseen["test"].predicates) == (2, 1)
    assert leaks.unseen["test"].atoms == 2
    assert any(leaks.overlaps.values())
    assert "1 atoms are in both train and valid" in caplog.text
    assert "2 atoms of test have one of 2 entities or 1 predicates that training never saw" in caplog.text


@given(st.data())
def test_leaks_equal_those_of_sets(data):
    words = Vocabulary.of("abcd", "rs")
    atom = st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 4))
    splits = {name: data.draw(st.lists(atom, min_size=1, max_size=12)) for name in ("train", "valid", "test")}
    report = find_leaks({name: torch.tensor(rows) for name, rows in splits.items()}, words)
    sets = {name: set(rows) for name, rows in splits.items()}
    assert report.overlaps["train∩test"] == len(sets["train"] & sets["test"])
    assert report.duplicates["valid"] == len(splits["valid"]) - len(sets["valid"])
    seen = {entity for _, *pair in splits["train"] for entity in pair}
    assert report.unseen["test"].entities == len({e for _, *pair in splits["test"] for e in pair} - seen)
    inside = among(torch.tensor(splits["test"]), torch.tensor(splits["train"]), words)
    assert inside.tolist() == [row in sets["train"] for row in splits["test"]]


@given(st.data())
def test_known_answers_equal_a_search(data):
    rows = st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=30
    )
    atoms, asked = (torch.tensor(data.draw(rows)) for _ in range(2))
    tails = KnownAnswers.tails(atoms, num_entities=5).of_questions(asked[:, 0], asked[:, 1])
    heads = KnownAnswers.heads(atoms, num_entities=5).of_questions(asked[:, 0], asked[:, 2])
    for number, (p, h, t) in enumerate(asked.tolist()):
        found = sorted(tails[1][tails[0] == number].tolist())
        assert found == sorted({c for a, b, c in atoms.tolist() if (a, b) == (p, h)})
        found = sorted(heads[1][heads[0] == number].tolist())
        assert found == sorted({b for a, b, c in atoms.tolist() if (a, c) == (p, t)})


@pytest.mark.parametrize("name", shipped_datasets())
def test_shipped_countries_are_whole_and_clean(name):
    data = load_dataset(name)
    assert (data.vocabulary.num_entities, data.vocabulary.num_predicates) == (271, 4)
    assert {key: len(ids) for key, ids in data.domains.items()} == {
        "regions": 5,
        "subregions": 23,
        "countries": 243,
    }
    assert not any(data.leaks.overlaps.values())
    assert len(data.test) == 24
    assert len(data.rules) == int(name[-1])


@pytest.mark.thorough
@pytest.mark.skipif(not SHARED.exists(), reason="the larger datasets are not beside this folder")
@pytest.mark.parametrize("name", SIZES)
def test_public_data_loads_whole(name):
    data = load_dataset(SHARED / name)
    words = data.vocabulary
    found = (words.num_entities, words.num_predicates, *map(len, (data.train, data.valid, data.test)))
    assert (*found, len(data.rules)) == SIZES[name]
    assert not any(data.leaks.overlaps.values())
    assert data.leaks.unseen["test"].atoms == (210 if name == "wn18rr" else 0)
    for split in (data.train, data.valid, data.test):
        assert split.min() >= 1
        assert split[:, 0].max() <= words.num_predicates
        assert split[:, 1:].max() <= words.num_entities
