"""Ablations in games are matches: against itself without something, and both against every opponent."""

import json
import shutil

import pytest

from edgewise.cli.main import main
from edgewise.config.errors import ConfigError
from edgewise.evaluation.request import EvaluationRequest
from edgewise.experiments import ablated_games
from edgewise.experiments.ablated_games import ComparedPlayer, ablate_in_games, is_game
from edgewise.runs.zoo import FOLDER, run_path

RUN = run_path("zoo:hex-quick")
GAMES = EvaluationRequest(episodes=40, seed=3)


@pytest.fixture(scope="module")
def rows():
    return {row["measure"]: row for row in ablate_in_games(RUN, ["edges"], GAMES)}


def test_the_whole_policy_plays_the_ablated_one_and_each_plays_every_opponent(rows):
    assert list(rows) == [
        "score against itself without edges",
        "score against random",
        "score against shortest_way",
    ]
    direct = rows["score against itself without edges"]
    assert direct["mean"] > 0.6
    assert direct["mean"] + direct["other_mean"] == pytest.approx(1)
    assert direct["difference"] == pytest.approx(2 * direct["mean"] - 1)
    assert direct["difference_low"] > 0, "message passing wins games"
    assert (direct["n"], direct["episodes"]) == (20, 40)
    assert 0 < direct["changed_actions"] < 1
    rule = rows["score against shortest_way"]
    assert rule["difference"] == pytest.approx(rule["mean"] - rule["other_mean"])
    assert rule["mean"] > rule["other_mean"]


def test_without_nothing_nothing_changes(monkeypatch):
    monkeypatch.setattr(ablated_games, "ablate", lambda policy, what, env: policy)
    found = ablate_in_games(RUN, ["x"], GAMES, opponents=["random"])
    assert [row["difference"] for row in found] == [0.0, 0.0]
    assert found[0]["mean"] == 0.5
    assert {row["changed_actions"] for row in found} == {0.0}


def test_moves_that_differ_are_counted():
    import torch
    from tensordict import TensorDict

    def playing(*moves):
        return lambda root: root.set("action", torch.tensor(moves))

    root = TensorDict({"x": torch.zeros(3, 1)}, [3])
    player = ComparedPlayer(playing(1, 2, 3), playing(1, 0, 0))
    assert player(root)["action"].tolist() == [1, 2, 3]
    assert player.share == pytest.approx(2 / 3)


def test_the_command_shows_matches_and_keeps_them_in_a_run_folder(tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    (folder / "card.json").unlink()
    words = ["--ablate", "edges", "--episodes", "20", "--baselines", "random", "--json"]
    assert main(["eval", str(folder), *words]) == 0
    found = json.loads(capsys.readouterr().out)["ablations"]
    assert [row["measure"] for row in found] == ["score against itself without edges", "score against random"]
    kept = json.loads((folder / "ablations.json").read_text())["rows"]
    assert [row["measure"] for row in kept] == [row["measure"] for row in found]


def test_policies_of_the_package_are_left_as_they_are(capsys):
    before = sorted(path.name for path in (FOLDER / "hex-quick").iterdir())
    assert main(["eval", "zoo:hex-quick", "--ablate", "edges", "--episodes", "10"]) == 0
    assert "without edges" in capsys.readouterr().out
    assert sorted(path.name for path in (FOLDER / "hex-quick").iterdir()) == before


def test_openings_are_played_twice_and_games_are_told_from_others():
    with pytest.raises(ConfigError, match="even number"):
        ablate_in_games(RUN, ["edges"], EvaluationRequest(episodes=7))
    assert is_game(RUN)
    assert not is_game(run_path("zoo:graphwalk-ppo"))
