"""Entry points of installed packages are listed without importing them, and imported by their name."""

import json
import os
import subprocess
import sys

import pytest

from edgewise import plugins
from edgewise.config.errors import ConfigError
from edgewise.plugins.installed import NO_AUTOLOAD, _read, entry_points
from edgewise.plugins.kinds import KINDS

GROUPS = [kind.group for kind in KINDS.values() if kind.group]
COUNT = 20


@pytest.fixture
def install(write, folder, monkeypatch):
    """Makes a package with entry points, on the path."""
    monkeypatch.syspath_prepend(folder / "site")

    def package(name, text, **points):
        module = write(f"site/{name}.py", text)
        lines = "\n".join(
            f"[edgewise.{group}]\n" + "\n".join(f"{key} = {value}" for key, value in listed.items())
            for group, listed in points.items()
        )
        write(f"site/{name}-1.0.dist-info/entry_points.txt", f"[console_scripts]\nx = y:z\n\n{lines}\n")
        return module

    return package


ENV = """
import edgewise as ew
class FarConfig(ew.Config):
    pass
class FarEnv(ew.GraphEnv[FarConfig]):
    def setup(self): ...
    def spawn(self, count): ...
    def advance(self, state, action): ...
    def observe(self, state): ...
def greedy(env):
    return "greedy"
BASELINES = {"greedy": greedy}
def configure(parser): ...
def run(options, console): ...
SYSTEM = ew.System("distance", verbs=(ew.Verb("go", "go far", __name__),))
"""


def test_an_entry_point_is_listed_without_importing_it(install):
    install("installed_far", "raise SystemError\n", envs={"far": "installed_far:FarEnv"})
    assert [point.name for point in entry_points("edgewise.envs")] == ["far"]
    assert plugins.environments()["far"].summary == "of the package installed_far"
    assert "installed_far" not in sys.modules


def test_an_entry_point_is_imported_by_its_name(install):
    install(
        "installed_far",
        ENV,
        envs={"far": "installed_far:FarEnv"},
        systems={"distance": "installed_far:SYSTEM"},
    )
    entry = plugins.environment("far")
    assert entry.env.__name__ == "FarEnv"
    assert entry.load_baselines()["greedy"](None) == "greedy"
    system = plugins.find("system", "distance")
    assert system.verbs[0].load() is sys.modules["installed_far"]


def test_autoload_can_be_switched_off(install, monkeypatch):
    install("installed_far", ENV, envs={"far": "installed_far:FarEnv"})
    monkeypatch.setenv(NO_AUTOLOAD, "1")
    with pytest.raises(ConfigError, match="no environment is called 'far'"):
        plugins.environment("far")
    assert "installed_far" not in sys.modules
    monkeypatch.setenv(NO_AUTOLOAD, "0")
    assert plugins.environment("far").env.__name__ == "FarEnv"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("installed_far:greedy", "is no environment"),
        ("installed_far:NoSuch", "fails while it is imported"),
        ("no_such_module:X", "fails while it is imported"),
        ("exits:X", "SystemExit"),
    ],
)
def test_an_entry_point_that_is_broken(install, write, value, words):
    write("site/exits.py", "raise SystemExit(1)\n")
    install("installed_far", ENV, envs={"far": value})
    with pytest.raises(ConfigError, match=words):
        plugins.environment("far")


def test_an_entry_point_never_stands_in_for_what_ships_with_edgewise(install):
    install(
        "hijacks",
        "raise SystemError\n",
        envs={"graphwalk": "hijacks:X"},
        algorithms={"ppo": "hijacks:X"},
        recipes={"graphwalk-ppo": "hijacks:X"},
        systems={"train": "hijacks:X", "queueing": "hijacks:X"},
    )
    from edgewise.cli.main import main

    assert plugins.environment("graphwalk").load("config").__module__.startswith("edgewise.")
    assert plugins.algorithms()["ppo"].load("config").__module__.startswith("edgewise.")
    assert plugins.find("recipe", "graphwalk-ppo").name == "graphwalk-ppo"
    assert main(["train", "--help"]) == main(["queueing", "--help"]) == 0
    assert "hijacks" not in sys.modules


@pytest.mark.parametrize("as_link", [True, False])
def test_nothing_is_installed_in_a_run_folder(install, write, folder, monkeypatch, as_link):
    """`python -m edgewise.cli` puts the working directory on the path."""
    write("run/config.json", "{}")
    write("run/versions.json", "{}")
    write("run/planted.py", "raise SystemError\n")
    write("run/planted-1.dist-info/entry_points.txt", "[edgewise.envs]\nplanted = planted:X\n")
    (folder / "linked").symlink_to(folder / "run")
    monkeypatch.chdir(folder / ("linked" if as_link else "run"))
    for place in ("", ".", str(folder / "linked")):
        monkeypatch.setattr(sys, "path", [place, *sys.path])
        assert entry_points("edgewise.envs") == ()


@pytest.mark.parametrize(
    "text", ["\0\1\2", "[edgewise.envs\nx = y", "[edgewise.envs]\nno equals\n# a = b\n", ""]
)
def test_a_file_of_entry_points_that_cannot_be_read(install, write, text):
    install("installed_far", ENV)
    write("site/installed_far-1.0.dist-info/entry_points.txt", text)
    assert entry_points("edgewise.envs") == ()


def test_help_imports_no_entry_point(install, folder):
    """Twenty packages, each of which leaves a file when it is imported."""
    for number in range(COUNT):
        name = f"plugin_{number}"
        text = f"open({str(folder / f'imported_{number}')!r}, 'w').close()\n"
        text += "import edgewise as ew\ndef configure(parser): ...\ndef run(options, console): return 0\n"
        text += f"SYSTEM = ew.System('system-{number}', verbs=(ew.Verb('go', 'go', __name__),))\n"
        groups = {group.removeprefix("edgewise."): {f"name-{number}": f"{name}:X"} for group in GROUPS}
        install(name, text, **{**groups, "systems": {f"system-{number}": f"{name}:SYSTEM"}})
    program = [sys.executable, "-m", "edgewise.cli"]
    env = {**os.environ, "PYTHONPATH": str(folder / "site")}

    def run(*words):
        return subprocess.run([*program, *words], env=env, capture_output=True, text=True, cwd=folder)

    shown = run("--help")
    assert shown.returncode == 0
    assert all(f"system-{number}" in shown.stdout for number in range(COUNT))
    listed = run("envs", "--json")
    assert {f"name-{number}" for number in range(COUNT)} <= {
        each["name"] for each in json.loads(listed.stdout)
    }
    assert list(folder.glob("imported_*")) == []
    assert run("system-7", "go").returncode == 0
    assert [file.name for file in folder.glob("imported_*")] == ["imported_7"]


def test_only_whole_lines_in_brackets_begin_a_group(write, folder):
    text = "[edgewise.envs]\none = a:A\n[half\n]other\n#two = b:B\n; three = c:C\nfour=d:D [x, y]\n"
    text += "[z]\nfive = e:E\n"
    write("site/odd-1.0.dist-info/entry_points.txt", text)
    found = _read(str(folder / "site"), "odd-1.0.dist-info")
    assert [(point.name, point.value, point.group) for point in found] == [
        ("one", "a:A", "edgewise.envs"),
        ("four", "d:D", "edgewise.envs"),
    ]
