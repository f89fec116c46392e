"""`edgewise prove`: figures by steps, a proof as a tree, and exit codes for what cannot be."""

import json

import pytest

from edgewise.cli.main import main


def test_figures_are_shown_by_steps(capsys):
    arguments = [
        "reasoning",
        "prove",
        "countries_s3",
        "--depth",
        "4",
        "--negatives",
        "2",
        "--corrupt",
        "tail",
        "--json",
    ]
    assert main(arguments) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["positives"]["by_steps"] == {"1": 0, "2": 0, "3": 16, "4": 8}
    assert shown["positives"]["share"] == 1.0
    assert shown["negatives"]["queries"] == 48
    assert shown["negatives"]["share"] < 0.2
    assert main(arguments[:-1]) == 0
    assert "66.67%" in capsys.readouterr().out


def test_a_proof_is_shown_as_a_tree(capsys):
    query = "locatedInCR(zambia,africa)"
    assert main(["reasoning", "prove", "countries_s3", "--depth", "4", "--query", query]) == 0
    first, *leaves = capsys.readouterr().out.splitlines()
    assert first == f"{query}  [r2]"
    assert all(line.endswith("[fact]") for line in leaves)
    assert main(["reasoning", "prove", "countries_s3", "--depth", "1", "--query", query]) == 0
    assert "no proof" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "no folder nowhere"),
        (["countries_s3", "--depth", "0"], "--depth: got 0, expected a whole number from 1"),
        (["countries_s3", "--rules", "none.txt"], "no rule file none.txt"),
        (["countries_s3", "--query", "locatedInCR(zambia)"], "is no atom"),
        (["countries_s3", "--query", "locatedInCR(zambia,mars)"], "no entity is called mars"),
    ],
)
def test_what_cannot_be_is_said(arguments, complaint, capsys):
    assert main(["reasoning", "prove", *arguments]) == 2
    assert complaint in capsys.readouterr().err
