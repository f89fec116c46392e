"""The default replay: every kind of graph and action gives a valid picture, with what was chosen marked."""

import json
from pathlib import Path

import pytest
import torch
from tensordict import TensorDict
from tests.report.browser import drive, needs_chromium
from tests.report.synthetic import make_run

import edgewise as ew
from edgewise.data.random_policy import RandomPolicy
from edgewise.evaluation.evaluate import evaluate
from edgewise.evaluation.replays import graph_replay as drawing
from edgewise.evaluation.replays import graph_scene
from edgewise.evaluation.replays.check import applied, check
from edgewise.evaluation.replays.files import save
from edgewise.evaluation.replays.graph_layout import layout, project
from edgewise.experiments.replays import replay_function
from edgewise.plugins import Environment, environment, import_file
from edgewise.report.page import write_report

TSP = Path(__file__).parents[3] / "examples" / "tsp" / "tsp.py"


class LampsConfig(ew.Config):
    """Settings of the lamps."""

    layout: str = "edges"
    max_steps: int = 4


class LampsEnv(ew.GraphEnv[LampsConfig]):
    """Five of six lamps on a directed ring; what is done to them follows the setting."""

    def setup(self):
        kind = self.config.layout
        edges = ew.Explicit(num_edges=5)
        self.graph = ew.GraphSpec(6, 2, edges=edges, node_types=2, position_dim=3 if kind == "agents" else 0)
        self.actions = {
            "edges": ew.EdgesDiscrete(3),
            "groups": ew.ChooseEdgePerGroup(2, 2),
            "edge": ew.ChooseFromSet(4, members="edges"),
            "node": ew.ChooseFromSet(4),
            "any node": ew.ChooseNode(),
            "agents": ew.AgentsContinuous(3, dim=2),
            "commands": ew.AgentsDiscrete(3, 4),
        }[kind]

    def spawn(self, count):
        return {"light": torch.rand(count, 6, generator=self.generator, device=self.device)}

    def advance(self, state, action):
        shape = (len(state), self.num_agents) if self.num_agents else (len(state),)
        return ew.Transition({"light": 1 - state["light"]}, reward=torch.ones(shape))

    def observe(self, state):
        count = len(state)
        ring = torch.arange(5)
        graph = {
            "x": torch.stack((state["light"], torch.ones_like(state["light"])), -1),
            "node_mask": (torch.arange(6) < 5).expand(count, 6),
            "node_type": (torch.arange(6) % 2).expand(count, 6),
            "edge_index": torch.stack((ring, (ring + 1) % 5)).expand(count, 2, 5),
            "edge_mask": torch.ones(count, 5, dtype=torch.bool),
        }
        if self.graph.position_dim:
            graph["pos"] = torch.stack(
                (state["light"], state["light"], torch.arange(6.0).expand(count, 6)), -1
            )
        seen = {
            "graph": graph,
            "metrics": {"lit": state["light"].mean(-1), "never": torch.full((count,), torch.nan)},
        }
        if isinstance(self.actions, ew.ChooseFromSet):
            seen["choices"] = torch.tensor([2, 4, 0, 9]).expand(count, 4)
        return seen

    def mask(self, state):
        if isinstance(self.actions, ew.ChooseFromSet):
            return torch.tensor([True, True, True, False]).expand(len(state), 4)
        if isinstance(self.actions, ew.ChooseEdgePerGroup):
            return torch.ones(len(state), 2, 3, dtype=torch.bool)
        return None


def played(env, entry=None, policy=None):
    """The replay of one random episode, drawn by the default."""
    entry = entry or Environment(env=type(env), replay=None)
    policy = policy or RandomPolicy(env.actions, env.graph)
    found = evaluate(env, policy, episodes=env.num_envs, seed=1, record=1)
    draw = replay_function(policy, env, entry=entry)
    return check(draw(found.recordings[0], found.recorded_steps[0])), found


def shown(replay):
    """The layers in every frame."""
    layers = {layer["name"]: layer for layer in replay["layers"]}
    frames = []
    for frame in replay["frames"]:
        layers = {name: applied(layer, frame.get(name, {})) for name, layer in layers.items()}
        frames.append(layers)
    return frames


def test_choosing_nodes_at_their_positions():
    module = import_file(TSP)
    env = module.TSPEnv(module.TSPConfig(num_cities=(5, 9)), num_envs=2, seed=3)
    replay, found = played(env, _without(module.TSPEnv))
    states, steps = found.recordings[0], found.recorded_steps[0]
    nodes = int(states["exists"][0].sum())
    frames = shown(replay)
    assert len(frames) == len(states) == nodes
    assert len(frames[0]["nodes"]["x"]) == nodes
    place = env.observe(states)["graph"]["pos"][0, :nodes, 0]
    assert frames[0]["nodes"]["x"] == pytest.approx(place.tolist(), rel=1e-3)
    for frame, chosen in zip(frames, steps["action"].tolist(), strict=False):
        assert frame["chosen"]["x"] == [frame["nodes"]["x"][chosen]]
        assert frame["nodes"]["outline"][chosen] == "good"
    assert set(frames[-1]["nodes"]["outline"]) == {"muted"}
    series = {line["name"]: line["values"] for line in replay["series"]}
    assert series["return so far"][0] == 0
    assert series["return so far"][-1] == pytest.approx(found.returns[0], rel=1e-3)
    assert series["tour"][-1] == pytest.approx(-found.returns[0], rel=1e-3)
    assert replay["captions"][0] == f"step 0: node {int(steps['action'][0])}"
    assert replay["smooth"] is False


def _without(env):
    """The declaration of an environment whose replay function is left out."""

    class Bare(Environment):
        def load(self, part):
            return None if part == "replay" else super().load(part)

    return Bare(env=env)


def test_a_graph_without_positions_gets_places_that_stay():
    env = ew.make_env("graphwalk", num_envs=2, seed=0, num_nodes=(5, 8))
    replay, found = played(env, _without(type(env)))
    frames = shown(replay)
    assert len(frames[0]["nodes"]["x"]) == int(found.recordings[0]["node_mask"][0].sum())
    assert all(frame["nodes"]["x"] == frames[0]["nodes"]["x"] for frame in frames)
    edges = frames[0]["edges"]
    assert len(edges["source"]) == int(found.recordings[0]["edge_mask"][0].sum()) // 2
    assert edges["directed"] is False
    again, _ = played(env, _without(type(env)))
    assert again == replay


def test_an_environment_keeps_its_own_replay():
    env = ew.make_env("graphwalk", num_envs=2, seed=0)
    replay, _ = played(env, environment("graphwalk"))
    assert {layer["name"] for layer in replay["layers"]} == {"links", "nodes", "walker"}


@pytest.mark.parametrize("layout", ["edges", "groups", "edge", "node", "any node", "agents", "commands"])
def test_every_action_layout_is_drawn(layout):
    env = LampsEnv(LampsConfig(layout=layout), num_envs=2, seed=0)
    replay, found = played(env)
    frames, action = shown(replay), found.recorded_steps[0]["action"]
    assert len(frames[0]["nodes"]["x"]) == 5
    assert frames[0]["nodes"]["shape"] == ["circle", "square"] * 2 + ["circle"]
    assert frames[0]["edges"]["directed"] is True
    assert len({str(frame["nodes"]["color"]) for frame in frames}) > 1
    if layout == "edges":
        assert frames[0]["edges"]["color"] == [choice / 2 for choice in action[0].tolist()]
    if layout == "groups":
        chosen = [2 * group + choice - 1 for group, choice in enumerate(action[0].tolist()) if choice]
        assert frames[0]["chosen edges"]["source"] == chosen
    if layout == "edge":
        assert frames[0]["chosen edges"]["source"] == [[2, 4, 0, 9][int(action[0])]]
    if layout == "node":
        assert [colour == "good" for colour in frames[0]["nodes"]["outline"]] == [
            True,
            False,
            True,
            False,
            True,
        ]
    if layout == "any node":
        assert frames[0]["chosen"]["x"] == [frames[0]["nodes"]["x"][int(action[0])]]
    if layout == "agents":
        assert replay["smooth"] is True
        assert len(frames[0]["arrows"]["x"]) == 3
        assert frames[-1]["arrows"]["x"] == []
    if layout == "commands":
        assert frames[0]["nodes"]["label"][:3] == [str(choice) for choice in action[0].tolist()]


def test_agents_return_so_far_is_their_mean():
    replay, found = played(LampsEnv(LampsConfig(layout="agents"), num_envs=2, seed=0))
    series = {line["name"]: line["values"] for line in replay["series"]}
    assert series["return so far"] == [0, 1, 2, 3, 4]
    assert found.returns[0] == 4
    assert series["never"] == [None] * 5


def test_without_recorded_actions_nothing_is_marked():
    env = ew.make_env("graphwalk", num_envs=1, seed=0)
    found = evaluate(env, RandomPolicy(env.actions, env.graph), episodes=1, seed=0, record=1)
    draw = replay_function(RandomPolicy(env.actions, env.graph), env, entry=_without(type(env)))
    replay = check(draw(found.recordings[0]))
    assert shown(replay)[0]["chosen"]["x"] == []


def test_absent_nodes_are_not_drawn():
    spec = ew.GraphSpec(3, 1, edges=ew.Explicit(1), position_dim=2)
    graph = spec.zeros(3)
    graph["node_mask"] = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 0]]).bool()
    graph["x"][0] = torch.tensor([[torch.nan], [torch.inf], [0.0]])
    graph["pos"] = torch.tensor(
        [[[0.0, 0], [1, 1], [9, 9]], [[0, 0], [torch.nan, torch.inf], [9, 9]], [[0, 0], [2, 2], [9, 9]]]
    )
    replay = check(
        drawing.graph_replay(TensorDict({"graph": graph}, [3]), spec, ew.ChooseNode(), title="lamps")
    )
    frames = shown(replay)
    assert [frame["nodes"]["opacity"] for frame in frames] == [[1, 1], [1, 0], [1, 1]]
    assert [frame["nodes"]["x"] for frame in frames] == [[0, 1], [0, 1], [0, 2]]


def test_large_episodes_stay_small(monkeypatch):
    monkeypatch.setattr(drawing, "MAX_FRAMES", 7)
    monkeypatch.setattr(drawing, "MAX_EDGES", 4)
    monkeypatch.setattr(graph_scene, "MAX_EDGES", 4)
    monkeypatch.setattr(graph_scene, "MAX_NODES", 6)
    env = ew.make_env("graphwalk", num_envs=1, seed=0, num_nodes=30, max_steps=40)
    replay, found = played(env, _without(type(env)))
    assert len(replay["frames"]) == min(7, len(found.recordings[0]))
    assert replay["time"][-1] == len(found.recordings[0]) - 1
    assert len(replay["layers"][0]["source"]) <= 4
    assert "first 6 of 30 nodes" in replay["caption"]


def test_a_layout_keeps_neighbours_together():
    ring = torch.stack((torch.arange(12), (torch.arange(12) + 1) % 12))
    place = layout(12, ring)
    apart = torch.cdist(place, place)
    joined = torch.tensor([apart[a, b] for a, b in ring.T.tolist()])
    assert joined.max() < apart[torch.arange(6), torch.arange(6) + 6].min() / 2
    assert torch.equal(layout(12, ring), place)
    assert layout(5, torch.empty(2, 0, dtype=torch.int64)).isfinite().all()
    assert [layout(count, torch.empty(2, 0, dtype=torch.int64)).shape[0] for count in (0, 1, 2, 1000)] == [
        0,
        1,
        2,
        1000,
    ]


def test_positions_of_any_dimension_are_projected():
    for width in (1, 2, 3, 5):
        assert project(torch.rand(4, width)).shape == (4, 2)


@needs_chromium
def test_the_report_plays_a_default_replay(tmp_path):
    run = make_run(tmp_path / "walk-0", rows=20)
    env = LampsEnv(LampsConfig(layout="any node"), num_envs=2, seed=0)
    replay, _ = played(env)
    for path in (run / "replays").iterdir():
        path.unlink()
    save(replay, run / "replays" / "000000200000-0.json")
    seen = drive(
        write_report(run),
        """
        const scene = document.querySelector(".scene");
        const blank = document.createElement("canvas");
        blank.width = scene.width; blank.height = scene.height;
        const first = scene.toDataURL();
        scene.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
        await new Promise((resolve) => setTimeout(resolve, 200));
        const text = document.body.textContent.includes("return so far");
        const said = [first !== blank.toDataURL(), scene.toDataURL() !== first, text];
        document.body.dataset.said = said.join(" ");
        """,
    )
    assert seen.console == []
    assert 'data-said="true true true"' in seen.dom


def test_training_without_a_replay_function_records_one(tmp_path):
    run = ew.train(
        LampsEnv,
        folder=tmp_path / "run",
        total_frames=64,
        num_envs=4,
        rollout_length=8,
        episodes=2,
        layout="any node",
        progress=False,
    )
    files = sorted((run.path / "replays").glob("*.json"))
    assert files
    assert check(json.loads(files[-1].read_text()))["title"] == "lamps"
