"""Mean backlogs against queueing theory: every formula within two per cent, and capacity edges on both sides.

Each simulation is one batch of worlds, and formulas of single queues share one: queues that do not conflict.
"""

import pytest
import torch

from edgewise.systems.queueing.baselines import MaxWeight, RandomMaximal
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.env import QueueingEnv


def serve_all(root):
    return root.set("action", root["action_mask"])


def mean_queues(policy, *, worlds, slots, warm_up, seed=0, **settings):
    """Mean queue of each node over worlds and slots, `[N]`, after a warm-up from empty queues."""
    config = QueueingConfig(max_steps=10**9, max_backlog=1e9, **settings)
    env = QueueingEnv(config, num_envs=worlds, seed=seed)
    act = policy if policy is serve_all else policy(env)
    root, total = env.reset(), 0.0
    for slot in range(slots):
        root = env.step_mdp(env.step(act(root)))
        if slot >= warm_up:
            total = total + root["state", "queues"].mean(0, dtype=torch.float64)
    return total / (slots - warm_up)


def close(got, expected):
    assert torch.allclose(got, torch.tensor(expected, dtype=torch.float64), rtol=0.02), (got, expected)


RATES = ((0.3, 0.5), (0.4, 0.5), (0.6, 0.8))


THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize("arrivals_servable", [False, pytest.param(True, marks=THOROUGH)])
def test_a_single_queue_with_random_service(arrivals_servable):
    got = mean_queues(
        serve_all,
        worlds=2048,
        slots=1800,
        warm_up=400,
        graphs=("3:",),
        arrival_rates=tuple(arrival for arrival, _ in RATES),
        service_rates=tuple(service for _, service in RATES),
        service_law="bernoulli",
        arrivals_servable=arrivals_servable,
    )
    spare = (lambda a, s: 1 - s) if arrivals_servable else (lambda a, s: 1 - a)
    close(got, [a * spare(a, s) / (s - a) for a, s in RATES])


@pytest.mark.parametrize("arrivals_servable", [pytest.param(False, marks=THOROUGH), True])
def test_a_single_queue_with_a_unit_server_and_poisson_arrivals(arrivals_servable):
    rates = (0.3, 0.8, 0.9)
    got = mean_queues(
        serve_all,
        worlds=2048,
        slots=2000,
        warm_up=500,
        graphs=("3:",),
        arrival_law="poisson",
        arrival_rates=rates,
        arrivals_servable=arrivals_servable,
    )
    close(got, [a + a * a / (2 * (1 - a)) - a * arrivals_servable for a in rates])


@pytest.mark.parametrize(("count", "rate", "expected"), [(4, 0.2, 2.0), (2, 0.4, 1.6)])
def test_a_clique_is_one_queue_under_any_busy_schedule(count, rate, expected):
    together = count * rate
    assert (count * rate * (1 - rate) + together * (1 - together)) / (2 * (1 - together)) == pytest.approx(
        expected
    )
    settings = {"graphs": (f"clique{count}",), "arrival_rate": rate}
    got = mean_queues(MaxWeight, worlds=1500, slots=1000, warm_up=200, **settings)
    close(got.sum(), expected)


def test_a_random_maximal_schedule_on_a_line_is_three_queues_with_random_service():
    got = mean_queues(
        RandomMaximal, worlds=2048, slots=1500, warm_up=400, graphs=("line3",), arrival_rate=0.4
    )
    close(got.sum(), 3 * 0.4 * 0.6 / (0.5 - 0.4))


def drifts(name, rate, queues, *, slots=300, worlds=256):
    """How fast each queue of each world moves under MaxWeight, from the given lengths, `[B, N]`."""
    config = QueueingConfig(graphs=(name,), arrival_rate=rate, max_steps=10**9, max_backlog=1e9)
    env = QueueingEnv(config, num_envs=worlds, seed=1)
    root, act = env.reset(), MaxWeight(env)
    first = torch.tensor(queues).expand(worlds, -1)
    root["state", "queues"] = first.clone()
    root["action_mask"] = torch.ones_like(root["action_mask"])
    for _ in range(slots):
        root = env.step_mdp(env.step(act(root)))
    return (root["state", "queues"] - first) / slots


CAPACITIES = {
    "line3": (0.5, [40.0, 80.0, 40.0], [[0, 1], [1, 2]], 1),
    "ring5": (0.4, [40.0] * 5, [[0, 1, 2, 3, 4]], 2),
    "ring6": (0.5, [40.0] * 6, [[0, 1], [2, 3], [4, 5]], 1),
    "grid3x3": (0.5, [40.0, 50.0] * 4 + [40.0], [[0, 1], [3, 4], [7, 8]], 1),
}
"""Capacity; lengths that make the best schedules equally heavy; groups, and how many of one can be served."""


@pytest.mark.parametrize("name", CAPACITIES)
def test_maxweight_drains_just_below_capacity(name):
    capacity, queues, _, _ = CAPACITIES[name]
    drift = drifts(name, capacity - 0.02, queues).sum(-1)
    error = drift.std().item() / len(drift) ** 0.5
    assert drift.mean().item() < -0.5 * len(queues) * 0.02 - 4 * error


@pytest.mark.parametrize("name", CAPACITIES)
def test_backlogs_grow_by_the_excess_just_above_capacity(name):
    """Of a group at most so many are served in a slot, whoever decides; what comes beyond that stays."""
    capacity, queues, groups, served = CAPACITIES[name]
    drift = drifts(name, capacity + 0.02, queues)
    for group in groups:
        grown = drift[:, group].sum(-1)
        error = grown.std().item() / len(drift) ** 0.5
        assert grown.mean().item() > len(group) * (capacity + 0.02) - served - 4 * error
        assert grown.mean().item() > 0


def test_maxweight_keeps_within_the_drift_bound():
    """Σ E[Q] ≤ B / ε, with B half the second moments and ε the distance to the edge."""
    rate, capacity, nodes = 0.3, 0.5, 3
    got = mean_queues(MaxWeight, worlds=500, slots=600, warm_up=200, graphs=("line3",), arrival_rate=rate)
    bound = 0.5 * nodes * (rate + 1.0) / (capacity - rate)
    assert got.sum().item() < bound
