"""Slow definitions that the fast functions are held against: plain sums over plain lists."""

import torch


def double_sum(reward, value, next_value, done, terminated, *, gamma, lmbda):
    """A_t = Σ_l (γλ)^l δ_{t+l}, stopping after the first end; one row of T numbers."""
    steps = len(reward)
    advantage = []
    for start in range(steps):
        total, weight = 0.0, 1.0
        for step in range(start, steps):
            bootstrap = 0.0 if terminated[step] else gamma * next_value[step]
            total += weight * (reward[step] + bootstrap - value[step])
            if done[step] or terminated[step]:
                break
            weight *= gamma * lmbda
        advantage.append(total)
    return advantage


def forward_view(reward, next_value, done, terminated, *, gamma, lmbda, longest=None):
    """λ-returns as the mixture of n-step returns that defines them; with `longest`, that n-step return."""
    steps = len(reward)
    result = []
    for start in range(steps):
        returns, total, discount = [], 0.0, 1.0
        for step in range(start, steps):
            total += discount * reward[step]
            discount *= gamma
            returns.append(total + (0.0 if terminated[step] else discount * next_value[step]))
            if done[step] or terminated[step] or len(returns) == longest:
                break
        if longest is not None:
            result.append(returns[-1])
            continue
        mixture = sum((1 - lmbda) * lmbda**n * value for n, value in enumerate(returns[:-1]))
        result.append(mixture + lmbda ** (len(returns) - 1) * returns[-1])
    return result


def by_rows(oracle, *tensors, **settings):
    """Apply an oracle of one row to every row of `[B, T]` tensors."""
    rows = zip(*(tensor.tolist() for tensor in tensors), strict=True)
    return torch.tensor([oracle(*row, **settings) for row in rows], dtype=tensors[0].dtype)
