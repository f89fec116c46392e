"""Rule files of edgewise, AnyBURL, AMIE and Prolog are read as written, and wrong lines are refused."""

import pytest

from edgewise.config.errors import DataError
from edgewise.systems.reasoning.knowledge.rule_files import FORMATS, read_rules, write_rules
from edgewise.systems.reasoning.knowledge.rules import Rule
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

WORDS = Vocabulary.of(
    ["oslo", "/m/01", "x->y", "O'Hare (airport), Chicago", "7"], ["in", "/film/genre", "near"]
)
PLAIN = Vocabulary.of(["oslo", "/m/01", "7"], ["in", "/film/genre", "near"])
IN, GENRE, NEAR = WORDS.predicate("in"), WORDS.predicate("/film/genre"), WORDS.predicate("near")
OSLO, SEVEN = PLAIN.entity("oslo"), PLAIN.entity("7")


def written(tmp_path, text):
    path = tmp_path / "rules.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "a:0.9:in(x,z), near(z,y) -> in(x,y)  % support 9 of 10",
        "10\t9\t0.9\tin(X,Y) <= in(X,A), near(A,Y)",
        "?a  in  ?c  ?c  near  ?b   => ?a  in  ?b\t0.1\t0.9\t0.95\t9\t10\t9\t?a",
    ],
)
def test_a_chain_is_the_same_rule_in_every_format_with_counts(tmp_path, text):
    (rule,) = read_rules(written(tmp_path, text + "\n"), PLAIN)
    assert (rule.weight, rule.head, rule.support, rule.body_size) == (0.9, (IN, -1, -2), 9, 10)
    assert rule.body == ((IN, -1, -3), (NEAR, -3, -2))


def test_prolog_clauses_with_and_without_weights(tmp_path):
    text = (
        "% a comment\n0.9::in(X,Y) :- in(X,Z), near(Z,Y).\nin(X,oslo) :- '/film/genre'(X,_), near(X,'7').\n"
    )
    one, two = read_rules(written(tmp_path, text), PLAIN)
    assert (one.weight, one.head, one.body) == (0.9, (IN, -1, -2), ((IN, -1, -3), (NEAR, -3, -2)))
    assert (two.weight, two.head) == (1.0, (IN, -1, OSLO))
    assert two.body == ((GENRE, -1, -2), (NEAR, -1, SEVEN))


def test_constants_of_anyburl_and_a_rule_without_a_body(tmp_path, caplog):
    text = "20\t9\t0.36\tin(X,/m/01) <= /film/genre(X,oslo)\n20\t9\t0.2\tin(X,oslo) <= \n"
    (rule,) = read_rules(written(tmp_path, text), PLAIN)
    assert rule.head == (IN, -1, PLAIN.entity("/m/01"))
    assert rule.body == ((GENRE, -1, OSLO),)
    assert "1 rules without a body were left out" in caplog.text


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_written_is_read_again(tmp_path, kind):
    rules = (
        Rule("r1", 0.75, (IN, -1, -2), ((GENRE, -3, -1), (NEAR, -3, -4), (IN, -4, -2)), 3, 4),
        Rule("r2", 0.5, (IN, -1, OSLO), ((NEAR, SEVEN, -1),), 1, 2),
        Rule("r3", 0.25, (IN, -1, -1), ((NEAR, -1, -2),), 1, 4),
    )
    path = tmp_path / "rules.txt"
    write_rules(path, rules, PLAIN, format=kind, comments=["two rules"])
    again = read_rules(path, PLAIN)
    assert [(rule.weight, rule.head, rule.body) for rule in again] == [
        (rule.weight, rule.head, rule.body) for rule in rules
    ]
    if kind != "prolog":
        assert [(rule.support, rule.body_size) for rule in again] == [(3, 4), (1, 2), (1, 4)]


@pytest.mark.parametrize("kind", ["edgewise", "prolog"])
def test_names_with_signs_of_the_format_are_quoted(tmp_path, kind):
    rules = tuple(Rule(f"r{number}", 0.5, (IN, -1, number), ((NEAR, number, -1),)) for number in range(1, 6))
    path = tmp_path / "rules.txt"
    write_rules(path, rules, WORDS, format=kind)
    assert [(r.head, r.body) for r in read_rules(path, WORDS)] == [(r.head, r.body) for r in rules]


def test_a_variable_never_has_the_name_of_an_entity(tmp_path):
    words = Vocabulary.of(["X", "X_", "Y"], ["in"])
    rules = (Rule("r", 0.5, (1, -1, -2), ((1, -2, -1),)),)
    write_rules(tmp_path / "rules.txt", rules, words)
    assert read_rules(tmp_path / "rules.txt", words)[0].body == ((1, -2, -1),)
    with pytest.raises(DataError, match="AnyBURL reads the entity X as a variable"):
        write_rules(tmp_path / "rules.txt", rules, words, format="anyburl")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("10\t9\t0.9\tin(X,Y) <= in(X,A), far(A,Y)", "no triple of the data has the predicate far"),
        ("10\tmany\t0.9\tin(X,Y) <= in(X,A), in(A,Y)", "'many' is no number of atoms"),
        ("10\t9\t0.9\tin(X,Y) <= in(X,A) in(A,Y)", "no triple of the data has the entity"),
        ("10\t9\t0.9\tin(X,Y) <= in(X,mars), in(A,Y)", "no triple of the data has the entity mars"),
        ("?a  in  ?c  near  ?b   => ?a  in  ?b\t1\t1", "no rule of AMIE"),
        ("?a  in  ?c   => ?a  in  ?b\t1\t1", "the variable ?b of the head does not occur"),
        ("in(X,Y) :- .", "1 heads and 0 conditions"),
        ("in(X,Y) :- near(X,Y", "is no atom"),
        ("x::in(X,Y) :- near(X,Y).", "the weight 'x' is no number"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(tmp_path, text, complaint):
    with pytest.raises(DataError, match=r"rules.txt:1: ") as caught:
        read_rules(written(tmp_path, text + "\n"), PLAIN)
    assert complaint in str(caught.value)
