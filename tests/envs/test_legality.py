"""Illegal actions: the error names world, action and what is legal; nothing is checked unless asked for."""

import pytest
import torch
from tensordict import TensorDict
from tests.envs.patrol import PatrolConfig, PatrolEnv

from edgewise.config.errors import IllegalActionError
from edgewise.envs.base import GraphEnv
from edgewise.envs.legality import checked_actions
from edgewise.evaluation.evaluate import evaluate
from edgewise.graphs.keys import MASK
from edgewise.systems.graphwalk.config import GraphwalkConfig
from edgewise.systems.graphwalk.env import GraphwalkEnv


@pytest.fixture
def walk():
    return GraphwalkEnv(GraphwalkConfig(num_nodes=6), num_envs=3, seed=0)


def with_action(env, world, value):
    root = env.reset()
    root = env.rand_action(root)
    root["action"][world] = value
    return root


def test_the_error_names_world_action_and_choices(walk):
    root = walk.reset()
    forbidden = int((~root[MASK][1]).nonzero()[0])
    legal = ", ".join(map(str, root[MASK][1].nonzero().squeeze(-1).tolist()))
    walk.rand_action(root)["action"][1] = forbidden
    with pytest.raises(IllegalActionError) as refused:
        walk.step(root)
    assert refused.value.message == (
        f"graphwalk: the action of world 1 is illegal: got {forbidden}; legal are {legal}"
    )


@pytest.mark.parametrize("value", [-1, 6, 10**9])
def test_out_of_range_is_illegal(walk, value):
    with pytest.raises(IllegalActionError, match=f"world 2 is illegal: got {value};"):
        walk.step(with_action(walk, 2, value))


def test_agents_are_named(walk):
    env = PatrolEnv(PatrolConfig(), num_envs=4, seed=0)
    root = env.rand_action(env.reset())
    world, agent = (int(index[0]) for index in root["agents", "active"].nonzero(as_tuple=True))
    root["action"][world, agent] = 3
    with pytest.raises(
        IllegalActionError, match=rf"world {world} is illegal: got 3 at {agent}; legal there are 0, 1, 2"
    ):
        env.step(root)


def test_the_wrong_shape_is_an_error_in_words(walk):
    root = walk.rand_action(walk.reset())
    with pytest.raises(IllegalActionError, match=r"the action must be \[3\]"):
        walk.step(root.set("action", root["action"].unsqueeze(-1)))


def test_done_worlds_and_those_that_do_not_step_are_not_checked(walk):
    root = with_action(walk, 0, -1)
    root["done"][0] = True
    walk.simulate(root)
    root["done"][0] = False
    stay = torch.tensor([[False], [True], [True]])
    walk.simulate(root.set("_step", stay))


def test_a_root_without_an_observation_is_not_checked(walk):
    root = with_action(walk, 0, 0)
    walk.simulate(TensorDict({"state": root["state"], "action": root["action"]}, [3]))


def test_it_is_off_by_default(walk, monkeypatch):
    monkeypatch.undo()
    assert not GraphEnv.check_actions
    calls = []
    monkeypatch.setattr("edgewise.envs.base.check_actions", lambda *_, **__: calls.append(1))
    walk.step(walk.rand_action(walk.reset()))
    assert calls == []
    with checked_actions(walk):
        walk.step(walk.rand_action(walk.reset()))
    walk.step(walk.rand_action(walk.reset()))
    assert calls == [1]


def test_evaluation_checks(walk, monkeypatch):
    monkeypatch.undo()

    def outlaw(root):
        return root.set("action", torch.full_like(root["state", "step"], 99))

    with pytest.raises(IllegalActionError, match="got 99"):
        evaluate(walk, outlaw, episodes=3, seed=0)
    assert not walk.check_actions
