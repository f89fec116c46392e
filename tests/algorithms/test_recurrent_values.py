"""DQN and IQN with a memory: sequences against single steps, burn-in, resume, and a task that needs it."""

import pytest
import torch
from tests.algorithms.test_recurrent import Recall
from tests.algorithms.worlds import ToyConfig, mean_reward, toy

from edgewise.algorithms.deciders import deciders_of
from edgewise.algorithms.dqn import DQN
from edgewise.algorithms.iqn import IQN
from edgewise.algorithms.off_policy_config import DQNConfig, IQNConfig, SACConfig
from edgewise.algorithms.sac import SAC
from edgewise.config.errors import ConfigError
from edgewise.data.rollout import Rollout
from edgewise.data.sequences import HIDDEN
from edgewise.experiments.export import as_function, export_policy
from edgewise.experiments.export.check import observations
from edgewise.models.config import EncoderConfig, ValueConfig

REMEMBERS = ValueConfig(
    encoder=EncoderConfig(hidden=16, layers=1, heads=2), hidden=32, recurrent=True, observe="graph"
)
FORGETS = REMEMBERS.model_copy(update={"recurrent": False})
LENGTH, BURN_IN = 4, 2
SETTINGS = {
    "chunk_length": LENGTH,
    "burn_in": BURN_IN,
    "learning_starts": 0,
    "minibatch_size": 64,
    "updates_per_transition": 1 / 16,
    "learning_rate": 3e-3,
    "tau": 0.05,
    "gamma": 0.5,
    "epsilon": 0.1,
    "mixing": "none",
}
CLASSES = {"dqn": (DQN, DQNConfig), "iqn": (IQN, IQNConfig)}


def agent_of(env, name="dqn", model=REMEMBERS, **changed):
    torch.manual_seed(0)
    kind, settings = CLASSES[name]
    given = {key: value for key, value in (SETTINGS | changed).items() if key in settings.model_fields}
    config = settings(**given)
    deciders = deciders_of(env, model, mixing=getattr(config, "mixing", "none"))
    return kind(deciders, config=config, seed=0)


def filled(name="dqn", steps=10, **changed):
    """An agent whose buffer has sequences of episodes of 5 steps, and the steps that made them."""
    env = toy("signals", num_envs=3)
    env.max_steps = 5
    agent = agent_of(env, name, updates_per_transition=0.0, **changed)
    rollout = Rollout(env, agent.policy, rollout_length=steps)
    batches = [rollout.collect().clone() for _ in range(30 // steps)]
    for batch in batches:
        agent.learn(batch)
    return agent, torch.cat(batches, 1)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_sequences_are_steps_of_one_world_in_a_row(name, steps):
    agent, whole = filled(name, steps)
    rows = agent._transitions.expand(agent.replay_buffer.buffer[:])
    span, time = BURN_IN + LENGTH, whole.shape[1]
    starts = range(0, time - span + 1, LENGTH)
    assert len(rows) == 3 * len(starts)
    for number, start in enumerate(starts):
        for world in range(3):
            row, window = rows[3 * number + world], whole[world, start : start + span]
            assert torch.equal(row["action"], window["action"])
            assert torch.equal(row["observation", "graph", "x"], window["graph", "x"])
            assert torch.equal(row["observation", *HIDDEN][0], window[HIDDEN][0])
            assert torch.equal(row["reward"], window["next", "reward"].squeeze(-1))


@pytest.mark.parametrize("name", CLASSES)
def test_a_sequence_repeats_what_was_remembered_while_acting(name):
    """Without updates, unrolling from the stored hidden state gives those of collection, across episodes."""
    agent, whole = filled(name)
    samples = agent._prepare(agent._transitions.expand(agent.replay_buffer.sample()))
    rows = agent._transitions.expand(agent.replay_buffer.buffer[:])
    features = agent.networks["network"].features
    with torch.no_grad():
        found = features.remembered(rows["observation"])
    span = BURN_IN + LENGTH
    starts = range(0, whole.shape[1] - span + 1, LENGTH)
    expected = torch.cat([whole["next", *HIDDEN][:, start : start + span] for start in starts])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert rows["observation", "next", "done"].any()
    assert not samples["counted"][:, :BURN_IN].any()
    assert samples["counted"][:, BURN_IN:].any()


def test_next_values_are_those_of_the_next_step():
    """Within an episode, the value of the next observation is that of the following step of the sequence."""
    agent, _ = filled()
    samples = agent._prepare(agent._transitions.expand(agent.replay_buffer.sample()))
    network = agent.networks["network"]
    with torch.no_grad():
        values, following = network(samples["observation"]), network(samples["next_observation"])
    goes_on = ~samples["observation", "next", "done"][:, :-1, 0]
    torch.testing.assert_close(following[:, :-1][goes_on], values[:, 1:][goes_on], atol=1e-5, rtol=0)
    assert (~goes_on).any()
    assert not torch.allclose(following[:, :-1][~goes_on], values[:, 1:][~goes_on], atol=1e-3)


def test_gradients_stop_at_the_burn_in():
    agent, _ = filled()
    samples = agent._transitions.expand(agent.replay_buffer.sample())
    x = samples["observation", "graph", "x"].clone().requires_grad_()
    samples["observation", "graph", "x"] = x
    agent.networks["network"](samples["observation"])[:, BURN_IN:].sum().backward()
    assert not x.grad[:, :BURN_IN].any()
    assert x.grad[:, BURN_IN:].any()


def test_the_stored_hidden_state_matters_and_burn_in_brings_it_up_to_date():
    agent, _ = filled()
    samples = agent._transitions.expand(agent.replay_buffer.sample())
    network, seen = agent.networks["network"], samples["observation"]
    with torch.no_grad():
        before = network(seen)
        wrong = network(seen.clone().set(HIDDEN, seen[HIDDEN] + 1.0))
    gap = (wrong - before).abs().mean((0, 2, 3))
    assert gap[0] > gap[-1]
    assert gap[0] > 1e-3


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("prioritised", [False, True])
def test_it_continues_bit_for_bit(name, prioritised):
    def run(env, agent, rollout, count):
        for _ in range(count):
            torch.manual_seed(agent.frames)
            agent.learn(rollout.collect())

    made = []
    for _ in range(2):
        env = toy("signals", num_envs=4)
        agent = agent_of(env, name, prioritised=prioritised)
        made.append((env, agent, Rollout(env, agent.policy, rollout_length=5)))
    run(*made[0], 4)
    state, place = made[0][1].state_dict(), made[0][2].state_dict()
    made[1][1].load_state_dict(state)
    made[1][2].load_state_dict(place)
    for each in made:
        run(*each, 3)
    first, second = (agent.state_dict() for _, agent, _ in made)
    assert made[0][1].updates > 4
    for part in ("networks", "targets"):
        assert all(torch.equal(first[part][key], second[part][key]) for key in first[part])
    assert all(
        torch.equal(value, second["replay_buffer"]["stored"][key])
        for key, value in first["replay_buffer"]["stored"].items()
    )


def rewards(model, name, batches):
    """Mean rewards of batches, in which every tenth action is random."""
    env = Recall(ToyConfig(max_steps=4), num_envs=16, seed=0)
    agent = agent_of(env, name, model, updates_per_transition=1 / 8, learning_rate=5e-3)
    rollout = Rollout(env, agent.policy, rollout_length=8)
    for _ in range(batches):
        batch = rollout.collect()
        agent.learn(batch)
        yield float(mean_reward(batch))


@pytest.mark.parametrize("name", CLASSES)
def test_what_was_shown_once_is_done_later_by_those_who_remember(name):
    """Who looks at the present alone is right in the first of four steps and in half of the others."""
    forgetful = (1 + 3 / 2) / 4
    assert any(reward > 0.9 for reward in rewards(REMEMBERS, name, 60))
    assert max(rewards(FORGETS, name, 8)) < 0.75
    assert forgetful < 0.75


def test_sequences_are_refused_where_nothing_learns_from_them():
    env = toy("signals", num_envs=2)
    with pytest.raises(ConfigError, match="targets of recurrent models have one step"):
        agent_of(env, n_step=3)
    with pytest.raises(ConfigError, match="has no agents"):
        agent_of(toy("marked", num_envs=2))
    with pytest.raises(ConfigError, match="separate or a sum"):
        agent_of(env, mixing="monotone")
    with pytest.raises(ConfigError, match="SAC learns from single steps"):
        SAC(deciders_of(toy("dials", num_envs=2), REMEMBERS), config=SACConfig())


@pytest.mark.parametrize("name", ["dqn", pytest.param("iqn", marks=pytest.mark.thorough)])
def test_a_policy_is_exported_with_its_memory(name, tmp_path):
    env = toy("signals", num_envs=3)
    policy = agent_of(env, name).policy
    written = export_policy(policy, env, tmp_path / "policy")
    assert written.checked.passed
    function = as_function(policy, env)
    assert dict(function.recurrent) == {"memory": "next_memory"}
    first, second = observations(policy, env)[:2]
    with torch.no_grad():
        after = function(function.inputs_of(first))["next_memory"]
        given = function.inputs_of(second)
    goes_on = ~second["done"].squeeze(-1)
    torch.testing.assert_close(given["memory"][goes_on], after[goes_on], atol=1e-6, rtol=0)
