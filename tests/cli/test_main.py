"""The front door: help, verbs, exit codes, and what is not imported for them."""

import json
import os
import subprocess
import sys

import pytest

from edgewise import plugins
from edgewise.cli import main as front
from edgewise.cli.verbs import BENCH, GENERIC
from edgewise.config.errors import CheckpointError, ConfigError, Interrupted, NumericalStop
from edgewise.terminal.console import Console, finite, table
from edgewise.terminal.parser import Parser


def python(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ},
    )


HEAVY = """
import sys
from edgewise.cli.main import main
code = main(sys.argv[1:])
print(sorted({"torch", "numpy", "rich"} & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--help", 0),
        ("train --help", 0),
        ("train graphwalk-ppo --help", 0),
        ("eval --help", 0),
        ("recipes list", 0),
        ("recipes show graphwalk-ppo", 0),
        ("envs list", 0),
        ("train graphwalk-ppo --seed x", 2),
        ("train nothing-like-it", 2),
        ("eval nowhere", 2),
    ],
)
def test_light_commands_import_nothing_heavy(command, code):
    done = python(HEAVY, *command.split())
    assert done.returncode == code, done.stderr
    assert done.stderr.strip().endswith("[]"), done.stderr


def test_importing_the_package_imports_nothing_heavy():
    done = python(
        "import sys, edgewise; assert edgewise.ConfigError; print({'torch', 'pydantic'} & set(sys.modules))"
    )
    assert done.stdout.strip() == "set()"


SYSTEMS = {system.name: system for system in plugins.systems() if system.verbs}
OF_SYSTEMS = {f"{name} {verb.name}": verb for name, system in SYSTEMS.items() for verb in system.verbs}
EVERY = {**GENERIC, **OF_SYSTEMS}


@pytest.mark.parametrize("verb", EVERY)
def test_every_verb_explains_itself_and_takes_json(verb, edgewise):
    outcome = edgewise(*verb.split(), "--help")
    assert edgewise("help", *verb.split()).out == outcome.out
    assert outcome.code == 0
    assert f"usage: edgewise {verb}" in outcome.out
    assert "--json" in outcome.out
    assert "examples:" in outcome.out
    assert EVERY[verb].summary[1:] in outcome.out


def test_the_overview_names_every_verb_and_every_system_with_verbs(edgewise):
    for arguments in ((), ("--help",), ("-h",)):
        outcome = edgewise(*arguments)
        assert outcome.code == 0
        assert all(verb.summary in outcome.out for verb in GENERIC.values() if verb is not BENCH)
        assert f"systems with verbs of their own: {', '.join(SYSTEMS)}" in outcome.out
        assert not any(verb.summary in outcome.out for verb in OF_SYSTEMS.values())


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_lists_its_verbs_environments_and_recipes(name, edgewise):
    for arguments in ((name,), (name, "--help"), ("help", name)):
        outcome = edgewise(*arguments)
        assert outcome.code == 0
        assert all(verb.summary in outcome.out for verb in SYSTEMS[name].verbs)
        assert all(each in outcome.out for each in (*SYSTEMS[name].environments, *SYSTEMS[name].recipes))
    wrong = edgewise(name, "no-such-verb")
    assert (wrong.code, wrong.out) == (2, "")
    assert f"edgewise {name} has no verb no-such-verb" in wrong.err


def test_help_of_a_recipe_shows_every_field_with_default_and_description(edgewise):
    from edgewise.config.schema import leaves
    from edgewise.experiments.recipes import recipe
    from edgewise.plugins import recipes

    for name in recipes():
        shown = " ".join(edgewise("train", name, "--help").out.split())
        for leaf in leaves(recipe(name).schema, recipe(name).config):
            assert f"{leaf.flag} <" in shown
            assert leaf.description, leaf.flag
            assert leaf.description in shown


def test_a_mistyped_verb(edgewise):
    outcome = edgewise("trian")
    assert outcome.code == 2
    assert "did you mean train?" in outcome.err
    assert outcome.out == ""


def test_version(edgewise):
    assert edgewise("--version").out.startswith("edgewise 0.")
    assert edgewise("--version", "--json").data["version"].startswith("0.")


@pytest.mark.parametrize("error", [ConfigError, CheckpointError, NumericalStop, Interrupted])
def test_every_error_has_its_exit_code_and_words(error, edgewise, monkeypatch):
    def fail(*_):
        raise error("the cause", hint="the remedy")

    monkeypatch.setattr(front, "_run", fail)
    outcome = edgewise("doctor", "--json")
    assert outcome.code == {ConfigError: 2, CheckpointError: 3, NumericalStop: 4, Interrupted: 130}[error]
    assert outcome.err == "error: the cause\n  hint: the remedy\n"
    assert outcome.data["error"] == {
        "message": "the cause",
        "hint": "the remedy",
        "exit_code": outcome.code,
        "problems": [],
    }


def test_a_keyboard_interrupt_outside_of_training(edgewise, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(front, "_run", interrupt)
    assert edgewise("doctor").code == 130
    assert edgewise("doctor", "--json").data["error"]["exit_code"] == 130


@pytest.mark.parametrize("verb", ["train", "eval", "resume", "report"])
def test_a_path_that_the_system_refuses_is_named(edgewise, verb):
    outcome = edgewise(verb, "x" * 300)
    assert outcome.code == 2
    assert "xxx" in outcome.err
    assert "File name too long" in outcome.err


def test_a_bug_is_not_hidden(edgewise, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(front, "_run", fail)
    with pytest.raises(ZeroDivisionError):
        edgewise("doctor")


def test_a_reader_that_goes_away_is_no_error():
    """The pipe is closed before anything is written, so the first write finds it broken."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "edgewise.cli", "recipes", "show"],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""


def test_settings_and_options_come_in_any_order():
    parser = Parser("train", "trains")
    parser.takes_settings = True
    parser.add_argument("source")
    parser.add_argument("--out")
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse(["--a.b", "-3", "--flag", "--out", "x", "src", "--c=1=2", "--dry-run", "--last"])
    assert (options.source, options.out, options.dry_run) == ("src", "x", True)
    assert options.settings == [("--a.b", "-3"), ("--flag", None), ("--c", "1=2"), ("--last", None)]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("baseline graphwalk --episodes 0", "--episodes: got 0, expected a whole number from 1"),
        ("baseline graphwalk --episodes many", "--episodes: got many, expected a whole number from 1"),
        ("baseline graphwalk --seed -1", "--seed: got -1, expected a whole number from 0"),
        (f"baseline graphwalk --seed {2**63}", f"from 0 to {2**63 - 1}"),
        (f"train graphwalk-ppo --evaluation.seed {2**63}", "--evaluation.seed"),
        ("arena run --games 0", "--games: got 0"),
        ("eval run --episodes 0", "--episodes: got 0"),
        ("envs check --threads 0", "--threads: got 0"),
        ("train graphwalk-ppo --total-frames", "training.total_frames: has no value; give a whole number"),
        ("train graphwalk-ppo --xyzzy 3", "unknown setting; `edgewise recipes show RECIPE`"),
        ("baseline graphwalk --unheard 3", "unknown setting; it has extra_edges, "),
    ],
)
def test_what_an_option_cannot_hold_is_refused_by_its_name(edgewise, command, complaint):
    outcome = edgewise(*command.split())
    assert outcome.code == 2
    assert complaint in outcome.err


def test_a_verb_without_settings_refuses_foreign_flags(edgewise):
    outcome = edgewise("doctor", "--bogus", "3")
    assert outcome.code == 2
    assert "--bogus" in outcome.err


def test_numbers_that_json_has_not_become_null(capsys):
    Console(as_json=True).show({"a": [float("nan"), 1.5], "b": float("inf")}, "")
    assert json.loads(capsys.readouterr().out) == {"a": [None, 1.5], "b": None}
    assert finite({1: (2,)}) == {"1": [2]}


def test_tables_align():
    assert table(["a", "number"], [["x", 1], ["long", 23]]) == "a     number\nx          1\nlong      23"
    assert table(["a"], []) == "a"
