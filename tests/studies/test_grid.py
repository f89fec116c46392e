"""A grid of algorithms, environments and seeds: its file, its runs, and what is said of them."""

import json

import pytest
from tests.isolation import isolated

from edgewise.cli.main import main
from edgewise.config.errors import ConfigError, EdgewiseError
from edgewise.experiments.load import load_config
from edgewise.studies.folder import StudyFolder
from edgewise.studies.grid import run_grid
from edgewise.studies.grid_file import Entry, Grid, load_cells, read_grid
from edgewise.studies.grid_results import collect, plain

FILE = """
name: small
seeds: 2
settings: {total_frames: 6, evaluation: {every: 2}}
algorithms:
  ppo: {settings: {learning_rate: 1e-3}}
  ppo-high: {algorithm: ppo, settings: {learning_rate: 1e-1}}
environments:
  graphwalk: {settings: {num_nodes: [4, 8], training.rollout_length: 3}, range: [-8, 0]}
  walk-large: {environment: graphwalk}
"""
FRAMES = 6


def written(tmp_path, text=FILE):
    file = tmp_path / "small.yaml"
    file.write_text(text)
    return file


def load(environment, algorithm, flags):
    return load_config(environment, algorithm=algorithm, flags=flags)


@pytest.fixture
def grid(tmp_path):
    text = FILE.replace("num_nodes: [4, 8], ", "")
    found = read_grid(written(tmp_path, text))
    return found, load_cells(found, load)


def test_a_file_names_algorithms_environments_and_settings(tmp_path):
    grid = read_grid(written(tmp_path))
    assert (grid.name, grid.seeds) == ("small", 2)
    assert grid.settings == (("--total_frames", "6"), ("--evaluation.every", "2"))
    assert grid.algorithms[1] == Entry("ppo-high", "ppo", (("--learning_rate", "0.1"),))
    assert grid.environments[0].settings == (("--num_nodes", "[4, 8]"), ("--training.rollout_length", "3"))
    assert grid.environments[0].range == (-8.0, 0.0)
    listed = read_grid(written(tmp_path, "algorithms: [ppo, dqn]\nenvironments: [graphwalk]\n"))
    assert listed == Grid(
        "small", 1, (), (Entry("ppo", "ppo"), Entry("dqn", "dqn")), (Entry("graphwalk", "graphwalk"),)
    )


def test_the_settings_of_an_algorithm_go_last():
    grid = Grid("g", 1, (("--gamma", "0.1"),), (), ())
    flags = grid.flags(
        Entry("a", "a", (("--gamma", "0.3"),)), Entry("e", "e", (("--gamma", "0.2"), ("--n", "1")))
    )
    assert flags == [("--gamma", "0.3"), ("--n", "1")]


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (
            "algorithm: [ppo]\nenvironments: [graphwalk]",
            ["line 1: algorithm: unknown field; did you mean algorithms?", "expected a list of algorithms"],
        ),
        (
            "algorithms: [ppo]\nenvironments: {a: {range: [1, 1]}}",
            ["line 2: environments.a.range: expected two different"],
        ),
        (
            "algorithms: {ppo: {seting: 1}}\nenvironments: [a]\nseeds: 0",
            ["did you mean settings?", "seeds: got 0"],
        ),
        (
            "algorithms: {ppo: 3}\nenvironments: [a]\nname: a/b",
            ["algorithms.ppo: expected names with values", "name: expected letters"],
        ),
    ],
)
def test_problems_are_named_with_their_line(tmp_path, text, reasons):
    with pytest.raises(ConfigError) as error:
        read_grid(written(tmp_path, text))
    assert all(reason in error.value.message for reason in reasons), error.value.message


def test_every_cell_is_checked_before_anything_runs(tmp_path, capsys):
    text = FILE.replace("learning_rate: 1e-3", "learning_rat: 1").replace("graphwalk: {", "graphwal: {")
    assert main(["benchmark", str(written(tmp_path, text)), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "ppo in walk-large" in said
    assert "did you mean learning_rate?" in said
    assert "ppo-high in graphwal" in said
    assert not (tmp_path / "out").exists()


def test_code_that_a_file_names_is_not_imported(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    text = f"algorithms: [ppo]\nenvironments: {{mine: {{environment: {tmp_path}/mine.py}}}}\n"
    assert main(["benchmark", str(written(tmp_path, text)), "--out", str(tmp_path / "out")]) == 2
    assert "add --plugin" in capsys.readouterr().err
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("model.encoder.kind: mine.py:Mine", "add --plugin mine.py"),
        ("evaluation.metric: mine.py:Mine", "add --plugin mine.py"),
        ("ray.address: 10.1.2.3:6379", "--ray.address 10.1.2.3:6379"),
        ("address: 10.1.2.3:6379", "--ray.address 10.1.2.3:6379"),
    ],
)
def test_settings_of_a_file_allow_a_child_nothing(tmp_path, setting, said):
    """They become flags of its command line, where the user's own addresses are."""
    text = f"algorithms: [ppo]\nenvironments: [graphwalk]\nsettings: {{{setting}}}\n"
    with isolated(), pytest.raises(ConfigError, match=said):
        load_cells(read_grid(written(tmp_path, text)), load)


def test_every_run_once_and_results_on_one_scale(tmp_path, grid, program, ledger, watch):
    found, cells = grid
    result = run_grid(found, cells, jobs=3, out=tmp_path / "study", program=program)
    assert len(ledger()) == 2 * 2 * 2 * FRAMES
    assert set(ledger().values()) == {1}
    assert result.values["ppo", "graphwalk"] == pytest.approx({0: 0.0, 1: -0.01})
    assert result.values["ppo-high", "graphwalk"] == pytest.approx({0: -4.0, 1: -4.01})
    assert result.ranges["graphwalk"] == (-8.0, 0.0)
    assert result.ranges["walk-large"] == pytest.approx((-4.01, 0.0))
    measures = result.aggregates.measures
    # Of two seeds in two environments the middle half is the mean of the two middle scores.
    assert measures["IQM"]["ppo"].estimate == pytest.approx((1 + 1 - 0.01 / 8) / 2)
    assert result.aggregates.improvement["ppo", "ppo-high"].estimate == 1.0
    document = json.loads((tmp_path / "study" / "results.json").read_text())
    assert document == json.loads(json.dumps(plain(result)))
    page = (tmp_path / "study" / "report.html").read_text()
    assert "ppo--walk-large--seed-1/report.html" in page
    lower = {cell: load("graphwalk", "ppo", [("--evaluation.maximise", "false")]) for cell in cells}
    turned = collect(found, lower, StudyFolder(tmp_path / "study"))
    assert turned.ranges["walk-large"] == pytest.approx((0.0, -4.01))  # the lowest value scores 1
    assert turned.ranges["graphwalk"] == (-8.0, 0.0)  # as given


def test_a_grid_grows_and_nothing_runs_twice(tmp_path, grid, program, ledger, watch):
    found, cells = grid
    small = Grid(found.name, 1, found.settings, found.algorithms[:1], found.environments)
    run_grid(
        small,
        {cell: cells[cell] for cell in cells if cell[0] == "ppo"},
        jobs=2,
        out=tmp_path / "s",
        program=program,
    )
    result = run_grid(found, cells, jobs=2, out=tmp_path / "s", program=program)
    assert set(ledger().values()) == {1}
    assert len(ledger()) == 2 * 2 * 2 * FRAMES
    assert result.incomplete == []
    events = [line for file in (tmp_path / "s").rglob("events.jsonl") for line in file.open()]
    assert [json.loads(line)["event"] for line in events].count("start") == 2 * 2 * 2
    assert not any(json.loads(line)["event"] == "resume" for line in events)
    changed = {cell: load("graphwalk", "ppo", [("--gamma", "0.5")]) for cell in cells}
    with pytest.raises(ConfigError, match="holds another study"):
        run_grid(found, changed, jobs=1, out=tmp_path / "s", program=program)


def test_an_algorithm_with_a_failed_run_is_left_out_and_named(tmp_path, grid, program, ledger, watch):
    found, cells = grid
    failing = Entry("ppo-high", "ppo", (("--fail", "true"),))
    broken = Grid(found.name, 1, found.settings, (found.algorithms[0], failing), found.environments)
    with pytest.raises(EdgewiseError, match="2 of 4 runs failed"):
        run_grid(broken, cells, jobs=2, out=tmp_path / "study", program=program)
    document = json.loads((tmp_path / "study" / "results.json").read_text())
    assert document["incomplete"] == ["ppo-high"]
    assert list(document["aggregates"]["IQM"]) == ["ppo"]
    assert "ppo-high has runs that are not finished" in (tmp_path / "study" / "report.html").read_text()
