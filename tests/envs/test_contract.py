"""The contract notices what it is there for: one class per fault, each caught with the right words."""

import pytest
import torch
from tests.envs.patrol import PatrolConfig, PatrolEnv

from edgewise.config.errors import ConfigError
from edgewise.envs.base import Transition
from edgewise.envs.contract import check_first_step, check_graph_env
from edgewise.graphs.actions import AgentsDiscrete, ChooseNode
from edgewise.systems.graphwalk.config import GraphwalkConfig
from edgewise.systems.graphwalk.env import GraphwalkEnv


def walk(cls, **fields):
    return cls(GraphwalkConfig(**fields), num_envs=2, seed=0)


def patrol(cls):
    return cls(PatrolConfig(), num_envs=2, seed=0)


class WideFeatures(GraphwalkEnv):
    def observe(self, state):
        seen = super().observe(state)
        return {**seen, "graph": {**seen["graph"], "x": seen["graph"]["x"].double()}}


class ForgottenEntry(GraphwalkEnv):
    def observe(self, state):
        seen = super().observe(state)
        return {**seen, "graph": {name: part for name, part in seen["graph"].items() if name != "edge_mask"}}


class FirstObservationAlone(GraphwalkEnv):
    def observe(self, state):
        first = {"greeting": state["step"].float()} if not state["step"].any() else {}
        return {**super().observe(state), **first}


class GlobalRandomness(GraphwalkEnv):
    def spawn(self, count):
        state = super().spawn(count)
        return {**state, "current": torch.where(torch.rand(count) < 0.5, 0, state["current"])}


class OneSeed(GraphwalkEnv):
    def spawn(self, count):
        self.generator.manual_seed(7)
        return super().spawn(count)


class HiddenCounter(GraphwalkEnv):
    births = 0

    def spawn(self, count):
        state = super().spawn(count)
        self.births += count
        return {**state, "current": (state["current"] + self.births) % 4}


class BatchBaseline(GraphwalkEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        near = (state["current"] + moved.state["current"]).float()
        return Transition(moved.state, reward=near - near.mean(), terminated=moved.terminated)


class WritesItsInput(GraphwalkEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        state["current"].copy_(moved.state["current"])
        return moved


class SharedWeather(GraphwalkEnv):
    weather = None

    def spawn(self, count):
        state = super().spawn(count)
        self.weather = torch.rand((), generator=self.generator)
        return state

    def observe(self, state):
        seen = super().observe(state)
        return {**seen, "graph": {**seen["graph"], "x": seen["graph"]["x"] + self.weather}}


class ResetsEverything(GraphwalkEnv):
    def _reset(self, tensordict=None):
        return super()._reset()

    def _reset_proc_data(self, tensordict, tensordict_reset):
        return tensordict_reset


class DeadEnd(GraphwalkEnv):
    def mask(self, state):
        return super().mask(state) & (state["step"] < 2).unsqueeze(-1)


class OwnLimit(GraphwalkEnv):
    def setup(self):
        super().setup()
        self.max_steps = 1000


class LimitAsEnd(GraphwalkEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        late = state["step"] + 1 >= self.config.max_steps
        return Transition(moved.state, reward=moved.reward, terminated=moved.terminated | late)


class DoneAlone(GraphwalkEnv):
    def _step(self, tensordict):
        following = super()._step(tensordict)
        return following.set("done", following["terminated"].clone())


class NeverEnds(GraphwalkEnv):
    def _step(self, tensordict):
        following = super()._step(tensordict)
        return following.set("done", torch.zeros_like(following["done"])).set(
            "truncated", torch.zeros_like(following["done"])
        )


class BothFlags(GraphwalkEnv):
    def _step(self, tensordict):
        following = super()._step(tensordict)
        return following.set("truncated", following["done"].clone())


class NoisyPadding(GraphwalkEnv):
    def observe(self, state):
        seen = super().observe(state)
        absent = ~state["node_mask"].unsqueeze(-1)
        return {**seen, "graph": {**seen["graph"], "x": seen["graph"]["x"].masked_fill(absent, torch.nan)}}


class EdgeToNowhere(GraphwalkEnv):
    def observe(self, state):
        seen = super().observe(state)
        return {**seen, "graph": {**seen["graph"], "edge_mask": torch.ones_like(state["edge_mask"])}}


class AbsentNodeOpen(GraphwalkEnv):
    def mask(self, state):
        return super().mask(state) | ~state["node_mask"]


class HalfReward(GraphwalkEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        return Transition(moved.state, reward=moved.reward.half(), terminated=moved.terminated)


class ThirdPlayer(GraphwalkEnv):
    def observe(self, state):
        return {**super().observe(state), "player": state["step"] % 3}


class IntegerMetric(GraphwalkEnv):
    def observe(self, state):
        return {**super().observe(state), "metrics": {"length": state["step"]}}


class StageIgnored(PatrolEnv):
    def setup(self):
        super().setup()
        self.drift = self.config.drift

    def check_stage(self, stage):
        pass

    def spawn(self, count):
        return {**super().spawn(count), "drift": torch.full((count, 1), self.drift)}


class PaidForNothing(PatrolEnv):
    def _step(self, tensordict):
        following = super()._step(tensordict)
        return following.set("reward", following["reward"] + 1)


class GhostsMove(PatrolEnv):
    def advance(self, state, action):
        crowd = (action == 0).sum(-1, keepdim=True)
        moved = super().advance(state, action)
        return Transition(moved.state, moved.reward + crowd, agents_terminated=moved.agents_terminated)


class Revived(PatrolEnv):
    def _step(self, tensordict):
        following = super()._step(tensordict)
        following["agents", "active"] = torch.ones_like(following["agents", "active"])
        return following


class Vanished(PatrolEnv):
    def _step(self, tensordict):
        following = super()._step(tensordict)
        following["agents", "terminated"] = torch.zeros_like(following["agents", "terminated"])
        return following


class AgentWithoutNode(PatrolEnv):
    def observe(self, state):
        seen = super().observe(state)
        first = torch.arange(self.config.agents) < 1
        return {**seen, "graph": {**seen["graph"], "node_mask": first.expand_as(state["active"]).clone()}}


class StillDone(GraphwalkEnv):
    def _reset(self, tensordict=None):
        new = super()._reset(tensordict)
        if tensordict is not None and tensordict.get("done", None) is not None:
            new.update({name: tensordict[name].clone() for name in ("done", "terminated", "truncated")})
        return new


class ForgetsDone(GraphwalkEnv):
    def _reset(self, tensordict=None):
        new = super()._reset(tensordict)
        return new.update({name: torch.zeros_like(new[name]) for name in ("done", "terminated")})

    def _reset_proc_data(self, tensordict, tensordict_reset):
        return (
            tensordict_reset if tensordict is None else tensordict.exclude("_reset").update(tensordict_reset)
        )


class AnythingGoes(ChooseNode):
    def is_legal(self, action, observation, graph):
        return torch.ones(observation.batch_size, dtype=torch.bool)


class LawlessWalk(GraphwalkEnv):
    def setup(self):
        super().setup()
        self.actions = AnythingGoes()


class MaskIgnored(AgentsDiscrete):
    def is_legal(self, action, observation, graph):
        return ((action >= 0) & (action < self.num_actions)).all(-1)


class LawlessPatrol(PatrolEnv):
    def setup(self):
        super().setup()
        self.actions = MaskIgnored(self.config.agents, 3)


class ComesBack(PatrolEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        back = state["active"] | (state["step"] >= 3).unsqueeze(-1)
        ended = moved.agents_terminated & back
        new = {**moved.state, "active": back, "terminated": state["terminated"] & ~back}
        return Transition(new, moved.reward, terminated=ended.all(-1))


class NobodyLeft(PatrolEnv):
    def _step(self, tensordict):
        following = super()._step(tensordict)
        goes_on = ~following["agents", "active"].any(-1, keepdim=True) & ~following["truncated"]
        return following.update({name: following[name] & ~goes_on for name in ("done", "terminated")})


class LateNaN(GraphwalkEnv):
    def observe(self, state):
        seen = super().observe(state)
        late = (state["step"] > 4).view(-1, 1, 1)
        return {**seen, "graph": {**seen["graph"], "x": seen["graph"]["x"].masked_fill(late, torch.nan)}}


class InfiniteReward(GraphwalkEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        return Transition(moved.state, moved.reward / (state["step"] < 4), terminated=moved.terminated)


FAULTS = [
    (walk, StillDone, "still done after a reset"),
    (walk, ForgetsDone, "`done` is cleared"),
    (walk, LawlessWalk, "AnythingGoes.is_legal accepts an illegal action"),
    (patrol, LawlessPatrol, "MaskIgnored.is_legal accepts an illegal action"),
    (patrol, ComesBack, "comes back|becomes active|is reset"),
    (patrol, NobodyLeft, "no agent is active and the world is not done"),
    (walk, LateNaN, "`graph.x` is not finite"),
    (walk, InfiniteReward, "`reward` is not finite"),
    (walk, WideFeatures, "`graph.x` must be torch.float32"),
    (walk, ForgottenEntry, "lacks edge_mask"),
    (walk, FirstObservationAlone, "specs .* do not hold"),
    (walk, GlobalRandomness, "one seed have different rollouts"),
    (walk, OneSeed, "with every seed"),
    (walk, HiddenCounter, "does not continue like the saved"),
    (walk, BatchBaseline, "depend on each other"),
    (walk, WritesItsInput, "writes into its input"),
    (walk, SharedWeather, "does not continue like the saved"),
    (walk, ResetsEverything, "changes another"),
    (walk, DeadEnd, "no action is legal"),
    (walk, OwnLimit, "continues beyond max_steps"),
    (walk, LimitAsEnd, "terminates at its time limit"),
    (walk, DoneAlone, "done is not"),
    (walk, NeverEnds, "done is not"),
    (walk, BothFlags, "both terminated and truncated"),
    (walk, NoisyPadding, "`graph.x` is not finite"),
    (walk, EdgeToNowhere, "joins a node that does not"),
    (walk, AbsentNodeOpen, "allows a node that does not exist"),
    (walk, HalfReward, "`reward` must be torch.float32"),
    (walk, ThirdPlayer, "neither 0 nor 1"),
    (walk, IntegerMetric, "`metrics.length` must be torch.float32"),
    (patrol, StageIgnored, "drift=.* changes nothing"),
    (patrol, PaidForNothing, "inactive agent gets a reward"),
    (patrol, GhostsMove, "actions of inactive agents .* have an effect"),
    (patrol, Revived, "becomes active|still active"),
    (patrol, Vanished, "is not terminated|is reset"),
    (patrol, AgentWithoutNode, "active agent is not a node"),
]


@pytest.mark.parametrize(("make", "faulty", "words"), FAULTS, ids=lambda part: getattr(part, "__name__", ""))
def test_a_planted_fault_is_named(make, faulty, words):
    with pytest.raises((AssertionError, ConfigError), match=words):
        check_graph_env(make(faulty))


@pytest.mark.parametrize(("make", "right"), [(walk, GraphwalkEnv), (patrol, PatrolEnv)])
def test_right_environments_pass(make, right):
    check_graph_env(make(right))


def test_the_checked_environment_is_not_touched():
    env = walk(GraphwalkEnv)
    before = env.state_dict()["generator"]
    check_graph_env(env)
    assert torch.equal(env.state_dict()["generator"], before)


class Nothing(GraphwalkEnv):
    def setup(self): ...


class NoState(GraphwalkEnv):
    def spawn(self, count): ...


class NoObservation(GraphwalkEnv):
    def observe(self, state): ...


class NoTransition(GraphwalkEnv):
    def advance(self, state, action):
        return {}, torch.zeros(len(action))


class FlagsAsNumbers(GraphwalkEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        return Transition(moved.state, reward=moved.reward, terminated=moved.terminated.float())


class NewState(GraphwalkEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        return Transition({**moved.state, "mood": action}, reward=moved.reward, terminated=moved.terminated)


class RewardInColumns(GraphwalkEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        return Transition(
            moved.state, reward=moved.reward.unsqueeze(-1).repeat(1, 2), terminated=moved.terminated
        )


FIRST_FAULTS = [
    (Nothing, "setup sets no `self.graph`, expected an object of GraphSpec"),
    (NoState, "spawn returned NoneType, expected a dict of tensors"),
    (NoObservation, "observe returned NoneType, expected a dict of tensors"),
    (NoTransition, "advance returned tuple, expected a Transition"),
    (FlagsAsNumbers, "Transition.terminated: got torch.float32, expected torch.bool"),
    (NewState, "a step changes mood, which `spawn` did not return"),
    (RewardInColumns, r"`reward` must have shape \[B, 1\], is \[2, 2, 1\]"),
    (WritesItsInput, "writes into its input"),
    (WideFeatures, "`graph.x` must be torch.float32"),
]


@pytest.mark.parametrize(("faulty", "words"), FIRST_FAULTS, ids=lambda part: getattr(part, "__name__", ""))
def test_a_run_names_what_the_first_step_shows(faulty, words):
    with pytest.raises(ConfigError, match=words):
        check_first_step(walk(faulty))


def test_the_first_step_of_right_environments():
    check_first_step(walk(GraphwalkEnv))
    check_first_step(patrol(PatrolEnv))


def test_a_config_need_not_be_given():
    assert GraphwalkEnv(num_envs=2).config == GraphwalkConfig()
