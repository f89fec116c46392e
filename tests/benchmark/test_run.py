"""Whole benchmarks in smoke size: bit for bit, killed and continued, checked, with anybody's methods."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.benchmark.smoke import TABLES
from tests.report.browser import needs_chromium, visit

from edgewise import plugins
from edgewise.benchmark.adapters import following_plans, reading_arrays
from edgewise.benchmark.columns import Field, run_config
from edgewise.benchmark.method import Budget, Method, read_method
from edgewise.benchmark.results import DIGESTS, hashed_files, sha256
from edgewise.benchmark.run import run_benchmark
from edgewise.benchmark.tasks import chosen_tasks, tasks
from edgewise.benchmark.verify import verify_benchmark
from edgewise.cli.main import main
from edgewise.config.errors import ConfigError, DataError, IllegalActionError

PAGE = Path(__file__).parents[2] / "docs/benchmark.md"
COMMAND = ("benchmark", "graphs", "--smoke", "--tasks", "tsp", "--seeds", "1")
SMOKE = Budget(smoke=True)


def tables(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


def faults(folder):
    return {each.name: each.fault for each in verify_benchmark(folder) if each.fault is not None}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The results of one benchmark that was not interrupted."""
    folder = tmp_path_factory.mktemp("results") / "whole"
    assert main([*COMMAND, "--to", str(folder)]) == 0
    return folder


@pytest.fixture
def copied(whole, tmp_path):
    folder = tmp_path / "copy"
    subprocess.run(["cp", "-r", whole, folder], check=True)
    return folder


def test_every_column_is_in_the_table(whole):
    rows = json.loads((whole / "results.json").read_text())["table"]
    assert [row["split"] for row in rows] == ["n", "2n", "10n", "family"]
    parts = {row["split"]: [one["part"] for one in row["columns"]] for row in rows}
    assert parts["n"] == ["untrained", "without edges", "mlp", ""]
    assert parts["10n"] == ["untrained", "without edges", ""]  # an MLP has one size
    assert rows[0]["reference"]["proven"] == rows[0]["instances"]
    assert rows[0]["rule"]["name"] == "two_opt"
    assert rows[0]["reference"]["value"] <= rows[0]["rule"]["value"] <= rows[0]["random"]


def test_the_page_is_one_file_that_needs_no_network(whole):
    page = (whole / "report.html").read_text()
    assert not re.findall(r"""(?:src|href)=["']https?:""", page)
    assert "default-src 'none'" in page
    assert "data:image/svg+xml;base64," in page
    assert "Travelling salesman" in page
    pytest.importorskip("matplotlib")
    assert (whole / "table.pdf").read_bytes().startswith(b"%PDF")


@needs_chromium
def test_the_page_draws_everything_without_an_error(whole):
    seen = visit(whole / "report.html")
    assert seen.console == []
    for heading in (
        "Performance profiles",
        "Learning",
        "Cost to reach the rule",
        "What it looks like",
        "Instances",
    ):
        assert f">{heading}</h2>" in seen.dom
    assert seen.dom.count('class="number bad"') >= 4


def test_a_killed_benchmark_continues_and_gives_the_same_table_bit_for_bit(whole, tmp_path):
    folder = tmp_path / "killed"
    command = [sys.executable, "-P", "-m", "edgewise", *COMMAND, "--to", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not list(folder.glob("runs/*mlp--seed-0/checkpoints/*")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "results.json").exists()
    before = {file: file.stat().st_mtime_ns for file in folder.glob("values/*/*")}
    assert before
    assert main([*COMMAND, "--to", str(folder)]) == 0
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert tables(folder) == tables(whole)


def test_a_whole_folder_verifies(whole, capsys):
    assert main(["verify", str(whole), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["whole"]


def change(file, pattern, to):
    text = file.read_text()
    changed = re.sub(pattern, to, text, count=1)
    assert changed != text
    file.write_text(changed)


def forge(folder):
    """Write digests that fit the files."""
    (folder / DIGESTS).write_text(json.dumps({name: sha256(folder / name) for name in hashed_files(folder)}))


@pytest.mark.parametrize("name", ["results.json", "table.csv", "values/tsp/method--edgewise--seed-0.json"])
def test_a_changed_number_is_found(copied, name, capsys):
    change(copied / name, r"\d\.\d{3}", "1.234")
    assert any(name == each for each in faults(copied))
    assert main(["verify", str(copied)]) == 3


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("results.json", "table from values"),
        ("values/tsp/method--edgewise--seed-0.json", "table from values"),
        ("values/tsp/rule--two_opt.json", "two_opt in tsp"),
    ],
)
def test_a_changed_number_is_found_even_with_forged_digests(copied, name, found):
    change(copied / name, r"\d\.\d{3}", "1.234")
    forge(copied)
    assert found in faults(copied)


def test_missing_added_and_damaged_files_are_found(copied):
    (copied / "table.tex").unlink()
    (copied / "extra.txt").write_text("x")
    assert {"table.tex", "extra.txt"} <= set(faults(copied))
    (copied / "values/tsp/rule--nearest.json").write_text("{}")
    assert "it is no file of values" in faults(copied)["values/tsp/rule--nearest.json"]


def test_damage_to_a_run_folder_is_found(copied):
    change(copied / "runs/tsp--method--edgewise--seed-0/config.json", '"seed": 0', '"seed": 1')
    assert "config.json" in faults(copied)["runs/tsp--method--edgewise--seed-0"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("digests.json", "[]"),
        ("digests.json", "{"),
        ("results.json", "{"),
        ("instances.json", "[1]"),
        ("instances.json", '{"tsp": 3}'),
        ("values/tsp/solver.json", '{"task": "tsp", "kind": "solver", "name": "", "part": "", "seed": null}'),
        ("values/tsp/rule--nearest.json", "[]"),
        (
            "study.json",
            '{"format": "edgewise-study/1", "kind": "benchmark of graphs", "version": "graphs-1"}',
        ),
    ],
)
def test_a_damaged_file_is_a_fault_and_no_traceback(copied, name, content):
    (copied / name).write_text(content)
    assert faults(copied)
    forge(copied)
    assert bool(faults(copied)) == (name != DIGESTS)


def test_another_budget_needs_another_folder(copied):
    with pytest.raises(ConfigError, match="smoke is true there and false here"):
        run_benchmark(
            [read_method("edgewise")], chosen_tasks("tsp"), seeds=1, budget=Budget(minutes=1.0), folder=copied
        )


def test_other_instances_are_refused(copied, monkeypatch):
    monkeypatch.setattr("edgewise.benchmark.task.SEED", 1)
    with pytest.raises(DataError, match="the instances of tsp are not those that these results began with"):
        run_benchmark([read_method("edgewise")], chosen_tasks("tsp"), seeds=1, budget=SMOKE, folder=copied)


def test_flags_of_graphs_are_refused_with_a_file():
    with pytest.raises(ConfigError, match="--seeds: only for `edgewise benchmark graphs`"):
        raised(["benchmark", "small.yaml", "--seeds", "3"])
    with pytest.raises(ConfigError, match="give one of --minutes"):
        raised(["benchmark", "graphs", "--smoke", "--minutes", "3"])
    with pytest.raises(ConfigError, match="got x, expected a number above 0"):
        raised(["benchmark", "graphs", "--minutes", "x"])
    with pytest.raises(ConfigError, match="this benchmark runs in one process"):
        raised(["benchmark", "graphs", "--jobs", "2"])


def raised(words):
    """Run a verb without turning its errors into an exit code."""
    from edgewise.cli.main import _run
    from edgewise.terminal.console import Console

    _run(words, Console(as_json=False))


def methods_of_the_page(folder):
    """Return the method files of the page, each at most sixty lines, by the name of the method."""
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        assert len(block.splitlines()) <= 60
        name = re.search(r'Method\(\s*"([a-z-]+)"', block)[1]
        file = folder / f"{name.replace('-', '_')}_method.py"
        file.write_text(block)
        plugins.allow_typed([str(file)])
        yield name, file


def test_methods_written_as_on_the_page_get_their_columns(tmp_path):
    files = dict(methods_of_the_page(tmp_path))
    assert {files.pop(name).suffix for name in ("am", "maskable-ppo")} == {".py"}  # of other libraries
    assert set(files) == {"my-gine", "highest-degree", "random-search"}
    trained = read_method(str(files.pop("my-gine")))
    for name in trained.tasks:
        assert run_config(tasks()[name], trained, 0, SMOKE).model.encoder.conv == "GINEConv"
    methods = [read_method(str(file)) for file in files.values()]
    found = run_benchmark(
        methods, chosen_tasks("vertex-cover"), seeds=1, budget=SMOKE, folder=tmp_path / "r"
    ).results
    columns = {
        one["method"]: one["value"]["value"] for one in found["table"][0]["columns"] if not one["part"]
    }
    assert set(columns) == set(files)
    assert columns["random-search"] < columns["highest-degree"]


def nearest_plans(state):
    """Plans in arrays of another library: nearest neighbour tours from city 0."""
    plans = []
    for place in state["place"].numpy():
        tour, left = [0], set(range(1, len(place)))
        while left:
            tour.append(min(left, key=lambda city: np.linalg.norm(place[city] - place[tour[-1]])))
            left.remove(tour[-1])
        plans.append(tour)
    return torch.tensor(plans)


def test_plans_and_policies_on_arrays_play_the_same_instances():
    field = Field(tasks()["tsp"].smaller())
    planned = field.play(lambda batch: following_plans(batch.env, nearest_plans))
    ours = field.play(lambda batch: batch.baselines(("nearest",))["nearest"])
    for split, values in ours.items():
        assert planned[split] == pytest.approx(values, abs=1e-4)

    def in_order(seen, mask):
        assert seen["graph"]["x"].shape[:2] == mask.shape
        return mask.argmax(-1)

    asked = field.play(lambda batch: reading_arrays(batch.env, in_order))
    plain = field.play(
        lambda batch: following_plans(
            batch.env, lambda s: torch.arange(len(s["place"][0])).expand(len(s), -1)
        )
    )
    assert asked == plain


def test_a_policy_of_one_size_leaves_the_other_splits_out(tmp_path):
    def nearest(env):
        is_small = env.graph.num_nodes == 20
        return tasks()["tsp"].entry.load_baselines()["nearest"](env) if is_small else None

    found = run_benchmark(
        [Method("small", policy=nearest)], chosen_tasks("tsp"), seeds=1, budget=SMOKE, folder=tmp_path / "r"
    ).results
    assert [len(row["columns"]) for row in found["table"]] == [1, 0, 0, 1]


def test_an_illegal_plan_is_refused():
    field = Field(tasks()["tsp"].smaller())
    with pytest.raises(IllegalActionError):
        field.play(
            lambda batch: following_plans(batch.env, lambda s: torch.zeros(len(s), 5, dtype=torch.long))
        )


def test_a_recorded_table_scores_as_the_method_that_it_records(whole, tmp_path):
    values = json.loads((whole / "values/tsp/rule--nearest.json").read_text())["values"]
    rows = ["task,split,seed,instance,value"]
    rows += [f"tsp,{split},0,{i},{value!r}" for split, row in values.items() for i, value in enumerate(row)]
    (tmp_path / "recorded.csv").write_text("\n".join(rows) + "\n")
    rule = Method("nearest", policy=lambda env: tasks()["tsp"].entry.load_baselines()["nearest"](env))
    both = [read_method(str(tmp_path / "recorded.csv")), rule]
    found = run_benchmark(both, chosen_tasks("tsp"), seeds=1, budget=SMOKE, folder=tmp_path / "r").results
    for row in found["table"]:
        first, second = row["columns"]
        assert {first["method"], second["method"]} == {"recorded", "nearest"}
        assert first["value"] == second["value"]
        assert first["gain"] == second["gain"]


def test_a_method_can_be_added(copied):
    found = run_benchmark(
        [read_method("edgewise"), read_method("edgewise/gatv2")],
        chosen_tasks("tsp"),
        seeds=1,
        budget=SMOKE,
        folder=copied,
    ).results
    columns = {(one["method"], one["part"]) for one in found["table"][0]["columns"]}
    assert {("edgewise", ""), ("edgewise/gatv2", ""), ("edgewise/gatv2", "mlp")} <= columns
    assert not faults(copied)
