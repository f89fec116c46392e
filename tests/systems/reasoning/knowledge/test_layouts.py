"""Published layouts of knowledge graphs give the same dataset: other columns, line ends and file names."""

import pytest
import torch

from edgewise.systems.reasoning.knowledge.dataset import NO_RULES, load_dataset

SPLITS = {
    "train": [("a", "likes", "b"), ("b", "likes", "c"), ("c", "knows", "a"), ("d", "knows", "a")],
    "valid": [("a", "knows", "c")],
    "test": [("b", "knows", "a")],
}


def write(folder, *, order=(0, 1, 2), end="\n", names=None):
    folder.mkdir()
    for split, triples in SPLITS.items():
        lines = ("\t".join(triple[column] for column in order) for triple in triples)
        (folder / f"{(names or {}).get(split, split)}.txt").write_bytes(
            "".join(line + end for line in lines).encode()
        )
    return folder


LAYOUTS = {
    "relation first": {"order": (1, 0, 2)},
    "relation last": {"order": (0, 2, 1)},
    "CR alone": {"end": "\r"},
    "CRLF": {"end": "\r\n"},
    "dev.txt": {"names": {"valid": "dev"}},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_gives_the_same_dataset(tmp_path, layout, caplog):
    plain = load_dataset(write(tmp_path / "plain"), rules=NO_RULES)
    assert not [one for one in caplog.messages if "column" in one]
    other = load_dataset(write(tmp_path / "other", **LAYOUTS[layout]), rules=NO_RULES)
    assert other.vocabulary == plain.vocabulary
    for split in SPLITS:
        assert torch.equal(other.split(split), plain.split(split))
    if "relation" in layout:
        assert f"relations are in the {layout.split()[1]} column" in caplog.text


def test_heads_and_tails_without_a_common_name_are_read_as_written(tmp_path):
    folder = write(tmp_path / "data")
    (folder / "train.txt").write_text("u1\tbought\ti1\nu2\tbought\ti2\nu3\tsaw\ti1\n")
    assert load_dataset(folder, rules=NO_RULES).vocabulary.has_predicate("bought")


def test_both_parts_of_a_neural_lp_folder_are_training_atoms(tmp_path):
    folder = write(tmp_path / "data")
    (folder / "facts.txt").write_text("a\tlikes\td\nd\tlikes\tc\n")
    for name, text in (("entities.txt", "a\nb\nc\nd\n"), ("relations.txt", "likes\nknows\n")):
        (folder / name).write_text(text)
    data = load_dataset(folder, rules=NO_RULES)
    assert len(data.facts) == 2
    assert len(data.with_facts_in_training().train) == 6
