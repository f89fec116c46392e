"""Returns by the scan equal their definitions, whatever ends where."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.objectives.oracles import by_rows, double_sum
from torchrl.objectives.value.functional import generalized_advantage_estimate

from edgewise.objectives.returns import (
    discounted_scan,
    generalized_advantage,
    two_player_advantage,
)

numbers = st.floats(0, 1)


@st.composite
def rollouts(draw, dtype=torch.float64):
    """Random numbers `[B, T]` with inner terminations and truncations, from none to all."""
    rows, steps = draw(st.integers(1, 3)), draw(st.integers(1, 13))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    ends = draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    reward, value, next_value = torch.randn(3, rows, steps, generator=generator, dtype=dtype)
    done = torch.rand(rows, steps, generator=generator) < ends
    terminated = done & (torch.rand(rows, steps, generator=generator) < 0.5)
    return reward, value, next_value, done, terminated


@given(rollouts(), numbers, numbers)
def test_advantages_are_the_double_sum(rollout, gamma, lmbda):
    reward, value, next_value, done, terminated = rollout
    ends = {"done": done, "terminated": terminated}
    found, target = generalized_advantage(
        reward, value, next_value=next_value, gamma=gamma, lmbda=lmbda, **ends
    )
    torch.testing.assert_close(found, by_rows(double_sum, *rollout, gamma=gamma, lmbda=lmbda))
    torch.testing.assert_close(target, found + value)


def test_advantages_of_a_case_worked_by_hand():
    """γ = λ = 1/2. Step 1 terminates, step 3 is cut off, step 4 is the last of the rollout."""
    reward = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    value = torch.tensor([10.0, 20.0, 30.0, 40.0, 50.0])
    next_value = torch.tensor([20.0, 999.0, 40.0, 60.0, 70.0])
    done = torch.tensor([False, True, False, True, False])
    terminated = torch.tensor([False, True, False, False, False])
    # errors: 1+10-10, 2+0-20, 3+20-30, 4+30-40, 5+35-50
    expected = torch.tensor([1 - 18 / 4, -18.0, -7 - 6 / 4, -6.0, -10.0])
    found, target = generalized_advantage(
        reward, value, next_value=next_value, done=done, terminated=terminated, gamma=0.5, lmbda=0.5
    )
    assert found.tolist() == expected.tolist()
    assert target.tolist() == (expected + value).tolist()


@given(rollouts(dtype=torch.float32), numbers, numbers)
def test_advantages_are_torchrls(rollout, gamma, lmbda):
    reward, value, next_value, done, terminated = (part.unsqueeze(-1) for part in rollout)
    found, _ = generalized_advantage(
        reward,
        value,
        next_value=next_value,
        done=done,
        terminated=terminated,
        gamma=gamma,
        lmbda=lmbda,
        time_dim=1,
    )
    expected, _ = generalized_advantage_estimate(
        gamma, lmbda, value, next_value, reward, done=done, terminated=terminated, time_dim=1
    )
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@given(rollouts(), st.integers(0, 2))
def test_time_may_be_any_dimension(rollout, time_dim):
    stacked = [part.unsqueeze(0).expand(2, -1, -1).movedim(-1, time_dim) for part in rollout]
    reward, value, next_value, done, terminated = stacked
    settings = {"gamma": 0.9, "lmbda": 0.8}
    found, _ = generalized_advantage(
        reward, value, next_value=next_value, done=done, terminated=terminated, time_dim=time_dim, **settings
    )
    expected = by_rows(double_sum, *rollout, **settings)
    torch.testing.assert_close(found.movedim(time_dim, -1), expected.expand(2, -1, -1))


def test_a_long_scan_stays_accurate_in_single_precision():
    """A scan by quotients of cumulative products divides by zero here; products alone stay at rounding."""
    terms = torch.randn(2, 5000, generator=torch.Generator().manual_seed(0))
    decay = torch.full_like(terms, 0.99 * 0.95)
    decay[1] = 0.9999
    exact, after = torch.zeros(2, 5000, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    for step in reversed(range(5000)):
        after = exact[:, step] = terms[:, step].double() + decay[:, step].double() * after
    error = (discounted_scan(terms, decay) - exact).abs().amax(-1) / exact.abs().amax(-1)
    assert error[0] < 1e-6
    assert error[1] < 1e-5, "a horizon of 10,000 steps: a loop in single precision is off by 1.3e-6"
    assert (decay.cumprod(-1) == 0).any(), "the case would not tell a scan by quotients"


def test_advantages_carry_gradients():
    reward, value, next_value = torch.randn(3, 2, 5, dtype=torch.float64, requires_grad=True)
    flags = torch.tensor([[False, False, True, False, False], [False] * 5])

    def advantages(reward, value, next_value):
        return generalized_advantage(
            reward, value, next_value=next_value, done=flags, terminated=flags, gamma=0.9, lmbda=0.7
        )

    inputs = [part.detach().requires_grad_() for part in (reward, value, next_value)]
    assert torch.autograd.gradcheck(advantages, inputs)


def one_sided(reward, value, next_value, player, next_player, done, terminated, **settings):
    """Independent: the sum of errors, each turned to the view of the one who moved first."""
    advantage = []
    for start in range(len(reward)):
        total, weight = 0.0, 1.0
        for step in range(start, len(reward)):
            mine = 1.0 if player[step] == player[start] else -1.0
            same = 1.0 if next_player[step] == player[step] else -1.0
            bootstrap = 0.0 if terminated[step] else settings["gamma"] * same * next_value[step]
            total += weight * mine * (reward[step] + bootstrap - value[step])
            if done[step]:
                break
            weight *= settings["gamma"] * settings["lmbda"]
        advantage.append(total)
    return advantage


@given(rollouts(), st.integers(0, 2**31), numbers, numbers)
def test_two_players_move_in_any_order(rollout, seed, gamma, lmbda):
    reward, value, next_value, done, terminated = rollout
    generator = torch.Generator().manual_seed(seed)
    player, next_player = torch.randint(0, 2, (2, *reward.shape), generator=generator)
    players = {"player": player, "next_player": next_player}
    settings = {"gamma": gamma, "lmbda": lmbda}
    found, target = two_player_advantage(
        reward, value, next_value=next_value, done=done, terminated=terminated, **players, **settings
    )
    expected = by_rows(
        one_sided, reward, value, next_value, player, next_player, done, terminated, **settings
    )
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(target, expected + value)


def test_strict_alternation_has_its_closed_form_and_a_wrong_sign_shows():
    """δ = r - γV' - V and A_t = δ_t - γλA_{t+1}; to treat both as one player gives something else."""
    reward, value = torch.zeros(6), torch.rand(6)
    reward[-1] = 1.0
    next_value = torch.cat([value[1:], torch.zeros(1)])
    player = torch.arange(6) % 2
    done = torch.arange(6) == 5
    settings = {"done": done, "terminated": done, "gamma": 0.9, "lmbda": 0.8, "next_value": next_value}
    expected, after = torch.zeros(6), torch.tensor(0.0)
    for step in reversed(range(6)):
        error = reward[step] - 0.9 * next_value[step] * (step < 5) - value[step]
        after = expected[step] = error - 0.9 * 0.8 * after
    found, _ = two_player_advantage(reward, value, player=player, next_player=1 - player, **settings)
    torch.testing.assert_close(found, expected)
    planted, _ = generalized_advantage(reward, value, **settings)
    assert (planted - expected).abs().amax() > 0.1
    same_player, _ = two_player_advantage(reward, value, player=player, next_player=player, **settings)
    assert (same_player - expected).abs().amax() > 0.1
