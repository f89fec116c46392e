"""How many files an extension takes outside the package, as CONTRIBUTING.md says; each is trained with."""

import csv
import json

import pytest

from edgewise.cli.main import main
from edgewise.plugins.trust import forget

ENV = """
import torch

import edgewise as ew


class TinyConfig(ew.Config):
    max_steps: int = 4
    num_nodes: int = 4


class TinyEnv(ew.GraphEnv[TinyConfig]):
    '''Choose the marked node.'''

    def setup(self):
        edges = {edges}
        self.graph = ew.GraphSpec(self.config.num_nodes, node_features=1, edges=edges, position_dim=2)
        self.actions = {actions}

    def spawn(self, count):
        goal = torch.randint(self.config.num_nodes, (count,), generator=self.generator, device=self.device)
        return {{"goal": goal}}

    def advance(self, state, action):
        hit = {hit} == state["goal"]
        return ew.Transition({{}}, reward=hit.float(), terminated=hit)

    def observe(self, state):
        slots = torch.arange(self.config.num_nodes, device=state.device)
        x = (slots == state["goal"].unsqueeze(-1)).float().unsqueeze(-1)
        exists = torch.ones(x.shape[:-1], dtype=torch.bool, device=state.device)
        graph = {{"x": x, "pos": x.expand(*x.shape[:-1], 2), "node_mask": exists}}
        return {{"graph": graph, "metrics": {{"goal": state["goal"].float()}}}}
"""

RULE = """
import torch

import edgewise as ew
from edgewise.graphs.edges import Edges, EdgeSource


class Ring(EdgeSource):
    '''Edges around the ring of node slots.'''

    def __call__(self, graph):
        exists = graph["node_mask"]
        source = torch.arange(exists.shape[-1], device=exists.device)
        index = torch.stack((source, source.roll(-1))).expand(*exists.shape[:-1], 2, -1)
        return Edges(index, exists & exists.roll(-1, -1))

    def width(self, position_dim):
        return 0
"""

LAYOUT = """
from dataclasses import dataclass

import torch
from torchrl.data import Categorical

import edgewise as ew


@dataclass(frozen=True)
class ChooseTwo(ew.ActionLayout):
    '''Choose two nodes, the same one allowed: action `[*B, 2]` int64.'''

    def spec(self, graph, *, num_envs, num_edges, device):
        return Categorical(graph.num_nodes, shape=(num_envs, 2), dtype=torch.int64, device=device)

    def mask_shape(self, graph, *, num_edges):
        return (graph.num_nodes,)

    def sample(self, observation, graph, *, generator=None):
        exists = observation["graph", "node_mask"].float()
        drawn = torch.multinomial(exists.flatten(0, -2), 2, replacement=True, generator=generator)
        return drawn.view(*exists.shape[:-1], 2)

    def is_legal(self, action, observation, graph):
        return observation["graph", "node_mask"].gather(-1, action).all(-1)
"""

HEAD = """
from torch.distributions import Categorical, Independent

from edgewise.models.heads import Head, feed_forward


class ChooseTwoHead(Head):
    '''Two independent logits per node.'''

    def __init__(self, graph, config, *, layout):
        super().__init__(graph, config, layout=layout)
        self.score = feed_forward(config.encoder.hidden, config.head_hidden, 2, gain=config.policy_gain)

    def forward(self, h, tensordict):
        absent = ~tensordict["graph", "node_mask"].unsqueeze(-2)
        logits = self.score(h).transpose(-1, -2).masked_fill(absent, -1e9)
        return Independent(ModeCategorical(logits=logits), 1)


class ModeCategorical(Categorical):
    deterministic_sample = Categorical.mode
"""

ENCODER = """
from torch import nn

import edgewise as ew


class Plain(ew.GraphEncoder):
    '''One linear layer per node, without edges.'''

    def __init__(self, graph, config):
        super().__init__(graph, config)
        self.embed = nn.Linear(graph.node_features, config.hidden)

    def forward(self, graph):
        return self.embed(graph["x"]) * graph["node_mask"].unsqueeze(-1)

    def diagnostics(self, graph):
        return {}
"""

CONVOLUTION = """
from torch_geometric.nn import MessagePassing
from torch import nn


class MeanConv(MessagePassing):
    def __init__(self, in_channels, out_channels, **options):
        super().__init__(aggr="mean")
        self.linear = nn.Linear(in_channels, out_channels)

    def forward(self, x, edge_index):
        return self.linear(self.propagate(edge_index, x=x))
"""

ALGORITHM = """
import torch

import edgewise as ew


class OwnReinforceConfig(ew.Config):
    learning_rate: float = 1e-3


class OwnReinforce(ew.Algorithm):
    '''Policy gradient with the mean reward as baseline.'''

    config_class = OwnReinforceConfig

    def __init__(self, model, config):
        self.model, self.config = model, config
        self.optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)

    @classmethod
    def from_setup(cls, setup):
        return cls(setup.make_model(), setup.config)

    @property
    def policy(self):
        return self.model.actor

    def learn(self, batch):
        reward = batch["next", "reward"].squeeze(-1)
        log_prob = self.policy.get_dist(batch).log_prob(batch["action"])
        loss = -(log_prob * (reward - reward.mean())).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss.detach()}

    def state_dict(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
"""

LOGGER = """
from pathlib import Path

import edgewise as ew


class Lines(ew.Callback):
    '''One line per batch.'''

    def on_batch(self, frames, metrics):
        with open("lines.txt", "a") as file:
            file.write(f"{frames}\\n")
"""

BASELINE = """
import torch


def first_legal(env):
    def policy(root):
        return root.set("action", root["action_mask"].int().argmax(-1))

    return policy


def helper(state):
    raise SystemError
"""

VERB = """
import edgewise as ew


def configure(parser):
    parser.add_argument("who")


def run(options, console):
    console.show({"hello": options.who}, f"hello {options.who}")
    return 0


SYSTEM = ew.System("mine", verbs=(ew.Verb("greet", "say hello", __name__),))
"""

RECIPE = """
from dataclasses import replace

from edgewise.experiments.recipes import recipe

RECIPE = replace(recipe("graphwalk-ppo"), name="walk-quick", summary="a short walk")
"""

FLAGS = ["--total-frames=32", "--num-envs=4", "--rollout-length=8"]
FLAGS += ["--model.encoder.hidden=8", "--model.encoder.heads=2", "--model.encoder.layers=1"]
FLAGS += ["--evaluation.every=none", "--evaluation.episodes=2", "--tensorboard=false"]
PPO = ["--epochs=1", "--minibatch-size=16"]


def environment(*, edges="ew.Radius(1.0)", actions="ew.ChooseNode()", hit="action", imports=""):
    return imports + ENV.format(edges=edges, actions=actions, hit=hit)


@pytest.fixture
def files(write, folder):
    """Writes the files of an extension, as many as the table says."""

    def to(count, **texts):
        for name, text in texts.items():
            write(f"{name}.py", text)
        assert len(list(folder.glob("*.py"))) == count

    return to


def trains(*words):
    baselines = [] if any("baselines" in word for word in words) else ["--evaluation.baselines=[]"]
    assert main(["train", *words, *FLAGS, *baselines, "--out", "run"]) == 0


def test_an_environment_is_one_file(files, folder):
    files(1, tiny=environment())
    trains("tiny.py", *PPO)
    assert main(["eval", "run", "--plugin", "tiny.py", "--episodes", "2"]) == 0
    assert main(["envs", "check", "tiny.py"]) == 0


def test_a_metric_of_the_report_is_in_that_file(files, folder):
    files(1, tiny=environment())
    trains("tiny.py", *PPO)
    evaluation = json.loads(next((folder / "run" / "evaluations").glob("*.json")).read_text())
    assert "goal" in evaluation["metrics"]
    with open(folder / "run" / "metrics.csv") as table:
        assert any("goal" in name for name in next(csv.reader(table)))
    assert "goal" in (folder / "run" / "report.html").read_text()


def test_an_edge_rule_is_one_file(files, write):
    write("tiny.py", environment(edges="Ring()", imports="from ring import Ring\n"))
    files(2, ring=RULE)  # the rule, and the environment that uses it
    trains("tiny.py", *PPO)


def test_an_action_layout_is_two_files(files, write):
    imports = "from choose_two import ChooseTwo\n"
    write("tiny.py", environment(actions="ChooseTwo()", hit="action[..., 0]", imports=imports))
    files(3, choose_two=LAYOUT + "\n    head = 'choose_two_head:ChooseTwoHead'\n", choose_two_head=HEAD)
    trains("tiny.py", *PPO)


@pytest.mark.parametrize("kind", ["plain.py:Plain", "plain.py", "plain"])
def test_an_encoder_is_one_file(files, kind):
    files(1, plain=ENCODER)
    plugin = ["--plugin", "plain.py"] if kind == "plain" else []
    trains("graphwalk", "--model.encoder.kind", kind, *plugin, *PPO)
    assert main(["eval", "run", "--plugin", "plain.py", "--episodes", "2"]) == 0


def test_a_convolution_is_one_file(files):
    files(1, mean_conv=CONVOLUTION)
    trains("graphwalk", "--model.encoder.kind=gnn", "--model.encoder.conv=mean_conv.py:MeanConv", *PPO)


@pytest.mark.parametrize("name", ["policy_gradient.py", "policy_gradient.py:OwnReinforce", "ownreinforce"])
def test_an_algorithm_is_one_file(files, folder, name):
    files(1, policy_gradient=ALGORITHM)
    trains("graphwalk", "--algorithm", name, "--plugin", "policy_gradient.py", "--learning-rate=0.01")
    assert main(["resume", "run", "--plugin", "policy_gradient.py", "--total-frames", "64"]) == 0
    assert json.loads((folder / "run" / "code.json").read_text())[0]["address"] == name


def test_a_logger_is_one_file_and_is_not_restored(files, folder):
    files(1, lines=LOGGER)
    trains("graphwalk", "--logger", "lines.py:Lines", *PPO)
    written = (folder / "lines.txt").read_text()
    assert written.splitlines()[-1] == "32"
    assert main(["resume", "run", "--total-frames", "64"]) == 0
    assert (folder / "lines.txt").read_text() == written


def test_a_baseline_is_one_file(files, capsys):
    files(1, stay=BASELINE)
    assert (
        main(["baseline", "graphwalk", "--policy", "stay.py:first_legal,random", "--episodes=2", "--json"])
        == 0
    )
    assert [each["policy"] for each in json.loads(capsys.readouterr().out)] == [
        "stay.py:first_legal",
        "random",
    ]
    for name in ("stay.py:helper", "stay.py:torch", "other.py:first_legal"):
        assert main(["baseline", "graphwalk", "--policy", name, "--episodes=2"]) == 2


def test_a_baseline_in_a_run_needs_its_plug_in(files, capsys):
    files(1, stay=BASELINE)
    trains("graphwalk", "--plugin=stay.py", *PPO, "--evaluation.baselines=[stay.py:first_legal]")
    forget()
    capsys.readouterr()
    assert main(["resume", "run", "--total-frames", "64"]) == 2
    assert "--plugin stay.py" in capsys.readouterr().err
    assert main(["resume", "run", "--total-frames", "64", "--plugin", "stay.py"]) == 0


def test_a_verb_is_one_file(files, capsys):
    files(1, greet=VERB)
    assert main(["mine", "greet", "world", "--plugin", "greet.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"hello": "world"}


def test_a_verb_of_the_projects_file(files, write, capsys):
    files(1, greet=VERB)
    write("edgewise.toml", 'plugins = ["greet.py"]')
    assert main(["mine", "greet", "world"]) == 0
    assert capsys.readouterr().out == "hello world\n"


@pytest.mark.parametrize("name", ["walk_quick.py", "walk_quick.py:RECIPE", "walk-quick"])
def test_a_recipe_is_one_file(files, name):
    files(1, walk_quick=RECIPE)
    trains(name, "--plugin", "walk_quick.py", *PPO)
    assert main(["eval", "run", "--plugin", "walk_quick.py", "--episodes", "2"]) == 0
