"""Targets of IQN: with `double` the online network chooses their action, otherwise the target network."""

import pytest
import torch
from tests.algorithms.sea import agent
from tests.algorithms.test_agents import transitions
from tests.algorithms.test_dqn import Fixed


@pytest.mark.parametrize(("double", "value"), [(True, 3.0), (False, 9.0)])
def test_who_chooses_the_action_of_a_target(double, value):
    """The online network likes the third choice, the target network the first one."""
    learner, samples = agent("iqn", double=double), transitions("iqn")
    learner.networks["network"], learner.targets["network"] = Fixed([[0.0, 0, 5, 0]]), Fixed([[9.0, 0, 3, 0]])
    expected = samples["reward"] + value * samples["discount"]
    torch.testing.assert_close(learner.target(samples).squeeze(-1), expected)
