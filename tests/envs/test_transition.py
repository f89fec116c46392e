"""What the base makes of a step, and the small parts it is built from: flags, agents, samples, specs."""

import pytest
import torch
from tensordict import TensorDict
from tests.envs.patrol import PatrolConfig, PatrolEnv
from torchrl.data import Binary

from edgewise.config.errors import ConfigError
from edgewise.envs.specs import check_names
from edgewise.envs.symlog import symlog
from edgewise.envs.transition import Transition, apply_transition
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.systems.graphwalk.config import GraphwalkConfig
from edgewise.systems.graphwalk.env import GraphwalkEnv

STATE = TensorDict(
    {
        "step": torch.tensor([3, 3]),
        "active": torch.tensor([[True, False, True], [True, False, False]]),
        "terminated": torch.tensor([[False, True, False], [False, False, True]]),
    },
    [2],
)


def outcome(**fields):
    return apply_transition(STATE, Transition({}, reward=torch.ones(2, 3), **fields), max_steps=9)


def test_an_inactive_agent_neither_terminates_nor_is_rewarded():
    after, found = outcome(agents_terminated=torch.ones(2, 3, dtype=torch.bool))
    assert after["terminated"].tolist() == [[True, True, True], [True, False, True]]
    assert not after["active"].any()
    assert found["reward"].squeeze(-1).tolist() == [[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert found["terminated"].squeeze(-1).tolist() == [True, True]


def test_a_world_ends_by_itself_or_with_its_last_agent():
    ended = torch.tensor([[False, False, False], [True, False, False]])
    _, found = outcome(terminated=torch.tensor([True, False]), agents_terminated=ended)
    assert found["terminated"].squeeze(-1).tolist() == [True, True]
    _, found = outcome(terminated=torch.tensor([False, False]), agents_terminated=ended)
    assert found["terminated"].squeeze(-1).tolist() == [False, True]


def test_agents_that_are_not_there_stay_inactive():
    env = PatrolEnv(PatrolConfig(), num_envs=200, seed=0)
    root = env.reset()
    active = root["agents", "active"]
    assert not active.all()
    assert torch.equal(active, root["graph", "node_mask"])
    following = env.step(env.rand_action(root))["next", "agents"]
    assert not (following["active"] & ~active).any()
    assert not (following["terminated"] & ~active).any()


def test_samples_of_a_range_include_both_ends():
    env = GraphwalkEnv(GraphwalkConfig(), num_envs=2, seed=0)
    assert set(env.sample_int((4, 6), 500).tolist()) == {4, 5, 6}
    assert set(env.sample_int(5, 9).tolist()) == {5}
    drawn = env.sample_float((2.0, 3.0), 5000)
    assert drawn.min() >= 2.0
    assert drawn.max() <= 3.0
    assert drawn.mean().item() == pytest.approx(2.5, abs=0.02)
    assert set(env.sample_float(0.25, 9).tolist()) == {0.25}


class Unmasked(GraphwalkEnv):
    """Gives no mask of its own."""

    def mask(self, state):
        return None


def test_without_a_mask_all_choices_that_exist_are_legal():
    env = Unmasked(GraphwalkConfig(), num_envs=20, seed=0)
    root = env.reset()
    expected = env.actions.default_mask(root["graph"])
    if expected is None:
        assert "action_mask" not in root
    else:
        assert torch.equal(root["action_mask"], expected)


def test_flags_have_binary_specs():
    spec = PatrolEnv(PatrolConfig(), num_envs=2, seed=0).observation_spec
    assert isinstance(spec["state", "active"], Binary)
    assert isinstance(spec["agents", "terminated"], Binary)
    assert not isinstance(spec["state", "place"], Binary)


@pytest.mark.parametrize(("more", "less", "said"), [("pos", None, "adds pos"), (None, "x", "lacks x")])
def test_other_graph_entries_than_the_spec_has_are_named(more, less, said):
    spec = GraphSpec(3, 2, edges=Explicit(4))
    graph = spec.zeros(1)
    if more is not None:
        graph[more] = torch.zeros(1, 3, 2)
    if less is not None:
        del graph[less]
    with pytest.raises(ConfigError, match=said):
        check_names(graph, spec, env="Some")


def test_symlog_keeps_the_sign_and_is_flat_far_out():
    x = torch.tensor([-9.0, -0.5, 0.0, 0.5, 9.0], dtype=torch.float64)
    expected = [-2.302585092994046, -0.4054651081081644, 0.0, 0.4054651081081644, 2.302585092994046]
    assert symlog(x).tolist() == pytest.approx(expected)


def test_a_last_dimension_of_one_is_accepted():
    """TorchRL's own environments give rewards and flags `[B, 1]`."""
    flat = {"reward": torch.tensor([1.0, 2.0]), "terminated": torch.tensor([True, False])}
    for active in (None, torch.ones(2, 3, dtype=torch.bool)):
        before = TensorDict({"step": torch.zeros(2).long()}, [2])
        given = dict(flat)
        if active is not None:
            before.update({"active": active, "terminated": ~active})
            given["reward"] = torch.rand(2, 3)
        expected = apply_transition(before, Transition({}, **given), max_steps=None)[1]
        widened = {name: value.unsqueeze(-1) for name, value in given.items()}
        found = apply_transition(before, Transition({}, **widened), max_steps=None)[1]
        for name, value in expected.items():
            assert torch.equal(found[name], value), name
