"""Retrace and V-trace equal their double sums, whatever ends where and whoever is inactive."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.objectives.oracles import by_rows

from edgewise.objectives.retrace import retrace_target
from edgewise.objectives.returns import generalized_advantage
from edgewise.objectives.vtrace import vtrace

numbers = st.floats(0, 1)
bounds = st.floats(0.1, 3)


def retrace_sum(reward, value, next_value, log_ratio, done, terminated, active, *, gamma, lmbda):
    """Q_t + Σ_k γ^{k-t} (Π_{t<i≤k} c_i) δ_k by the definition, one row of T numbers."""
    targets = []
    for start in range(len(reward)):
        total, discount, trace = 0.0, 1.0, 1.0
        for step in range(start, len(reward)):
            if step > start:
                trace *= lmbda * min(1.0, math.exp(log_ratio[step]))
            if not active[step]:
                break
            bootstrap = 0.0 if terminated[step] else gamma * next_value[step]
            total += discount * trace * (reward[step] + bootstrap - value[step])
            discount *= gamma
            if done[step] or terminated[step]:
                break
        targets.append(value[start] + total if active[start] else value[start])
    return targets


def vtrace_sum(reward, value, next_value, log_ratio, done, terminated, active, *, gamma, lmbda, rho, c):
    """V_t + Σ_k γ^{k-t} (Π_{t≤i<k} c_i) ρ_k δ_k by the definition, one row of T numbers."""
    targets = []
    for start in range(len(reward)):
        total, discount, trace = 0.0, 1.0, 1.0
        for step in range(start, len(reward)):
            if not active[step]:
                break
            ratio = math.exp(log_ratio[step])
            bootstrap = 0.0 if terminated[step] else gamma * next_value[step]
            total += discount * trace * min(rho, ratio) * (reward[step] + bootstrap - value[step])
            trace *= lmbda * min(c, ratio)
            discount *= gamma
            if done[step] or terminated[step]:
                break
        targets.append(value[start] + total)
    return targets


def vtrace_advantage(targets, reward, value, next_value, log_ratio, done, terminated, active, *, gamma, rho):
    """ρ_t (r_t + γ v_{t+1} - V_t) by the definition, from the targets of one row."""
    found = []
    for step in range(len(reward)):
        last = step + 1 == len(reward) or done[step] or not active[step + 1]
        ahead = next_value[step] if last else targets[step + 1]
        ahead = 0.0 if terminated[step] else gamma * ahead
        advantage = min(rho, math.exp(log_ratio[step])) * (reward[step] + ahead - value[step])
        found.append(advantage if active[step] else 0.0)
    return found


@st.composite
def steps(draw):
    """Random numbers `[B, T]`, terminations, truncations and inactive agents, from none to all."""
    rows, length = draw(st.integers(1, 3)), draw(st.integers(1, 11))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    parts = torch.randn(4, rows, length, generator=generator, dtype=torch.float64)
    ends = draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    done = torch.rand(rows, length, generator=generator) < ends
    terminated = done & (torch.rand(rows, length, generator=generator) < 0.5)
    active = torch.rand(rows, length, generator=generator) >= draw(st.sampled_from([0.0, 0.3, 1.0]))
    return *parts, done, terminated, active


def call(function, rollout, **settings):
    reward, value, next_value, log_ratio, done, terminated, active = rollout
    return function(
        reward,
        value,
        next_value=next_value,
        log_ratio=log_ratio,
        done=done,
        terminated=terminated,
        active=active,
        **settings,
    )


@given(steps(), numbers, numbers)
def test_retrace_is_the_double_sum(rollout, gamma, lmbda):
    expected = by_rows(retrace_sum, *rollout, gamma=gamma, lmbda=lmbda)
    torch.testing.assert_close(
        call(retrace_target, rollout, gamma=gamma, lmbda=lmbda), expected, rtol=1e-12, atol=1e-12
    )


@given(steps(), numbers, numbers, bounds, bounds)
def test_vtrace_is_the_double_sum(rollout, gamma, lmbda, rho, c):
    settings = {"gamma": gamma, "lmbda": lmbda}
    targets = by_rows(vtrace_sum, *rollout, **settings, rho=rho, c=c)
    advantage, target = call(vtrace, rollout, **settings, clip_rho=rho, clip_c=c)
    expected = by_rows(vtrace_advantage, targets, *rollout, gamma=gamma, rho=rho)
    torch.testing.assert_close(target, targets, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(advantage, expected, rtol=1e-12, atol=1e-12)


HAND = {
    "reward": torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64),
    "value": torch.tensor([8.0, 16.0, 32.0], dtype=torch.float64),
    "next_value": torch.tensor([10.0, 20.0, 40.0], dtype=torch.float64),
    "log_ratio": torch.tensor([4.0, 0.5, 2.0], dtype=torch.float64).log(),
    "done": torch.zeros(3, dtype=torch.bool),
    "terminated": torch.zeros(3, dtype=torch.bool),
}


def test_retrace_by_hand():
    """γ = 1/2, λ = 1: errors 1+5-8, 2+10-16, 4+20-32; weights of steps 1 and 2 are 1/2 and 1."""
    found = retrace_target(**HAND, gamma=0.5, lmbda=1.0)
    last = 32 - 8
    middle = 16 - 4 + 0.5 * 1 * (-8)
    first = 8 - 2 + 0.5 * 0.5 * (-4 + 0.5 * 1 * (-8))
    assert found.tolist() == [first, middle, last]


def test_vtrace_by_hand():
    """γ = 1/2, ρ ≤ 2, c ≤ 1: ρ is 2, 1/2, 2 and c is 1, 1/2, 1."""
    advantage, target = vtrace(**HAND, gamma=0.5, clip_rho=2.0)
    last = 32 + 2 * (4 + 20 - 32)
    middle = 16 + 0.5 * (2 + 10 - 16) + 0.5 * 0.5 * (last - 32)
    first = 8 + 2 * (1 + 5 - 8) + 0.5 * 1 * (middle - 16)
    torch.testing.assert_close(target, torch.tensor([first, middle, last], dtype=torch.float64))
    expected = [2 * (1 + middle / 2 - 8), 0.5 * (2 + last / 2 - 16), 2 * (4 + 20 - 32)]
    torch.testing.assert_close(advantage, torch.tensor(expected, dtype=torch.float64))


@given(steps(), numbers, numbers)
def test_on_policy_they_are_the_returns_that_are_known(rollout, gamma, lmbda):
    """With equal policies V-trace has the targets of GAE(λ), and Retrace(1) those of the longest return."""
    reward, value, next_value, log_ratio, done, terminated, _ = rollout
    known = {"next_value": next_value, "done": done, "terminated": terminated, "gamma": gamma}
    _, target = vtrace(reward, value, log_ratio=torch.zeros_like(log_ratio), lmbda=lmbda, **known)
    _, expected = generalized_advantage(reward, value, lmbda=lmbda, **known)
    torch.testing.assert_close(target, expected)
    shifted = torch.cat([value[:, 1:], next_value[:, -1:]], 1)
    known["next_value"] = torch.where(done, next_value, shifted)
    found = retrace_target(reward, value, log_ratio=torch.zeros_like(log_ratio), lmbda=1.0, **known)
    _, longest = generalized_advantage(reward, value, lmbda=1.0, **known)
    torch.testing.assert_close(found, longest)


@pytest.mark.parametrize("time_dim", [0, 1])
def test_time_may_be_any_dimension(time_dim):
    generator = torch.Generator().manual_seed(0)
    reward, value, next_value, log_ratio = torch.randn(4, 5, 6, generator=generator, dtype=torch.float64)
    done = torch.rand(5, 6, generator=generator) < 0.3
    parts = (reward, value, next_value, log_ratio, done, done & (reward > 0), reward < 1)
    turned = [part if time_dim == 1 else part.T.contiguous() for part in parts]
    expected = call(retrace_target, parts, gamma=0.9, lmbda=0.8)
    found = call(retrace_target, turned, gamma=0.9, lmbda=0.8, time_dim=time_dim)
    assert torch.equal(found if time_dim == 1 else found.T, expected)
    expected = call(vtrace, parts, gamma=0.9)
    found = call(vtrace, turned, gamma=0.9, time_dim=time_dim)
    assert all(
        torch.equal(one if time_dim == 1 else one.T, two) for one, two in zip(found, expected, strict=True)
    )


def test_what_an_inactive_agent_holds_does_not_matter():
    parts = [part.clone() for part in HAND.values()]
    rollout = [*parts, torch.tensor([True, False, True])]
    expected = [call(retrace_target, rollout, gamma=0.9, lmbda=0.9), *call(vtrace, rollout, gamma=0.9)]
    for number in (0, 2, 3):
        rollout[number][1] = math.nan
    found = [call(retrace_target, rollout, gamma=0.9, lmbda=0.9), *call(vtrace, rollout, gamma=0.9)]
    for one, two in zip(found, expected, strict=True):
        assert torch.equal(one, two)


def test_targets_have_no_gradient():
    value = HAND["value"].clone().requires_grad_()
    settings = {**HAND, "value": value, "gamma": 0.9}
    advantage, target = vtrace(**settings)
    assert not advantage.requires_grad
    assert not target.requires_grad
    assert not retrace_target(**settings, lmbda=0.9).requires_grad
