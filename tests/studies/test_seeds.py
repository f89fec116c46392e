"""One config with several seeds: which runs there are, what is continued, and intervals over seeds."""

import json
import sys
from argparse import Namespace

import pytest
from tests.report.synthetic import make_run

from edgewise.cli import train as train_verb
from edgewise.cli.main import main
from edgewise.cli.studies import child_program, shown
from edgewise.config.errors import ConfigError
from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.statistics import Interval, mean_interval
from edgewise.experiments.load import load_config
from edgewise.studies import seeds as seeds_module
from edgewise.studies.seeds import plain, train_seeds

FLAGS = [("--total-frames", "6")]


def train(tmp_path, program, *, seeds, flags=FLAGS):
    config = load_config("graphwalk-ppo", flags=flags)
    words = ["graphwalk-ppo", *(f"{name}={value}" for name, value in flags if name != "--seed")]
    return train_seeds(config, words, seeds=seeds, jobs=2, out=tmp_path / "study", program=program)


def test_seeds_are_counted_from_the_first_and_can_be_added(tmp_path, program, ledger, watch):
    flags = [*FLAGS, ("--seed", "4")]
    assert train(tmp_path, program, seeds=2, flags=flags).seeds == [4, 5]
    result = train(tmp_path, program, seeds=3, flags=flags)
    assert set(ledger().values()) == {1}
    assert {name.partition(" ")[0] for name in ledger()} == {"seed-4", "seed-5", "seed-6"}
    assert plain(result)["runs"] == [f"{tmp_path}/study/runs/seed-{seed}" for seed in (4, 5, 6)]
    assert result.report.exists()


def test_another_config_is_another_study(tmp_path, program, ledger, watch):
    train(tmp_path, program, seeds=1)
    with pytest.raises(ConfigError, match=r"config\.algorithm\.gamma is .* there and 0\.5 here"):
        train(tmp_path, program, seeds=1, flags=[*FLAGS, ("--gamma", "0.5")])


def test_intervals_are_over_the_means_of_seeds(tmp_path):
    runs = [make_run(tmp_path / f"seed-{seed}", seed=seed, rows=3, evaluations=2) for seed in range(3)]
    rows = {label: (count, found) for label, count, found in seeds_module._rows(runs)}
    last = [Evaluation.load(run / "evaluations" / "000000200000.json").returns.mean() for run in runs]
    expected = mean_interval(last)
    assert rows["policy"][0] == 3
    assert rows["policy"][1]["return"] == expected
    assert rows["random"][0] == 0


def test_the_command_hands_on_what_was_typed(tmp_path, program, ledger, watch, monkeypatch, capsys):
    monkeypatch.setattr(train_verb, "child_program", lambda options: program)
    command = ["train", "graphwalk-ppo", "--seed", "7", "--total-frames", "6", "--seeds", "2", "--json"]
    assert main([*command, "--out", str(tmp_path / "study")]) == 0
    assert json.loads(capsys.readouterr().out)["seeds"] == [7, 8]
    flags = json.loads((tmp_path / "study" / "runs" / "seed-8" / "config.json").read_text())["flags"]
    assert (flags["seed"], flags["total-frames"]) == ("8", "6")
    (tmp_path / "many.yaml").write_text("- 1")
    assert main(["train", str(tmp_path / "many.yaml"), "--seeds", "2"]) == 2
    assert main(["train", "graphwalk-ppo", "--seeds", "0"]) == 2


@pytest.mark.parametrize("is_on_path", [True, False])
def test_children_look_for_modules_where_their_parent_does(monkeypatch, tmp_path, is_on_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path)] * is_on_path + ["/lib"])
    options = Namespace(plugin=["mine.py"], logger=["wandb"])
    found = child_program(options)
    assert ("-P" in found.command) is not is_on_path
    assert (found.plugins, found.loggers) == (("mine.py",), ("wandb",))


def test_intervals_are_shown_with_the_number_of_seeds():
    assert shown(Interval(0.5, float("nan"), float("nan"), 1)) == "0.5 (n=1, no interval)"
    assert shown(Interval(0.5, 0.25, 0.75, 5)) == "0.5 [0.25, 0.75] (n=5)"
    assert shown(None) == ""


def test_a_display_at_80_columns_keeps_bar_share_and_time():
    import io

    from rich.console import Console

    from edgewise.studies.display import Status, StudyBar

    text = io.StringIO()
    bar = StudyBar(Console(file=text, force_terminal=True, width=80, color_system=None))
    bar.start("a-recipe-with-a-long-name-sweep-1")
    bar.update(
        Status(0.5, 3, 20, [("trial-0003", 0.4), ("trial-0004", 0.2)], "best return -3.2 in trial-0001")
    )
    bar.close()
    shown = [line for line in text.getvalue().splitlines() if "50%" in line][-1]
    assert "━━━━━━━━" in shown
    assert "-:--:--" in shown
    assert "3 of 20 runs" in shown
