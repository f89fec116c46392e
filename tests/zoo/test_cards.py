"""Every policy of the package is whole, small, and as good as its card says."""

import json
import re
import shlex

import pytest
from tests.zoo import page

from edgewise.cli.main import main
from edgewise.cli.verify import checked_files
from edgewise.config.run import RunConfig
from edgewise.evaluation.request import EvaluationRequest
from edgewise.experiments.evaluate import evaluate_run
from edgewise.experiments.load import load_config
from edgewise.plugins import environments
from edgewise.runs.zoo import FOLDER, read_card, zoo_names

TOLERANCE = 0.02
"""How far a mean may be from the card's, relative to it: processors round differently, and a tie between two
actions may then fall the other way."""
NAMES = [
    name
    for name in zoo_names()
    if json.loads((FOLDER / name / "config.json").read_text())["env_name"] in environments()
]


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_zoo_is_small():
    assert {path.name for path in FOLDER.iterdir()} == set(zoo_names())
    assert sum(map(size, map(FOLDER.joinpath, NAMES))) < 8_000_000
    assert max(map(size, map(FOLDER.joinpath, NAMES))) < 1_000_000


def test_the_page_says_what_the_cards_say():
    assert page.TABLE.search(page.PAGE.read_text(encoding="utf-8"))[1].splitlines() == page.rows()


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_is_whole_and_its_command_gives_its_config(name):
    assert not [file for file in checked_files(FOLDER / name) if file.fault is not None]
    card = read_card(FOLDER / name)
    assert card.name == name
    assert re.fullmatch(r"[0-9a-f]{40}", card.commit)
    config: RunConfig = load_config(FOLDER / name / "config.json")
    _, _, source, *flags = shlex.split(card.command)
    again = load_config(source, flags=list(zip(flags[::2], flags[1::2], strict=True)))
    assert again.to_plain() == config.to_plain()
    assert card.figures
    assert any(one.baseline or "against" in one.measure for one in card.figures)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_acts_as_its_card_says(name):
    check = read_card(FOLDER / name).check
    found = evaluate_run(
        FOLDER / name,
        EvaluationRequest(settings=check.settings, episodes=check.episodes, device="cpu"),
        by_stage=False,
    )[0]
    summary = found.summary()
    means = {measure: summary[measure].estimate for measure in check.measures}
    assert means == pytest.approx(check.measures, rel=TOLERANCE, abs=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_the_figures_of_a_card_are_printed_by_its_command(name, capsys):
    card = read_card(FOLDER / name)
    capsys.readouterr()
    assert main([*shlex.split(card.evaluated)[1:], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    own = [one for one in card.figures if one.policy == name]
    if "results" not in found:
        row = found["scores"][found["players"].index(name)]
        scores = {f"score against {other}": score for other, score in zip(found["players"], row, strict=True)}
        for one in own:
            if one.measure in scores:
                assert one.low <= scores[one.measure] <= one.high
        return
    printed = {
        (json.dumps(result["settings"]), measure): value["mean"]
        for result in found["results"]
        if not result["baseline"]
        for measure, value in result["measures"].items()
    }
    expected = {(json.dumps(one.settings), one.measure): one.mean for one in own}
    assert printed == pytest.approx(expected, rel=TOLERANCE, abs=1e-6)
