"""The dueling network of Rainbow: advantages count relative to their mean over the choices."""

import torch
from tests.algorithms.sea import agent
from tests.algorithms.test_agents import transitions


def test_what_is_added_to_all_advantages_changes_nothing():
    network, ego = agent("rainbow").networks["network"], transitions("rainbow")["observation"]
    before = network(ego, "none")
    last = network.choices.layers[-1]
    with torch.no_grad():
        for name, parameter in last.named_parameters():
            if "bias" in name and "sigma" not in name:
                parameter.add_(torch.randn(network.atoms).repeat(network.num_actions))
    torch.testing.assert_close(network(ego, "none"), before, atol=1e-5, rtol=1e-5)


def test_what_is_added_to_the_value_of_a_state_moves_all_choices_alike():
    network, ego = agent("rainbow").networks["network"], transitions("rainbow")["observation"]
    before = network(ego, "none")
    last = network.state.layers[-1]
    with torch.no_grad():
        for name, parameter in last.named_parameters():
            if "bias" in name and "sigma" not in name:
                parameter.add_(1.0)
    torch.testing.assert_close(network(ego, "none"), before + 1, atol=1e-5, rtol=1e-5)
