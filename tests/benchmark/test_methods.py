"""Methods: files, names, tables, and one clear message for each fault."""

import pytest

from edgewise import plugins
from edgewise.benchmark.columns import initial_policy, run_config
from edgewise.benchmark.method import Budget, Method, merged, read_method
from edgewise.benchmark.run import run_benchmark
from edgewise.benchmark.shipped import SHIPPED
from edgewise.benchmark.tasks import chosen_tasks, tasks
from edgewise.config.errors import ConfigError, DataError

IMPORT = "from edgewise.benchmark.method import Method\n"


def method_file(folder, text):
    file = folder / "mine.py"
    file.write_text(text)
    plugins.allow_typed([str(file)])
    return str(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "METHOD has no such name"),
        ("METHOD = 3", "METHOD is int there"),
        ("raise ValueError('no')", "fails while it is imported"),
        (IMPORT + "METHOD = Method('mine')", "expected algorithm, policy or learn, got none of them"),
        (IMPORT + "METHOD = Method('mine', algorithm='ppo', policy=print)", "got algorithm and policy"),
        (IMPORT + "METHOD = Method('My Method', algorithm='ppo')", "name is 'My Method'"),
        (IMPORT + "METHOD = Method('mine', policy=3)", "policy is 3, expected a function"),
        (
            IMPORT + "METHOD = Method('mine', algorithm='ppo', settings=3)",
            "settings is 3, expected a mapping",
        ),
    ],
)
def test_a_bad_file_gives_one_message(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        read_method(method_file(tmp_path, text))


def test_a_file_that_is_not_there_and_a_name_that_is_not_known(tmp_path):
    with pytest.raises(ConfigError, match="there is no file"):
        read_method(method_file(tmp_path, "") + ".py")
    with pytest.raises(ConfigError, match="no method is called pppo") as caught:
        read_method("pppo")
    assert "ppo" in caught.value.hint
    with pytest.raises(ConfigError, match="has no encoder gat"):
        read_method("ppo/gat")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algorithm": "pppo"}, "method mine, task tsp: no algorithm is called 'pppo'"),
        ({"algorithm": "ppo", "settings": {"model": {"hiden": 3}}}, "method mine, task tsp: .*hiden"),
        ({"algorithm": "ppo", "tasks": ("tps",)}, "method mine: no task is called tps"),
        ({"algorithm": "ppo", "tasks": ("max-cut",)}, "is for none of the tasks tsp"),
    ],
)
def test_settings_are_checked_before_anything_is_measured(tmp_path, given, message):
    with pytest.raises(ConfigError, match=message):
        run_benchmark(
            [Method("mine", **given)],
            chosen_tasks("tsp"),
            seeds=1,
            budget=Budget(smoke=True),
            folder=tmp_path / "r",
        )
    assert not (tmp_path / "r").exists()


def test_two_methods_of_one_name_are_refused(tmp_path):
    both = [Method("mine", algorithm="ppo"), Method("mine", algorithm="dqn")]
    with pytest.raises(ConfigError, match="two methods are called mine"):
        run_benchmark(both, chosen_tasks("tsp"), seeds=1, budget=Budget(smoke=True), folder=tmp_path / "r")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,split,value\ntsp,n,1\n", "expected the columns task,split,seed,instance,value"),
        ("", "no rows"),
        ("task,split,seed,instance,value\ntsp,n,0,0,x\n", "line 2: could not convert"),
        ("task,split,seed,instance,value\ntsp,n,0,1,4.0\n", "line 2: got instance 1 .* expected instance 0"),
        ("task,split,seed,instance,value\ntsp,n,0,0,inf\n", "with a finite number"),
    ],
)
def test_a_bad_table_gives_one_message(tmp_path, text, message):
    file = tmp_path / "mine.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read_method(str(file))


def test_a_table_needs_a_value_for_every_instance(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("task,split,seed,instance,value\nmany-agents,n,0,0,4.0\n")
    with pytest.raises(DataError, match="many-agents, n has 1 values, expected 8"):
        run_benchmark(
            [read_method(str(file))],
            chosen_tasks("many-agents"),
            seeds=1,
            budget=Budget(smoke=True),
            folder=tmp_path / "r",
        )


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("encoder", ["", "/gatv2", "/mlp"])
def test_shipped_methods_build_a_network_for_each_of_their_tasks(name, encoder):
    method = read_method(name + encoder)
    own = [task for task in tasks().values() if method.applies(task)]
    assert own
    for task in own:
        assert callable(initial_policy(run_config(task.smaller(), method, 0, Budget(smoke=True))))


def test_later_settings_win_within_a_section():
    first = {
        "model": {"encoder": {"kind": "gnn", "hidden": 8, "conv": "GINConv"}},
        "training": {"num_envs": 4},
    }
    found = merged(first, {"model": {"encoder": {"kind": "mlp"}}})
    assert found == {"model": {"encoder": {"kind": "mlp", "hidden": 8}}, "training": {"num_envs": 4}}
