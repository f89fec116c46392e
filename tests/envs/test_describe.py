"""Environments that describe an instance once."""

import pytest
import torch

import edgewise as ew
from edgewise.graphs.step_spec import StepSpec


class PickConfig(ew.Config):
    """Settings of picking."""

    num_nodes: ew.WholeRange = (3, 5)
    """Nodes."""


class PickEnv(ew.GraphEnv[PickConfig]):
    """Pick every node once; each is worth its value."""

    described = 0

    def setup(self):
        self.graph = ew.GraphSpec(ew.upper_bound(self.config.num_nodes), node_features=1)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        slots = torch.arange(self.graph.num_nodes)
        exists = slots < self.sample_int(self.config.num_nodes, count).unsqueeze(-1)
        value = torch.rand(*exists.shape, generator=self.generator)
        last = torch.full((count,), -1)
        return {"value": value, "exists": exists, "picked": torch.zeros_like(exists), "last": last}

    def advance(self, state, action):
        picked = state["picked"].scatter(-1, action.unsqueeze(-1), True)
        reward = state["value"].gather(-1, action.unsqueeze(-1)).squeeze(-1)
        done = (picked | ~state["exists"]).all(-1)
        return ew.Transition({"picked": picked, "last": action}, reward=reward, terminated=done)

    def describe(self, state):
        type(self).described += len(state)
        edges = torch.zeros(len(state), 2, 0, dtype=torch.int64)
        mask = torch.zeros(len(state), 0, dtype=torch.bool)
        x = state["value"].unsqueeze(-1)
        return {"x": x, "node_mask": state["exists"], "edge_index": edges, "edge_mask": mask}

    def observe(self, state):
        return {"step": {"nodes": {"last": state["last"]}}}

    def mask(self, state):
        return state["exists"] & ~state["picked"]


def test_the_contract_holds():
    ew.check_graph_env(ew.make_env(PickEnv, num_envs=4))


def test_the_spec_of_steps_is_read_off():
    env = ew.make_env(PickEnv, num_envs=2)
    assert env.graph.step == StepSpec(("last",), 0, 0)
    assert env.observation_spec.get("step", None) is not None


def test_a_world_is_described_once_per_episode():
    env = ew.make_env(PickEnv, num_envs=3, num_nodes=4)
    root, PickEnv.described = env.reset(), 0
    graph = root["graph", "x"]
    for _ in range(3):
        root = env.rand_action(root)
        stepped, root = env.step_and_maybe_reset(root)
        assert stepped["next", "graph", "x"] is graph
    assert PickEnv.described == 0
    env.step_and_maybe_reset(env.rand_action(root))
    assert PickEnv.described == 3


def test_worlds_without_their_graph_go_on_without_it():
    env = ew.make_env(PickEnv, num_envs=3)
    root = env.rand_action(env.reset())
    following = env.simulate(root.exclude("graph"))
    assert "graph" not in following
    assert torch.equal(following["reward"], env.simulate(root)["reward"])


def test_worlds_go_on_from_given_states():
    env = ew.make_env(PickEnv, num_envs=3)
    root = env.simulate(env.rand_action(env.new_worlds(5)))
    again = env.worlds_in(root["state"])
    assert again.batch_size == (5,)
    assert torch.equal(again["action_mask"], root["action_mask"])
    assert torch.equal(again["graph", "x"], root["graph", "x"])


class Changing(PickEnv):
    """Describes something that changes."""

    def describe(self, state):
        found = super().describe(state)
        return {**found, "x": found["x"] * ~state["picked"].unsqueeze(-1)}


class WrongReference(PickEnv):
    """Refers to a node that does not exist."""

    def observe(self, state):
        return {"step": {"nodes": {"last": torch.full_like(state["last"], 99)}}}


class Crooked(PickEnv):
    """Knows a symmetry that is none."""

    num_symmetries = 2

    def apply_symmetry(self, state, symmetry):
        return {"value": state["value"] + symmetry.unsqueeze(-1)}


@pytest.mark.parametrize(
    "env, message",
    [
        (Changing, "describe is not the same within an episode: `x`"),
        (WrongReference, "step.nodes.last is 99"),
        (Crooked, "other rewards under a symmetry"),
    ],
)
def test_the_contract_finds(env, message):
    with pytest.raises(AssertionError, match=message):
        ew.check_graph_env(ew.make_env(env, num_envs=4))


class NoStep(PickEnv):
    """Observes nothing."""

    def observe(self, state):
        return {}


class Surplus(PickEnv):
    """Has an entry that nobody reads."""

    def observe(self, state):
        return {"step": {"speed": state["last"]}}


class FloatReference(PickEnv):
    """Refers to nodes by real numbers."""

    def observe(self, state):
        return {"step": {"nodes": {"last": state["last"].float()}}}


class FlatFeatures(PickEnv):
    """Has node features without a dimension of features."""

    def observe(self, state):
        return {"step": {"x": state["value"]}}


@pytest.mark.parametrize(
    "env, message",
    [
        (NoStep, "NoStep has `describe`"),
        (Surplus, "has the entries speed"),
        (FloatReference, "step.nodes.last of FloatReference must be one node number"),
        (FlatFeatures, "step.x of FlatFeatures must be"),
    ],
)
def test_a_step_of_another_form_is_refused(env, message):
    with pytest.raises(ew.ConfigError, match=message):
        ew.make_env(env, num_envs=2)
