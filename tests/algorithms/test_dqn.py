"""DQN: one network chooses, the other values."""

import torch
from tests.algorithms.sea import agent
from tests.algorithms.test_agents import transitions
from torch import nn

from edgewise.objectives.temporal_difference import gather_actions


class Fixed(nn.Module):
    """A network that says the same of everything."""

    def __init__(self, values):
        super().__init__()
        self.said = torch.tensor(values)

    def forward(self, ego, *_):
        return self.said.expand(*ego.batch_size, *self.said.shape)

    def joint(self, values, _):
        return values

    def means(self, ego, *_):
        return self(ego).mean(-2)

    def of_actions(self, ego, action, *_):
        return gather_actions(self(ego), action)


def test_the_online_network_chooses_and_the_target_network_values():
    """The planted fault is the plain maximum: 9, not 3."""
    samples = transitions("dqn")
    for double, wanted in ((True, 3.0), (False, 9.0)):
        learner = agent("dqn", double=double)
        learner.networks["network"], learner.targets["network"] = Fixed([0.0, 0, 5, 0]), Fixed([9.0, 0, 3, 0])
        target = learner.target(samples)
        torch.testing.assert_close(target, samples["reward"] + samples["discount"] * wanted)


def test_dueling_takes_the_mean_advantage_out():
    learner = agent("dqn", dueling=True)
    network, view = learner.networks["network"], transitions("dqn")["observation"]
    torch.testing.assert_close(
        network(view).mean(-1, keepdim=True),
        network.state(network.hidden(network.features(view))),
        atol=1e-5,
        rtol=1e-5,
    )


def test_values_become_those_of_a_known_problem():
    """Two actions earn their number, then all is over: values are the numbers."""
    learner, samples = agent("dqn", max_grad_norm=10.0), transitions("dqn", 64)
    samples["discount"] = torch.zeros(64)
    samples["reward"] = samples["action"].float()
    for _ in range(200):
        learner.update(samples)
    found = learner.networks["network"](samples["observation"]).gather(-1, samples["action"].unsqueeze(-1))
    assert (found.squeeze(-1) - samples["reward"]).abs().mean() < 0.2
