"""Parts that settings name work by address, by the name in a plug-in, and as an entry point of a package."""

import json

import pytest
from tests.extensions.test_one_file_each import BASELINE, FLAGS, FORMAT, LAYOUT, MODE, PPO, RULE, environment

import edgewise as ew
from edgewise.cli.main import main
from edgewise.plugins.isolation import isolated

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

REPLAY = """
def drawn(states):
    return {
        "format": "edgewise-replay/1",
        "title": "drawn from outside",
        "frames": [{"nodes": {"x": [0.0], "y": [0.0]}}],
    }
"""

CHOOSING = environment(
    edges="ew.make_edge_source(self.config.edges, **self.config.arguments)",
    actions="ew.make_action_layout(self.config.acts)",
    hit="(action if action.dim() == 1 else action[..., 0])",
).replace(
    "num_nodes: int = 4",
    "num_nodes: int = 4\n    edges: str = 'radius'\n    arguments: dict = {'radius': 1.0}\n"
    "    acts: str = 'choosenode'",
)

TWO_HEADED = (
    LAYOUT
    + """

class Pair(ew.Head):
    def __init__(self, graph, config, *, layout):
        super().__init__(graph, config, layout=layout)
        self.score = torch.nn.Linear(config.encoder.hidden, 2)

    def forward(self, h, tensordict):
        absent = ~tensordict["graph", "node_mask"].unsqueeze(-2)
        logits = self.score(h).transpose(-1, -2).masked_fill(absent, -1e9)
        return torch.distributions.Independent(ModeCategorical(logits=logits), 1)


class ModeCategorical(torch.distributions.Categorical):
    deterministic_sample = torch.distributions.Categorical.mode


ChooseTwo.head = Pair
"""
)


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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("setting", "module", "text", "group", "cls"),
    [
        ("edges", "ring", RULE, "edge_rules", "Ring"),
        ("acts", "two", TWO_HEADED, "action_layouts", "ChooseTwo"),
    ],
    ids=["edge rule", "action layout"],
)
def test_edge_rules_and_action_layouts(named, write, folder, way, setting, module, text, group, cls):
    write("tiny.py", CHOOSING)
    name, allowed = named(way, module, text, group, cls)
    arguments = ["--arguments={}"] if setting == "edges" else []
    assert trains("tiny.py", f"--{setting}={name}", *arguments, *allowed) == 0
    used = json.loads((folder / "run" / "code.json").read_text())
    assert name in [record["address"] for record in used] or way == "entry point"
    run = ew.open_run("run").policy().env
    assert cls in (type(run.graph.edges).__name__, type(run.actions).__name__)


def test_what_a_run_names_is_not_imported(named, write, capsys):
    write("tiny.py", CHOOSING)
    name, _ = named("address", "ring", RULE, "edge_rules", "Ring")
    assert trains("tiny.py", f"--edges={name}", "--arguments={}") == 0
    with isolated():
        capsys.readouterr()
        assert main(["eval", "run", "--plugin=tiny.py", "--episodes=2"]) == 2
        assert "--plugin ring.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tiny.py", "--edges=raduis"], "did you mean radius?"),
        (["tiny.py", "--edges=explicit"], "Explicit.__init__() got an unexpected keyword argument"),
        (["graphwalk", "--model.head=sharp.py:Shrap"], "did you mean Sharp?"),
        (["graphwalk", "--model.head=sharpish"], 'got "sharpish", expected auto'),
        (["graphwalk", "--model.head=tiny.py:TinyEnv"], "is no head"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(write, capsys, words, said):
    write("tiny.py", CHOOSING)
    write("sharp.py", HEAD)
    assert trains(*words) == 2
    assert said in capsys.readouterr().err


def test_a_name_of_ours_is_not_taken(write):
    module = write("mine.py", RULE.replace("Ring", "Radius"))
    from edgewise.plugins import use_plugin

    found = use_plugin(str(module)).Radius
    assert type(ew.make_edge_source("radius", radius=1.0)) is ew.Radius
    with pytest.raises(ew.ConfigError, match="ships with edgewise"):
        ew.register(found, name="radius")
    with pytest.raises(ew.ConfigError, match="unexpected keyword argument"):
        ew.make_edge_source("radius", reach=1.0)


@pytest.mark.parametrize("way", ["plug-in", "entry point"])
def test_an_evaluation_mode(write, install, capsys, way):
    assert trains("graphwalk") == 0
    plugin = []
    if way == "plug-in":
        plugin = ["--plugin", write("count_runs.py", MODE).name]
    else:
        install("count_runs", MODE, "evaluation_modes", count="")
    capsys.readouterr()
    assert main(["eval", "run", "--count", "--json", *plugin]) == 0
    assert json.loads(capsys.readouterr().out) == {"count": 1}


@pytest.mark.parametrize("way", ["plug-in", "entry point"])
def test_a_file_format(write, install, capsys, way):
    write("walks.yaml", "format: walks\nwalks: [3, 4]\n")
    plugin = []
    if way == "plug-in":
        plugin = ["--plugin", write("walks.py", FORMAT).name]
    else:
        install("walks", FORMAT, "file_formats", walks="")
    assert main(["train", "walks.yaml", *plugin, "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]
    assert [run["config"]["seed"] for run in found] == [3, 4]


def test_baselines_and_replays_of_a_package(install, folder, capsys):
    install("site_stay", BASELINE + REPLAY, "baselines", **{"graphwalk.first": ":first_legal"})
    install("site_drawn", REPLAY, "replays", graphwalk=":drawn")
    words = ["train", "graphwalk", *FLAGS, *PPO, "--evaluation.baselines=[first]", "--out", "run"]
    assert main(words) == 0
    replay = json.loads(next((folder / "run" / "replays").glob("*.json")).read_text())
    assert replay["title"] == "drawn from outside"
    capsys.readouterr()
    assert main(["eval", "run", "--baselines=all", "--episodes=2", "--json"]) == 0
    assert "first" in capsys.readouterr().out
