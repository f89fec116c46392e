"""Parts that settings name work by address, by the name in a plug-in, and as an entry point of a package."""

import json

import pytest
from tests.extensions.test_one_file_each import FLAGS, PPO, environment
from tests.isolation import isolated

import edgewise as ew
from edgewise.cli.main import main

HEAD = """
import edgewise as ew
from edgewise.models.heads import ChooseNodeHead


class Sharp(ChooseNodeHead):
    '''Logits ten times as large.'''

    def forward(self, h, tensordict):
        return super().forward(10 * h, tensordict)


class Flat(ew.Head):
    '''A head that has forgotten its action.'''

    def forward(self, h, tensordict):
        raise ValueError("it has no actions")
"""


@pytest.fixture
def install(write, folder, monkeypatch):
    """Makes a package with one module and entry points to it, on the path."""

    def package(module, text, group, **points):
        monkeypatch.syspath_prepend(folder / "site")
        write(f"site/{module}.py", text)
        listed = "".join(f"{name} = {module}{value}\n" for name, value in points.items())
        write(f"site/{module}-1.0.dist-info/entry_points.txt", f"[edgewise.{group}]\n{listed}")

    return package


@pytest.fixture
def named(write, install):
    """Provides a part in one of three ways; returns how settings name it, and the words that allow it."""

    def provide(way, module, text, group, cls):
        if way == "entry point":
            install(f"site_{module}", text, group, **{cls.lower(): f":{cls}"})
            return cls.lower(), []
        file = str(write(f"{module}.py", text).name)
        return (f"{file}:{cls}", []) if way == "address" else (cls.lower(), ["--plugin", file])

    return provide


def trains(*words):
    return main(["train", *words, *FLAGS, *PPO, "--evaluation.baselines=[]", "--out", "run"])


def recorded(folder):
    return [record["address"] for record in json.loads((folder / "run" / "code.json").read_text())]


WAYS = ["address", "name", "entry point"]


@pytest.mark.parametrize("way", WAYS)
def test_a_head(named, folder, capsys, way):
    name, allowed = named(way, "sharp", HEAD, "heads", "Sharp")
    assert trains("graphwalk", f"--model.head={name}", *allowed) == 0
    assert recorded(folder) == [name]
    assert type(ew.open_run("run").policy().policy.head).__name__ == "Sharp"
    with isolated():
        capsys.readouterr()
        assert main(["eval", "run", "--episodes=2"]) == (2 if way == "address" else 0)
        assert ("--plugin sharp.py" in capsys.readouterr().err) == (way == "address")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["graphwalk", "--model.head=sharp.py:Shrap"], "did you mean Sharp?"),
        (["graphwalk", "--model.head=sharpish"], 'got "sharpish", expected auto'),
        (["graphwalk", "--model.head=tiny.py:TinyEnv"], "is no head"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(write, capsys, words, said):
    write("tiny.py", environment())
    write("sharp.py", HEAD)
    assert trains(*words) == 2
    assert said in capsys.readouterr().err
