"""The project's own file grants, a run folder never does."""

import json

import pytest

from edgewise.config.errors import ConfigError
from edgewise.plugins import Address, allow, allow_typed, project_plugins
from edgewise.plugins.trust import is_allowed

LISTED = '[tool.edgewise]\nplugins = ["mine.py", "package.module", "sub/more.py:Name"]\n'


@pytest.mark.parametrize("name", ["pyproject.toml", "edgewise.toml"])
def test_the_projects_file(write, folder, name):
    write(name, LISTED if name == "pyproject.toml" else LISTED.partition("\n")[2])
    assert project_plugins() == [f"{folder}/mine.py", "package.module", f"{folder}/sub/more.py:Name"]


def test_a_project_without_plug_ins(write):
    assert project_plugins() == []
    write("pyproject.toml", "[project]\nname = 'x'\n")
    assert project_plugins() == []
    write("pyproject.toml", "tool = 3\n")
    assert project_plugins() == []


@pytest.mark.parametrize(
    "marks",
    [
        {"config.json": "{}", "versions.json": "{}"},
        {"config.json": "{}", "checkpoints/x": ""},
        {"config.json": json.dumps({"env_name": "graphwalk"})},
        {"config.json": "not JSON"},
        {"config.json": "[" * 100_000},
    ],
)
@pytest.mark.parametrize("inside", [".", "checkpoints"])
def test_a_file_in_a_run_folder_grants_nothing(write, folder, monkeypatch, caplog, marks, inside):
    for name, text in marks.items():
        write(f"run/{name}", text)
    write(f"run/{inside}/pyproject.toml", LISTED)
    write(f"run/{inside}/edgewise.toml", 'plugins = ["mine.py"]')
    monkeypatch.chdir(folder / "run" / inside)
    assert project_plugins() == []
    assert "--plugin" in caplog.text


def test_nor_does_a_link_out_of_one(write, folder, monkeypatch):
    write("run/config.json", "{}")
    write("run/versions.json", "{}")
    write("run/files/x.toml", LISTED)
    (folder / "pyproject.toml").symlink_to("run/files/x.toml")
    assert project_plugins() == []
    (folder / "run" / "edgewise.toml").symlink_to(write("elsewhere.toml", 'plugins = ["mine.py"]'))
    monkeypatch.chdir(folder / "run")
    assert project_plugins() == []


def test_a_config_of_another_program_is_no_run(write):
    write("config.json", '{"theme": "dark"}')
    write("pyproject.toml", LISTED)
    assert len(project_plugins()) == 3


@pytest.mark.parametrize("text", ["plugins = 3", "plugins = [3]", "plugins = 'mine.py'", "plugins ="])
def test_a_file_that_cannot_be_read(write, text):
    write("edgewise.toml", text)
    with pytest.raises(ConfigError):
        project_plugins()


@pytest.mark.parametrize(
    "words",
    [["train", "mine.py:Env"], ["train", "x", "--algorithm", "mine.py"], ["--algorithm=mine.py:A"]],
)
def test_what_is_typed_is_allowed(words):
    allow_typed(words)
    assert is_allowed(Address("mine.py", "Other"))
    assert not is_allowed(Address("other.py", "Env"))


@pytest.mark.parametrize("words", [["runs/mine"], ["mine"], ["--out", "mine/x"], ["mine.yaml"]])
def test_other_words_allow_nothing(words):
    allow_typed(words)
    assert not is_allowed(Address("mine", "Env"))
    assert not is_allowed(Address("mine.py", "Env"))


def test_a_package_allows_its_modules_and_no_other():
    allow("package.sub")
    assert is_allowed(Address("package.sub.deeper", "X"))
    assert not is_allowed(Address("package", "X"))
    assert not is_allowed(Address("package.subtle", "X"))
