"""`edgewise mine` and `edgewise rules`: a file of rules, figures by method, conversion, refusals."""

import pytest


@pytest.fixture(scope="module")
def mined(tmp_path_factory):
    from edgewise.cli.main import main

    file = tmp_path_factory.mktemp("rules") / "mined.txt"
    assert main(["reasoning", "mine", "countries_s3", "--out", str(file)]) == 0
    return file


def test_mined_rules_rank_regions(edgewise, mined):
    shown = edgewise("reasoning", "rules", "countries_s3", mined, "--json").data
    assert shown["rules"] > 1000
    assert shown["rules_left_out"] == 0
    assert shown["ranking"] == {"candidates": "all entities, filtered", "sides": "both", "ties": "mean rank"}
    assert shown["figures"]["greatest"]["mrr_tail"] > 0.9
    assert set(shown["differences"])
    assert shown["fusion"] == shown["searches"] == {}
    text = edgewise("reasoning", "rules", "countries_s3", mined, "--queries", 3, "--methods", "greatest").out
    assert "noisy" not in text
    assert "3 atoms of the test split" in text
    assert "both sides; ties get their mean rank" in text


def test_a_rule_file_is_converted_and_ranks_alike(edgewise, mined, tmp_path):
    other = tmp_path / "rules.anyburl"
    assert edgewise("reasoning", "rules", "countries_s3", mined, "--to", "anyburl", "--out", other).code == 0
    one, two = (
        edgewise("reasoning", "rules", "countries_s3", file, "--queries", 5, "--json").data["figures"]
        for file in (mined, other)
    )
    assert one == two


def test_mining_says_what_it_found(edgewise, tmp_path):
    file = tmp_path / "rules.txt"
    shown = edgewise("reasoning", "mine", "countries_s3", "--out", file, "--length", 1, "--json").data
    assert shown["complete"]
    assert shown["kinds"]["chains of 2 atoms"] == 0
    assert shown["kinds"]["with constants"] > 0
    again = edgewise("reasoning", "mine", "countries_s3", "--out", file)
    assert again.code == 2
    assert f"{file} exists" in again.err
    assert "most confident:" in edgewise("reasoning", "mine", "countries_s3", "--out", file, "--force").out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["mine", "nowhere"], "no folder nowhere"),
        (["mine", "countries_s3", "--length", "4"], "length"),
        (["mine", "countries_s3", "--min-support", "100000", "--out", "x.txt"], "no rule of countries_s3"),
        (["rules", "countries_s3", "none.txt"], "no rule file none.txt"),
        (["rules", "countries_s3", "rules.txt", "--to", "amie"], "--to and --out belong together"),
        (["rules", "countries_s3", "rules.txt", "--queries", "0"], "--queries"),
        (["rules", "countries_s3", "rules.txt", "--methods", "least"], "got least, expected one of greatest"),
        (["rules", "countries_s3", "rules.txt", "--beam", "2"], "--beam is the beam of a policy"),
    ],
)
def test_what_cannot_be_is_refused(edgewise, arguments, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = edgewise("reasoning", *arguments)
    assert found.code == 2
    assert complaint in found.err
