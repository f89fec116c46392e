"""`edgewise kge`: figures, leaks and a folder that loads; exit codes for what cannot be."""

import json

import pytest

from edgewise.cli.main import main
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.systems.reasoning.embeddings.config import KGEConfig
from edgewise.systems.reasoning.embeddings.defaults import default_config
from edgewise.systems.reasoning.embeddings.store import load_kge
from edgewise.systems.reasoning.embeddings.training import measure
from edgewise.systems.reasoning.knowledge.dataset import load_dataset

QUICK = ["--dim", "4", "--epochs", "2"]


def test_embeddings_are_trained_measured_and_saved(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["reasoning", "kge", "countries_s1", "--out", str(out), *QUICK, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    data = load_dataset("countries_s1")
    model = load_kge(out, vocabulary=data.vocabulary)
    assert measure(model, data, "test") == pytest.approx(shown["figures"]["test"])
    assert shown["config"]["embedding"]["dim"] == 4
    assert shown["leaks"]["overlaps"] == {"train∩valid": 0, "train∩test": 0, "valid∩test": 0}
    assert model.score(data.test).shape == (24,)
    about = json.loads((out / "manifest.json").read_text())["about"]
    assert about["figures"] == shown["figures"]


def test_the_text_names_figures_and_leaks(tmp_path, capsys):
    for split, content in {"train": "a\tr\tb\nb\tr\tc\n", "valid": "a\tr\tb\n", "test": "c\tr\td\n"}.items():
        (tmp_path / f"{split}.txt").write_text(content)
    assert (
        main(
            ["reasoning", "kge", str(tmp_path), "--model", "distmult", "--out", str(tmp_path / "out"), *QUICK]
        )
        == 0
    )
    text = capsys.readouterr().out
    assert "hits@10" in text
    assert "data: 1 atoms are in both train and valid" in text
    assert "data: 1 atoms of test have one of 1 entities" in text
    assert text.rstrip().endswith(f"embeddings: {tmp_path / 'out'}")


def test_a_folder_in_use_is_not_overwritten_and_can_be_resumed(tmp_path, capsys):
    command = ["reasoning", "kge", "countries_s1", "--out", str(tmp_path / "out"), *QUICK, "--json"]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(command) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"] == first["figures"]
    assert main([*command, "--resume", "--learning-rate", "0.2"]) == 3


def test_a_place_that_cannot_be_a_folder_is_refused_before_training(tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    for out in (file, file / "below"):
        assert main(["reasoning", "kge", "countries_s1", "--out", str(out), *QUICK]) == 2
        told = capsys.readouterr().err
        assert f"--out: cannot create the folder {out}" in told
        assert "questions" not in told


def test_checkpoints_of_another_kind_are_not_continued(tmp_path, capsys):
    checkpoint.save(tmp_path / "checkpoints", {"algorithm": {"a": 1}}, step=3)
    assert main(["reasoning", "kge", "countries_s1", "--out", str(tmp_path), *QUICK, "--resume"]) == 3
    assert "has no checkpoints of embeddings" in capsys.readouterr().err


def test_progress_counts_questions(tmp_path, capsys):
    assert main(["reasoning", "kge", "countries_s1", "--out", str(tmp_path / "out"), *QUICK]) == 0
    assert "of 4,440 questions" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--model", "conve"], "conve"),
        (["--dim", "0"], "dim"),
        (["--dimension", "4"], "dimension"),
        (["--learning-rate", "fast"], "fast"),
        (["--loss", "hinge"], "hinge"),
        (["--download", "wn19"], "wn19"),
        (["--device", "abacus"], "abacus"),
    ],
)
def test_what_cannot_be_is_refused_with_code_2(tmp_path, capsys, flags, words):
    assert main(["reasoning", "kge", str(tmp_path / "data"), "--out", str(tmp_path / "out"), *flags]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_help_lists_every_setting(capsys):
    assert main(["reasoning", "kge", "--help"]) == 0
    text = capsys.readouterr().out
    for name in KGEConfig.model_fields:
        if name != "embedding":
            assert f"--{name.replace('_', '-')}" in text


@pytest.mark.parametrize("model", ["complex", "distmult"])
@pytest.mark.parametrize("entities", [100, 40_000])
def test_defaults_fit_the_model_and_the_size(model, entities):
    config = default_config(model, num_entities=entities)
    assert config.embedding.model == model
    assert (config.loss == "one_vs_all") <= (entities < 5000)


def _layouts(folder):
    """The same knowledge graph with most training atoms in facts.txt, and with all of them in train.txt."""
    source = load_dataset("countries_s1")
    entities, predicates = source.vocabulary.entities, source.vocabulary.predicates

    def lines(split):
        rows = source.split(split).tolist()
        return [f"{entities[h - 1]}\t{predicates[p - 1]}\t{entities[t - 1]}\n" for p, h, t in rows]

    train = lines("train")
    for name, files in {
        "split": {"facts": train[:800], "train": train[800:]},
        "merged": {"train": train},
    }.items():
        (folder / name).mkdir()
        for file, rows in (files | {split: lines(split) for split in ("valid", "test")}).items():
            (folder / name / f"{file}.txt").write_text("".join(rows))


def test_facts_are_training_atoms_unless_asked_otherwise(tmp_path, capsys):
    _layouts(tmp_path)
    figures = {}
    for name, flags in {"split": [], "merged": [], "alone": ["--without-facts"]}.items():
        data = tmp_path / ("split" if name == "alone" else name)
        assert (
            main(
                [
                    "reasoning",
                    "kge",
                    str(data),
                    "--out",
                    str(tmp_path / f"out-{name}"),
                    *QUICK,
                    *flags,
                    "--json",
                ]
            )
            == 0
        )
        figures[name] = json.loads(capsys.readouterr().out)
    assert figures["split"]["figures"] == figures["merged"]["figures"]
    assert figures["split"]["loss"] == figures["merged"]["loss"]
    assert figures["alone"]["loss"] != figures["split"]["loss"]
    assert figures["split"]["training_atoms"]["of_train_txt"] < figures["split"]["training_atoms"]["all"]


def test_the_text_says_how_many_atoms_come_from_facts(tmp_path, capsys):
    _layouts(tmp_path)
    assert main(["reasoning", "kge", str(tmp_path / "split"), "--out", str(tmp_path / "out"), *QUICK]) == 0
    assert "of them from facts.txt)" in capsys.readouterr().out
