"""IQN: one action for all quantiles of a target, and risk at will."""

import pytest
import torch
from tests.algorithms.sea import agent
from tests.algorithms.tables import make_env, make_learner
from tests.algorithms.test_agents import transitions
from tests.algorithms.test_dqn import Fixed
from torch import nn
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.models.agents.quantile import gather_choice

QUANTILES = [[0.0, 1.0, 0, 0], [3.0, 1.0, 0, 0]]
"""Two quantiles of four choices: the first has mean 1.5, each quantile's best are 1 and 3."""


@pytest.mark.parametrize("double", [True, False])
def test_a_target_takes_the_action_of_the_best_mean(double):
    """The planted fault, the best of each quantile by itself, would give 1 and 3 and a mean of 2."""
    learner, samples = agent("iqn", double=double), transitions("iqn")
    learner.networks["network"] = learner.targets["network"] = Fixed(QUANTILES)
    following = (learner.target(samples) - samples["reward"].unsqueeze(-1))[1] / 0.5
    torch.testing.assert_close(following, torch.tensor([0.0, 3.0]), atol=1e-5, rtol=1e-5)


def test_double_targets_choose_by_the_online_network():
    learner, samples = agent("iqn"), transitions("iqn")
    learner.networks["network"], learner.targets["network"] = Fixed([[0.0, 0, 5, 0]]), Fixed([[9.0, 0, 3, 0]])
    target = learner.target(samples)
    torch.testing.assert_close(target.squeeze(-1), samples["reward"] + 3 * samples["discount"])


class Ramp(nn.Module):
    """Choice 0 earns 1 for certain; choice 1 anything from -2 to 5, each quantile its level."""

    def forward(self, ego, levels, *_):
        levels = levels.expand(*ego.batch_size, levels.shape[-1])
        rows = torch.stack((torch.ones_like(levels), 7 * levels - 2), -1)
        return torch.nn.functional.pad(rows, (0, 2), value=-9.0)


def test_risk_decides_between_the_certain_and_the_better():
    ego = transitions("iqn")["observation"]
    ego["mask"][:] = False
    ego["mask"][:12, 0] = True
    ego["objects"][:12, 0] = torch.tensor([0.15, 0.0, 0.0, 0.0, 0.5])
    for risk, near, far in (("mean", 1, 1), ("cvar", 0, 0), ("adaptive", 0, 1)):
        learner = agent("iqn", risk=risk, risk_alpha=0.3)
        learner.networks["network"] = Ramp()
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            action = learner.act(ego)
        assert action[:12].tolist() == [near] * 12, risk
        assert action[12:].tolist() == [far] * 12, risk


def test_quantiles_of_a_known_return_are_learnt():
    """A coin decides between 0 and 1: low quantiles become 0, high ones 1."""
    learner, samples = agent("iqn", quantiles=16, kappa=0.05), transitions("iqn", 128)
    samples["discount"], samples["reward"] = torch.zeros(128), (torch.rand(128) < 0.5).float()
    for entry in ("self", "objects", "mask"):
        samples["observation", entry] = samples["observation", entry][:1].expand_as(
            samples["observation", entry]
        )
    samples["action"] = torch.zeros(128, dtype=torch.int64)
    for _ in range(200):
        learner.update(samples)
    found = learner.networks["network"](samples["observation"][:1], torch.tensor([0.1, 0.25, 0.75, 0.9]))[
        0, :, 0
    ]
    assert found[:2].max() < 0.2
    assert found[2:].min() > 0.8


@pytest.fixture(params=["nodes", "ragged", "pair", "ego"])
def some_network(request):
    """Build a quantile network with given settings, what it observes, and an action of each decider."""

    def build(**settings):
        if request.param == "ego":
            samples = transitions("iqn")
            network = agent("iqn", **settings).networks["network"]
            return network, samples["observation"], samples["action"]
        env = make_env(request.param)
        learner, root = make_learner("iqn", env, **settings), env.reset()
        return learner.networks["network"], root, env.actions.sample(root, env.graph)

    return build


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
def test_quantiles_of_single_actions_are_those_among_all_choices(some_network, dueling, noisy):
    network, observation, action = some_network(dueling=dueling, noisy=noisy)
    for levels in (torch.rand(5), torch.rand(*action.shape, 5)):
        torch.manual_seed(0)
        expected = gather_choice(network(observation, levels, "shared"), action)
        torch.manual_seed(0)
        found = network.of_actions(observation, action, levels, "shared")
        torch.testing.assert_close(found, expected)
        for one, other in zip(gradients(network, found), gradients(network, expected), strict=True):
            torch.testing.assert_close(one, other)


def gradients(network, quantiles):
    """Gradients of a function of all quantiles; zero where there is none."""
    weights = torch.linspace(-1, 1, quantiles.numel()).view_as(quantiles)
    parameters = list(network.parameters())
    return torch.autograd.grad(
        (quantiles * weights).sum(), parameters, allow_unused=True, materialize_grads=True
    )


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
def test_means_are_those_of_the_quantiles(some_network, dueling, noisy):
    network, observation, action = some_network(dueling=dueling, noisy=noisy)
    for levels in (torch.rand(5), torch.rand(*action.shape, 5)):
        torch.manual_seed(0)
        expected = network(observation, levels, "shared").mean(-2)
        torch.manual_seed(0)
        torch.testing.assert_close(network.means(observation, levels, "shared"), expected)
