"""The list of faults still fits the package, and the parts of `make mutate` do what they say."""

import os
import signal
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from tests.mutation.collected import Collected
from tests.mutation.faults import PACKAGE, Fault, StaleFaultError, load, problems
from tests.mutation.fork_server import TIMED_OUT, Session, run_sessions
from tests.mutation.hot_patch import Functions, make_patch
from tests.mutation.reach import Reach

PROJECT = Path(__file__).parents[2]
SOURCE = '''"""A module."""

LIMIT = 3


def wrap(function):
    return lambda number: function(number)


class Counter:
    step = 1

    @property
    def double(self):
        return self.step * 2

    @wrap
    def more(self):
        def inner(number):
            return number + 1

        return inner(self.step)


def clip(number):
    if number > LIMIT:
        return LIMIT
    return number
'''


def fault(old, new, file="module.py"):
    return Fault(file, "something", old, new, "some.yaml")


def test_every_fault_of_the_list_can_be_planted():
    assert problems(load(), PROJECT) == []


def test_the_list_is_long_and_reaches_most_packages():
    faults = load()
    assert len(faults) >= 300
    packages = {each.file.split("/")[0] for each in faults}
    assert {
        "envs",
        "graphs",
        "objectives",
        "algorithms",
        "data",
        "training",
        "evaluation",
        "models",
        "systems",
    } <= packages


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("LIMIT = 4", "LIMIT = 5", "no longer applies: its text occurs 0 times"),
        ("return", "yield", "no longer applies: its text occurs 6 times"),
        ("LIMIT = 3", "LIMIT = 3", "changes nothing"),
        ("LIMIT = 3", "LIMIT = (3", "unreadable"),
    ],
)
def test_a_fault_that_cannot_be_planted_is_named(old, new, complaint):
    with pytest.raises(StaleFaultError, match=complaint) as caught:
        fault(old, new).planted(SOURCE)
    assert "some.yaml" in str(caught.value)


def test_a_file_that_is_named_twice_loses_no_fault(tmp_path):
    one, other = (f"a.py:\n- {{what: {number}, old: x, new: y}}\n" for number in (1, 2))
    (tmp_path / "list.yaml").write_text(one + other)
    assert [(fault.file, fault.what) for fault in load(tmp_path)] == [("a.py", 1), ("a.py", 2)]


def test_missing_files_and_doubles_are_named(tmp_path):
    (tmp_path / PACKAGE).mkdir(parents=True)
    (tmp_path / PACKAGE / "module.py").write_text(SOURCE)
    one, gone = fault("LIMIT = 3", "LIMIT = 4"), fault("a", "b", file="gone.py")
    found = problems([one, one, gone], tmp_path)
    assert ["listed twice" in each for each in found] == [True, False]
    assert "no file gone.py" in found[1]


@pytest.fixture
def module(tmp_path):
    """The module above, imported from a file, and how to plant a fault in it."""
    file = tmp_path / "planted_module.py"
    file.write_text(SOURCE)
    module = ModuleType("planted_module")
    module.__file__ = str(file)
    exec(compile(SOURCE, str(file), "exec"), module.__dict__)

    def plant(old, new):
        patch = make_patch(file, SOURCE, fault(old, new).planted(SOURCE))
        return None if patch is None else Functions(tmp_path).apply(patch)

    return module, plant


def test_code_is_replaced_wherever_a_function_is_held(module):
    module, plant = module
    held, counter = module.clip, module.Counter()
    assert (held(5), counter.double, counter.more()) == (3, 2, 2)
    assert plant("number > LIMIT", "number < LIMIT")
    assert plant("self.step * 2", "self.step * 5")
    assert plant("number + 1", "number + 7\n            # a longer body")
    assert (held(5), held(1), counter.double, counter.more()) == (5, 3, 5, 8)


def test_what_runs_at_import_is_not_replaced(module):
    _, plant = module
    assert plant("LIMIT = 3", "LIMIT = 4") is None
    assert plant("step = 1", "step = 2") is None
    assert plant("def clip(number):", "def clip(number=1):") is None


@pytest.mark.parametrize(
    ("old", "new", "lines", "at_import"),
    [
        ("LIMIT = 3", "LIMIT = 4", {3}, True),
        ("number > LIMIT", "number < LIMIT", {26}, False),
        ("self.step * 2", "self.step", {15}, False),
        ("        return LIMIT\n", "        return 0\n", {27}, False),
        ("return number + 1", "return number", {20}, False),
        ("LIMIT:\n        return LIMIT", "LIMIT + 1:\n        return LIMIT", {26}, False),
        ("        return LIMIT\n    return number", "        return LIMIT", {28}, False),
    ],
)
def test_a_fault_knows_the_lines_of_its_statement(old, new, lines, at_import):
    found = fault(old, new).lines(SOURCE)
    assert (found.numbers, found.runs_at_import) == (lines, at_import)


def test_tests_that_reach_a_fault_come_nearest_and_shortest_first(tmp_path):
    (tmp_path / PACKAGE / "graphs").mkdir(parents=True)
    path = tmp_path / PACKAGE / "graphs/module.py"
    path.write_text(SOURCE)
    from tests.mutation.reach import digest

    lines = {"far": 1 << 26, "near": 1 << 26 | 1 << 15, "other": 1 << 15}
    names = {
        "far": "tests/models/test_a.py::far",
        "near": "tests/graphs/test_module.py::near",
        "other": "tests/b.py::other",
    }
    reach = Reach()
    reach.add(
        {
            "tests": dict.fromkeys(names.values(), 1.0),
            "failed": [],
            "sources": {"graphs/module.py": digest(path)},
            "lines": {"graphs/module.py": {names[key]: f"{bits:x}" for key, bits in lines.items()}},
        }
    )
    within, outside = (
        fault("number > LIMIT", "True", "graphs/module.py"),
        fault("LIMIT = 3", "LIMIT = 4", "graphs/module.py"),
    )
    assert reach.tests_of(within, tmp_path) == [names["near"], names["far"]]
    assert reach.tests_of(within, tmp_path, budget=1.5) == [names["near"]]
    assert set(reach.tests_of(outside, tmp_path)) == set(names.values())
    path.write_text(SOURCE + "\n")
    assert set(reach.tests_of(within, tmp_path)) == set(names.values())
    assert "tests.mutation.mutate" not in sys.modules


def spin():
    while True:
        pass


def test_sessions_end_with_their_codes(tmp_path):
    calls = {"ends": lambda: 7, "dies": lambda: os.kill(os.getpid(), signal.SIGKILL), "spins": spin}
    sessions = [Session(name, call, timeout=1.0) for name, call in calls.items()]
    ended = {session.name: code for session, code in run_sessions(sessions, workers=2, logs=tmp_path)}
    assert ended == {"ends": 7, "dies": -signal.SIGKILL, "spins": TIMED_OUT}


def test_an_error_of_the_program_is_not_taken_for_a_finding(tmp_path):
    broken = Session("broken", lambda: [][0], timeout=9.0)
    with pytest.raises(SystemExit, match="IndexError"):
        list(run_sessions([broken], workers=1, logs=tmp_path))


def test_no_tests_find_nothing():
    assert Collected(lambda tests: None).first_failure([]) is None


def test_tests_that_share_a_fixture_of_their_module_share_its_lines():
    def item(**scopes):
        fixtures = {name: [SimpleNamespace(scope=scope)] for name, scope in scopes.items()}
        return SimpleNamespace(_fixtureinfo=SimpleNamespace(name2fixturedefs=fixtures))

    tests = Collected(lambda tests: None)
    tests.items = {
        "first": item(packed="module", tmp_path="function"),
        "second": item(packed="module", trained="session"),
        "third": item(tmp_path="function", trained="session"),
    }
    assert tests.set_up_by(list(tests.items)) == {"first": set(), "second": {"first"}, "third": set()}
