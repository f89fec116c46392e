"""The temperature moves the right way, and soft values are the lesser of two with entropy added."""

import torch

from edgewise.objectives.entropy import soft_value, temperature_loss


def test_a_soft_value_takes_the_lesser_critic_and_pays_for_entropy():
    first, second, log_prob = torch.tensor([1.0, 4.0]), torch.tensor([2.0, 3.0]), torch.tensor([-1.0, 0.5])
    found = soft_value(first, second, log_prob=log_prob, temperature=0.25)
    assert found.tolist() == [1.25, 2.875]


def test_the_temperature_rises_where_entropy_is_wanted_and_falls_where_there_is_enough():
    for entropy, wanted in ((1.0, -2.0), (-3.0, -2.0)):
        log_temperature = torch.zeros((), requires_grad=True)
        temperature_loss(log_temperature.exp(), torch.full((8,), -entropy), target_entropy=wanted).backward()
        rises = bool(log_temperature.grad < 0)
        assert rises == (entropy < wanted)


def test_it_is_at_rest_exactly_at_the_wanted_entropy():
    log_temperature = torch.tensor(0.3, requires_grad=True)
    temperature_loss(log_temperature.exp(), torch.tensor([1.5, 2.5]), target_entropy=-2.0).backward()
    assert log_temperature.grad == 0


def test_the_policy_gets_no_gradient_from_it():
    log_prob = torch.ones(3, requires_grad=True)
    loss = temperature_loss(torch.zeros((), requires_grad=True), log_prob, target_entropy=-2.0)
    assert torch.autograd.grad(loss, log_prob, allow_unused=True) == (None,)
