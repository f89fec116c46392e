"""Average reward: gain and bias of a chain solved by hand, and a choice that a discount gets wrong."""

import pytest
import torch
from pydantic import ValidationError
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from tests.algorithms.worlds import SMALL, ToyConfig, learner
from torch import nn

from edgewise.algorithms.config import PPOConfig
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.objectives.average_reward import AverageReward
from edgewise.objectives.graph_gae import GraphGAE

MOVES = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.6, 0.0, 0.4]], dtype=torch.float64)
REWARDS = torch.tensor([1.0, -2.0, 5.0], dtype=torch.float64)


def solved():
    """Gain, and bias of mean zero over the stationary law, of the chain, by linear algebra."""
    system = torch.cat([MOVES.T - torch.eye(3, dtype=torch.float64), torch.ones(1, 3, dtype=torch.float64)])
    right = torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    stationary = torch.linalg.lstsq(system, right.unsqueeze(-1)).solution.squeeze(-1)
    gain = stationary @ REWARDS
    deviation = torch.eye(3, dtype=torch.float64) - MOVES + torch.ones(3, 1, dtype=torch.float64) * stationary
    return gain, torch.linalg.solve(deviation, REWARDS - gain), stationary


def chain(rows, steps, *, seed, start=None):
    """A rollout of the chain; all rows begin in `start`, or anywhere by the stationary law."""
    generator = torch.Generator().manual_seed(seed)
    law = solved()[2] if start is None else nn.functional.one_hot(torch.tensor(start), 3).double()
    states = [law.expand(rows, 3).multinomial(1, generator=generator).squeeze(-1)]
    for _ in range(steps):
        states.append(MOVES[states[-1]].multinomial(1, generator=generator).squeeze(-1))
    visited = torch.stack(states, -1)
    flags = torch.zeros(rows, steps, 1, dtype=torch.bool)
    following = {
        "state": visited[:, 1:],
        "reward": REWARDS[visited[:, :-1]].unsqueeze(-1),
        "done": flags,
        "terminated": flags,
    }
    return TensorDict({"state": visited[:, :-1], "next": following}, [rows, steps])


def tabular(values):
    table = nn.Embedding(3, 1, _weight=torch.as_tensor(values, dtype=torch.float64).view(3, 1).clone())
    return TensorDictModule(table, in_keys=["state"], out_keys=["state_value"])


@pytest.mark.parametrize("start", [0, 1, 2])
def test_with_the_right_values_the_gain_is_found_wherever_worlds_begin(start):
    gain, bias, _ = solved()
    tracked = AverageReward().double()
    rollout = chain(20_000, 2, seed=start, start=start)
    GraphGAE(gamma=1.0, lmbda=0.9, value_network=tabular(bias + 7.0), average_reward=tracked)(rollout)
    assert float(tracked.mean) == pytest.approx(float(gain), abs=0.05)
    assert abs(float(rollout["next", "reward"].mean() - gain)) > 0.3


@pytest.mark.parametrize("lmbda", [0.0, 0.9])
def test_targets_lead_to_gain_and_bias(lmbda):
    gain, bias, _ = solved()
    critic, tracked = tabular([100.0, 0.0, -100.0]), AverageReward(0.9).double()
    estimate = GraphGAE(gamma=1.0, lmbda=lmbda, value_network=critic, average_reward=tracked)
    for batch in range(60):
        rollout = estimate(chain(400, 20, seed=batch))
        with torch.no_grad():
            for state in range(3):
                wanted = rollout["value_target"].squeeze(-1)[rollout["state"] == state].mean()
                critic.module.weight[state] += 0.3 * (wanted - critic.module.weight[state])
    assert float(tracked.mean) == pytest.approx(float(gain), abs=0.03)
    torch.testing.assert_close(critic.module.weight.detach().squeeze(-1), bias, rtol=0, atol=0.1)


@pytest.mark.parametrize("decay", [-0.1, 1.0, 1.5])
def test_a_decay_that_forgets_nothing_or_too_much_is_refused(decay):
    with pytest.raises(ValueError, match="decay"):
        AverageReward(decay)


def test_the_first_batch_counts_in_full_and_later_ones_fade():
    tracked, zeros = AverageReward(0.9), torch.zeros(2)
    tracked.update(torch.tensor([1.0, 3.0]), value=zeros, next_value=zeros)
    assert float(tracked.mean) == pytest.approx(2.0)
    counted = torch.tensor([True, False])
    tracked.update(torch.tensor([4.0, torch.nan]), value=zeros, next_value=zeros, mask=counted)
    assert float(tracked.mean) == pytest.approx((0.9 * 2 + 4) / 1.9)
    tracked.update(torch.tensor([torch.nan, 9.0]), value=zeros, next_value=zeros, mask=~counted & counted)
    assert float(tracked.mean) == pytest.approx((0.9 * 2 + 4) / 1.9)


class Patience(GraphEnv):
    """Node 0 earns 1 and starts over; node 1 earns nothing until the fourth time in a row, which earns 8."""

    def setup(self):
        self.graph = GraphSpec(num_nodes=2, node_features=2, edges=Explicit(num_edges=1))
        self.actions = ChooseNode()

    def spawn(self, count):
        return {"waited": torch.zeros(count, dtype=torch.int64)}

    def advance(self, state, action):
        waited = torch.where(action == 1, state["waited"] + 1, 0)
        reward = (action == 0).float() + 8.0 * (waited == 4)
        return Transition({"waited": waited % 4}, reward=reward)

    def observe(self, state):
        count = len(state["waited"])
        who = torch.tensor([1.0, -1.0]).expand(count, 2)
        graph = {
            "x": torch.stack((who, state["waited"].unsqueeze(-1).expand(count, 2) / 2.0), -1),
            "node_mask": torch.ones(count, 2, dtype=torch.bool),
            "edge_index": torch.tensor([[0], [1]]).expand(count, 2, 1),
            "edge_mask": torch.ones(count, 1, dtype=torch.bool),
        }
        return {"graph": graph}


def trained_reward(config, *, batches=25):
    env = Patience(ToyConfig(max_steps=50), num_envs=16, seed=0)
    algorithm = learner(env, config=config, model=SMALL)
    rollout = Rollout(env, algorithm.policy, rollout_length=32)
    for _ in range(batches):
        batch = rollout.collect()
        metrics = algorithm.learn(batch)
    return float(batch["next", "reward"].mean()), metrics, algorithm


def test_ppo_waits_for_what_a_discount_forgoes():
    """Waiting earns 2 a step, taking 1; with a discount of 0.5 the 8 are worth 1 when the waiting begins."""
    settings = {"learning_rate": 5e-3, "minibatch_size": 256, "epochs": 3}
    short, _, _ = trained_reward(PPOConfig(gamma=0.5, **settings))
    patient, metrics, _ = trained_reward(PPOConfig(gamma=1.0, average_reward=True, **settings))
    assert short < 1.2
    assert patient > 1.7
    assert float(metrics["average_reward"]) == pytest.approx(2.0, abs=0.1)


def test_the_average_is_kept_in_the_state():
    _, _, algorithm = trained_reward(PPOConfig(gamma=1.0, average_reward=True), batches=2)
    _, _, other = trained_reward(PPOConfig(gamma=1.0, average_reward=True), batches=1)
    assert not torch.equal(other.average_reward.mean, algorithm.average_reward.mean)
    other.load_state_dict(algorithm.state_dict())
    assert torch.equal(other.average_reward.mean, algorithm.average_reward.mean)


def test_a_discount_beside_an_average_is_refused():
    with pytest.raises(ValidationError, match="set gamma to 1"):
        PPOConfig(average_reward=True, gamma=0.99)
    with pytest.raises(ValueError, match="gamma=1"):
        GraphGAE(gamma=0.99, lmbda=0.9, value_network=None, average_reward=AverageReward())
