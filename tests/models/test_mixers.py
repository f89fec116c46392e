"""Mixers: monotone in every member that acts, the same in any order, and blind to idle members."""

import pytest
import torch
from tensordict import TensorDict
from torch import nn

from edgewise.models.mixers import MonotoneMixer, SumMixer


class Own(nn.Module):
    """Features that are observed as they are."""

    width, per_choice = 3, False

    def forward(self, observation):
        return observation["x"]


def acting(observation):
    return observation["active"]


def teams(count=64, members=4):
    generator = torch.Generator().manual_seed(0)
    active = torch.rand(count, members, generator=generator) < 0.7
    active[:, 0] = True
    observation = TensorDict(
        {"x": torch.randn(count, members, 3, generator=generator), "active": active}, [count]
    )
    return observation, torch.randn(count, members, generator=generator)


def monotone(seed=0, counted=acting):
    torch.manual_seed(seed)
    return MonotoneMixer(Own(), width=8, counted=counted)


def test_a_sum_leaves_out_who_is_idle():
    observation, values = teams()
    expected = [
        sum(v for v, a in zip(*row, strict=True) if a)
        for row in zip(values.tolist(), observation["active"].tolist(), strict=True)
    ]
    assert SumMixer(acting)(values, observation).tolist() == pytest.approx(expected, abs=1e-5)
    torch.testing.assert_close(SumMixer(lambda _: None)(values, observation), values.sum(-1))


@pytest.mark.parametrize("seed", range(5))
def test_the_value_of_a_team_rises_with_that_of_each_acting_member_alone(seed):
    observation, values = teams()
    mixer = monotone(seed)
    slope = torch.autograd.grad(mixer(values.requires_grad_(), observation).sum(), values)[0]
    assert (slope >= 0).all()
    assert (slope[observation["active"]] > 0).float().mean() > 0.9
    assert not slope[~observation["active"]].any()


@pytest.mark.parametrize("make", [monotone, lambda: SumMixer(acting)])
def test_idle_members_and_the_order_of_the_team_do_not_matter(make):
    observation, values = teams()
    mixer = make()
    expected = mixer(values, observation)
    idle = ~observation["active"]
    changed = observation.clone()
    changed["x"][idle] = 7.0
    torch.testing.assert_close(mixer(values.masked_fill(idle, -3.0), changed), expected)
    order = torch.tensor([2, 0, 3, 1])
    turned = TensorDict(
        {name: value[:, order] for name, value in observation.items()}, observation.batch_size
    )
    torch.testing.assert_close(mixer(values[:, order], turned), expected)


def test_a_mixer_reads_what_its_team_observes():
    observation, values = teams()
    mixer, other = monotone(), observation.clone()
    other["x"] += 1.0
    assert (mixer(values, observation) - mixer(values, other)).abs().min() > 1e-6
