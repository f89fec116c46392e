"""`edgewise render`: episodes that were recorded, and episodes that are played for it."""

import json

import pytest

from edgewise.cli.main import main


def rendered(capsys, *arguments):
    assert main(["render", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_recorded_episode_is_drawn(tmp_path, capsys):
    found = rendered(capsys, "zoo:graphwalk-ppo", "--to", str(tmp_path / "walk.svg"), "--frame", "1")
    assert found["frames"] > 1
    assert "<svg" in (tmp_path / "walk.svg").read_text()


def test_an_episode_is_played_where_none_is_recorded_or_other_settings_are_asked_for(tmp_path, capsys):
    folder = tmp_path / "run"
    short = ["--num-envs", "8", "--total-frames", "50", "--evaluation.episodes", "4", "--hidden", "8"]
    assert main(["train", "tsp", "--algorithm", "reinforce", *short, "--out", str(folder)]) == 0
    capsys.readouterr()
    found = rendered(capsys, str(folder), "--to", str(tmp_path / "a.svg"), "--num-cities", "7")
    assert found["frames"] == 8
    again = rendered(capsys, str(folder), "--to", str(tmp_path / "b.svg"), "--num-cities", "7", "--play")
    assert again["frames"] == 8
    assert (tmp_path / "a.svg").read_text() == (tmp_path / "b.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "walk.bmp"], "expected a file that ends with"),
        (["--to", "walk.svg", "--episode", "99"], "recorded"),
        (["--to", "walk.svg", "--play", "--episode", "1"], "chooses among recorded episodes"),
        (["--to", "walk.svg", "--num-nodes", "10,20"], "got several values"),
        (["--to", "walk.svg", "--frame", "1000"], "the episode has"),
    ],
)
def test_bad_options_are_refused(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["render", "zoo:graphwalk-ppo", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
