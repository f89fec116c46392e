"""What stops or misleads a new user is said in one sentence, with the place and the remedy."""

import pydoc
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.algorithms.allocation import AllocationEnv

import edgewise as ew
from edgewise.cli.main import main
from edgewise.config.errors import ConfigError, NumericalStop
from edgewise.models.build import make_encoder, make_head
from edgewise.models.config import EncoderConfig, ModelConfig

SMALL = {"num_envs": 4, "rollout_length": 4, "total_frames": 64, "progress": False, "minibatch_size": 16}


QUIET = {"every": None, "baselines": []}


class NothingLegal(AllocationEnv):
    """After the first step of an episode nothing is allowed."""

    def setup(self):
        super().setup()
        self.actions = ew.ChooseNode()

    def advance(self, state, action):
        moved = super().advance(state, {"node": action, "amount": state["need"][:, 0]})
        return ew.Transition({}, reward=moved.reward)

    def mask(self, state):
        return state["exists"] & (state["step"] < 5).unsqueeze(-1)


class NotANumber(AllocationEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        reward = torch.where(state["need"][:, 0] > 0.9, torch.nan, moved.reward)
        return ew.Transition({}, reward=reward, terminated=moved.terminated)


class Unseeded(AllocationEnv):
    def spawn(self, count):
        return {**super().spawn(count), "need": torch.rand(count, self.graph.num_nodes)}


class Mixed(AllocationEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        return ew.Transition({}, reward=moved.reward - moved.reward.mean(), terminated=moved.terminated)


class WrongRows(AllocationEnv):
    def spawn(self, count):
        return {**super().spawn(count), "prices": torch.rand(7, generator=self.generator)}


def test_a_mask_without_a_legal_action_names_environment_step_and_world(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing_legal, after 0 frames: world 0 .* step 5") as caught:
        ew.train(
            NothingLegal,
            folder=tmp_path / "run",
            max_steps=9,
            **{**SMALL, "rollout_length": 8, "evaluation": QUIET},
        )
    assert caught.value.exit_code == 2
    assert "terminate" in caught.value.hint


def test_a_reward_that_is_not_finite_is_that_of_the_environment(tmp_path):
    with pytest.raises(NumericalStop, match=r"the environment gives .* next.reward") as caught:
        ew.train(NotANumber, folder=tmp_path / "run", **{**SMALL, "total_frames": 4096})
    assert "learning rate" not in caught.value.hint


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Unseeded, "two copies of unseeded with one seed"),
        (Mixed, "worlds of mixed depend on each other"),
        (WrongRows, r"`state.prices` must have a row for each of . worlds, is \[7\]"),
    ],
)
def test_training_checks_the_cheap_part_of_the_contract(env, words, tmp_path):
    with pytest.raises(ConfigError, match=words):
        ew.train(env, folder=tmp_path / "run", **SMALL)


def test_an_environment_says_what_it_is():
    env = AllocationEnv(num_envs=3)
    assert repr(env).startswith("AllocationEnv(3 worlds of up to 5 nodes, Explicit edges, actions Then(node=")
    assert "config" in str(ew.GraphEnv.__signature__)


def test_a_class_without_its_method_is_named():
    class NoForward(ew.GraphEncoder):
        pass

    class NoHead(ew.Head):
        pass

    env = AllocationEnv(num_envs=1)
    ew.register(NoForward)
    ew.register(NoHead)
    with pytest.raises(ConfigError, match="NoForward does not define forward"):
        make_encoder(env.graph, EncoderConfig(kind="noforward"))
    with pytest.raises(ConfigError, match="NoHead does not define forward"):
        make_head(env.graph, env.actions, ModelConfig(head="nohead"))
    with pytest.raises(TypeError, match="abstract"):
        NoForward(env.graph, EncoderConfig())


def test_spaces_of_several_values_become_composed_actions():
    gymnasium = pytest.importorskip("gymnasium")
    spaces = gymnasium.spaces
    space = spaces.Dict(
        {
            "many": spaces.MultiDiscrete([2, 3]),
            "bits": spaces.MultiBinary(2),
            "pair": spaces.Tuple((spaces.Discrete(4, start=1), spaces.Box(0, 10, (2,)))),
        }
    )

    class Several(gymnasium.Env):
        observation_space = spaces.Box(-1, 1, (3,))
        action_space = space

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(3, np.float32), {}

        def step(self, action):
            assert space.contains(action), action
            return np.zeros(3, np.float32), float(action["bits"].sum()), False, True, {}

    env = ew.from_gymnasium(Several)(num_envs=4, seed=0)
    assert [part.name for part in env.actions.parts] == [
        "bits_0",
        "bits_1",
        "many_0",
        "many_1",
        "pair_part0",
        "pair_part1",
    ]
    ew.check_graph_env(env)
    assert env.rollout(3)["next", "reward"].max() == 2


def test_turns_are_converted_or_refused():
    pettingzoo = pytest.importorskip("pettingzoo")

    class Turns(pettingzoo.AECEnv):
        metadata = {"name": "turns"}  # noqa: RUF012
        possible_agents = ("a", "b")

    with pytest.raises(ConfigError, match="agents act in turn"):
        ew.from_pettingzoo(Turns)


def test_help_shows_what_is_ours_before_what_is_inherited():
    text = pydoc.plain(pydoc.render_doc(ew.GraphEnv))
    inherited = text.index("inherited from torchrl")
    for name in ("setup", "spawn", "advance", "observe", "mask", "describe", "apply_stage"):
        assert text.index(f" |  {name}(self") < inherited
    assert text.index("A subclass implements `setup`") < text.index("Methods defined here")


class TooManyRows(AllocationEnv):
    def spawn(self, count):
        state = super().spawn(count)
        return {**state, "need": state["need"][:1].expand(count + 1, -1)} if count > 1 else state


class OtherType(AllocationEnv):
    def advance(self, state, action):
        moved = super().advance(state, action)
        return ew.Transition(
            {"need": state["need"].double()}, reward=moved.reward, terminated=moved.terminated
        )


@pytest.mark.parametrize("env", [TooManyRows, OtherType])
def test_a_fault_in_the_state_is_not_blamed_on_the_observation(env):
    with pytest.raises((AssertionError, ConfigError), match=r"`state\.need` must"):
        ew.check_graph_env(env(num_envs=2, seed=0))


def test_a_class_that_a_run_could_not_find_again_is_refused_in_words(tmp_path):
    class Inner(AllocationEnv):
        pass

    with pytest.raises(ConfigError, match="Inner is defined in a function"):
        ew.train(Inner, folder=tmp_path / "run")


def test_an_unknown_flag_lists_each_setting_once(capsys):
    assert main(["train", "swarm", "--algorithm", "dqn", "--hidden", "8"]) == 2
    named = re.findall(r"[\w.]+\.hidden", capsys.readouterr().err)
    assert len(named) == len(set(named)) > 2


def test_the_package_is_a_command():
    done = subprocess.run([sys.executable, "-m", "edgewise", "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.strip() == f"edgewise {ew.__version__}"
