"""Bad data of every kind is refused in one message with its file, its line and a remedy, and exit code 2."""

import json

import pytest

from edgewise.cli.main import main
from edgewise.config.errors import DataError
from edgewise.systems.reasoning.knowledge.dataset import load_dataset
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

GOOD = {"train.txt": b"a\tr\tb\nb\ts\tc\n", "valid.txt": b"a\ts\tc\n", "test.txt": b"c\tr\ta\n"}
RULE = "good:1:r(x,y) -> s(x,y)\n"

CASES = {
    "missing train": ({"train.txt": None}, "train.txt does not exist"),
    "missing valid": ({"valid.txt": None}, "valid.txt does not exist"),
    "missing test": ({"test.txt": None}, "test.txt does not exist"),
    "empty split": ({"valid.txt": b""}, "valid.txt holds no triple"),
    "blank split": ({"test.txt": b"\n  \r\n\n"}, "test.txt holds no triple"),
    "two columns": ({"train.txt": b"a\tr\tb\nb\ts\n"}, "train.txt:2: 2 columns where 3 were expected"),
    "four columns": ({"test.txt": b"a\tr\tb\tc\n"}, "test.txt:1: 4 columns where 3 were expected"),
    "one column later": ({"train.txt": b"a\tr\tb\n\nword\n"}, "train.txt:3: 1 column where 3 were expected"),
    "empty name": ({"train.txt": b"a\tr\tb\nb\t \tc\n"}, "train.txt:2: an empty name"),
    "not UTF-8": ({"train.txt": b"a\tr\tb\nb\t\xff\tc\n"}, "train.txt:2: byte 0xff is not UTF-8"),
    "zero byte": ({"valid.txt": b"a\ts\tc\na\ts\t\0\n"}, "valid.txt:2: a zero byte"),
    "no fact": ({"train.txt": b"r(a,b).\nhello\n"}, "train.txt:2: 'hello' is no fact"),
    "unclosed fact": ({"train.txt": b"r(a,b.\n"}, "train.txt:1: 'r(a,b.' is no fact"),
    "three arguments": (
        {"train.txt": b"r(a,b,c).\n"},
        "train.txt:1: r has 3 arguments where 2 were expected",
    ),
    "one argument": ({"train.txt": b"r(a,b).\nr(a).\n"}, "train.txt:2: r has 1 arguments where 2"),
    "mixed ways": ({"train.txt": b"r(a,b).\na\tr\tb\n"}, "train.txt:2: 'a\\tr\\tb' is no fact"),
    "reserved name": ({"train.txt": b"a\tTrue\tb\nb\ts\tc\n"}, "the predicate name True is reserved"),
    "reserved ending": ({"train.txt": b"a\tr_kge\tb\nb\ts\tc\n"}, "the predicate name r_kge is reserved"),
    "bad facts": ({"facts.txt": b"a\tr\n"}, "facts.txt:1: 2 columns where 3 were expected"),
    "no rule": ({"rules.txt": b"\n"}, "rules.txt:1: no rule in the whole file"),
    "rules not UTF-8": (
        {"rules.txt": b"good:1:r(x,y) -> s(x,\xe9)\n"},
        "rules.txt:1: byte 0xe9 is not UTF-8",
    ),
    "one colon": ("r1:r(x,y) -> s(x,y)", "rules.txt:2: 1 colons where two were expected"),
    "no id": (":1:r(x,y) -> s(x,y)", "rules.txt:2: a rule without an id"),
    "bad weight": ("r1:heavy:r(x,y) -> s(x,y)", "rules.txt:2: the weight 'heavy' is no number"),
    "comma in a weight": ("r1:0,93:r(x,y) -> s(x,y)", "rules.txt:2: the weight '0,93' is no number"),
    "weight not finite": ("r1:nan:r(x,y) -> s(x,y)", "rules.txt:2: the weight nan is not finite"),
    "weight below zero": (
        "r1:-1:r(x,y) -> s(x,y)",
        "rules.txt:2: the weight -1 is not finite and at least 0",
    ),
    "no arrow": ("r1:1:r(x,y), s(x,y)", "rules.txt:2: 0 arrows where one was expected"),
    "wrong arrow": ("r1:1:s(x,y) <- r(x,y)", "rules.txt:2: 0 arrows where one was expected"),
    "two arrows": ("r1:1:r(x,y) -> s(x,y) -> r(x,y)", "rules.txt:2: 2 arrows where one was expected"),
    "no body": ("r1:1: -> s(x,y)", "rules.txt:2: nothing before the arrow"),
    "no head": ("r1:1:r(x,y) ->", "rules.txt:2: 0 atoms after the arrow"),
    "two heads": ("r1:1:r(x,y) -> s(x,y), r(y,x)", "rules.txt:2: 2 atoms after the arrow"),
    "unbound head": ("r1:1:r(x,z) -> s(x,y)", "rules.txt:2: the variable y of the head does not occur"),
    "unknown predicate": ("r1:1:q(x,y) -> s(x,y)", "rules.txt:2: no triple of the data has the predicate q"),
    "unknown head": ("r1:1:r(x,y) -> q(x,y)", "rules.txt:2: no triple of the data has the predicate q"),
    "rule of arity 3": ("r1:1:r(x,y,z) -> s(x,y)", "rules.txt:2: r has 3 arguments where 2"),
    "rule of arity 1": ("r1:1:r(x) -> s(x,x)", "rules.txt:2: r has 1 arguments where 2"),
    "empty term": ("r1:1:r(x,) -> s(x,x)", "rules.txt:2: '' is no variable"),
    "no comma": ("r1:1:r(x,y) s(x,y) -> s(x,y)", "after an atom"),
    "comma too many": ("r1:1:r(x,y), -> s(x,y)", "rules.txt:2: ',' after an atom"),
    "broken atom": ("r1:1:r(x,y -> s(x,y)", "rules.txt:2: 'r(x,y' is no atom"),
    "duplicate id": ("good:1:s(x,y) -> r(x,y)", "rules.txt:2: the rule id good was used on line 1"),
    "unknown constant": (
        "r1:1:r(x,'zoo') -> s(x,x)",
        "rules.txt:2: no triple of the data has the entity zoo",
    ),
    "entity or variable": ("r1:1:r(x,a) -> s(x,x)", "rules.txt:2: a could be a variable or the entity"),
    "unknown domain entity": (
        {"domain2constants.txt": b"d a b\ne zoo\n"},
        "domain2constants.txt:2: zoo of e",
    ),
    "domain twice": ({"domain2constants.txt": b"d a\nd b\n"}, "constants.txt:2: the domain d is given twice"),
    "empty domain": ({"domain2constants.txt": b"d\n"}, "constants.txt:1: the domain d has no entity"),
    "two domains": ({"domain2constants.txt": b"d a b\ne b\n"}, "constants.txt:2: b is in d and again in e"),
}


def dataset(folder, change):
    """The good files with a change: other contents by name, or a line to follow a good rule."""
    changes = {"rules.txt": f"{RULE}{change}\n".encode()} if isinstance(change, str) else change
    for name, content in {**GOOD, **changes}.items():
        if content is not None:
            (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(("change", "message"), CASES.values(), ids=CASES)
def test_a_mistake_is_named_with_its_place_and_a_remedy(tmp_path, change, message):
    with pytest.raises(DataError) as caught:
        load_dataset(dataset(tmp_path, change))
    assert message in caught.value.message
    assert str(tmp_path) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_the_files_that_the_mistakes_were_made_in_are_good(tmp_path):
    assert len(load_dataset(dataset(tmp_path, {"rules.txt": RULE.encode()})).rules) == 1


def test_a_folder_that_is_not_there_is_refused_with_the_shipped_names(tmp_path):
    with pytest.raises(DataError, match="there is no folder") as caught:
        load_dataset(tmp_path / "nothing")
    assert "countries_s3" in caught.value.hint


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "train.txt").write_text("a\tr\tb\n")
    with pytest.raises(DataError, match=r"train\.txt is a file"):
        load_dataset(tmp_path / "train.txt")


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    dataset(tmp_path, {"test.txt": None})
    (tmp_path / "test.txt").mkdir()
    with pytest.raises(DataError, match="Is a directory"):
        load_dataset(tmp_path)


def test_a_rule_file_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    dataset(tmp_path, {"rules_few.txt": RULE.encode()})
    with pytest.raises(DataError, match="has no rule file other") as caught:
        load_dataset(tmp_path, rules="other")
    assert caught.value.hint == "there are rules_few.txt"


def test_a_name_given_twice_makes_no_vocabulary():
    with pytest.raises(DataError, match="twice"):
        Vocabulary(("a", "a"), ("r",))


@pytest.mark.parametrize("case", ["missing train", "two columns", "not UTF-8", "empty split", "mixed ways"])
def test_the_command_line_ends_with_code_2_and_writes_nothing(tmp_path, capsys, case):
    folder, out = tmp_path / "data", tmp_path / "out"
    folder.mkdir()
    change, message = CASES[case]
    code = main(["reasoning", "kge", str(dataset(folder, change)), "--out", str(out), "--json"])
    shown = capsys.readouterr()
    assert code == 2
    assert message in json.loads(shown.out)["error"]["message"]
    assert message in shown.err
    assert not out.exists()
