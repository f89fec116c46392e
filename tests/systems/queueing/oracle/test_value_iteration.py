"""The exact optimum against known values, a closed form, brute force and simulation."""

from itertools import product

import numpy as np
import pytest
import torch

from edgewise.systems.queueing.baselines import MaxDepartures, MaxWeight
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.env import QueueingEnv
from edgewise.systems.queueing.graphs import conflict_graph, conflict_graphs
from edgewise.systems.queueing.oracle.value_iteration import mean_backlog, optimal_schedule
from edgewise.systems.queueing.schedulers import SetScheduler


def maxweight_on(name):
    graphs = conflict_graphs((name,))
    scheduler = SetScheduler(graphs)

    def schedule(queues):
        order = torch.arange(queues.shape[-1]).expand(queues.shape)
        number = torch.zeros(len(queues), dtype=torch.long)
        return scheduler.best(number, [queues], order=order, counted=queues > 0) & (queues > 0)

    return schedule


@pytest.mark.parametrize(
    ("rate", "cap", "optimum", "maxweight"), [(0.3, 30, 1.2708, 1.351), (0.4, 40, 2.4135, 2.791)]
)
def test_a_line_of_three(rate, cap, optimum, maxweight):
    found = optimal_schedule(conflict_graph("line3"), [rate] * 3, cap=cap)
    assert found.backlog == pytest.approx(optimum, abs=2e-4)
    assert found.truncation_bias < 1e-5
    assert found.full < 1e-6
    assert mean_backlog(maxweight_on("line3"), [rate] * 3, cap=cap) == pytest.approx(maxweight, rel=0.01)


def test_a_short_cap_is_confessed():
    found = optimal_schedule(conflict_graph("line3"), [0.4] * 3, cap=6)
    assert found.backlog < 2.40
    assert found.truncation_bias > 0.05
    assert found.full > 0.005


def test_the_best_schedule_serves_both_ends_or_else_the_middle():
    found = optimal_schedule(conflict_graph("line3"), [0.4] * 3, cap=12)
    queues = torch.cartesian_prod(*[torch.arange(7.0)] * 3)
    ends = (queues[:, 0] > 0) & (queues[:, 2] > 0)
    middle = ~ends & (queues[:, 1] > 0)
    chosen = found.schedule(queues)
    assert chosen[ends][:, 0].all()
    assert chosen[middle][:, 1].all()


def test_a_clique_of_two_is_a_closed_form():
    assert optimal_schedule(conflict_graph("clique2"), [0.4, 0.4], cap=40).backlog == pytest.approx(
        1.6, abs=1e-3
    )


def stationary_backlog(rates, cap, *, arrivals_servable):
    """Two rivals from the transition matrix written out; the longer queue is served, the first if equal."""
    states = list(product(range(cap + 1), repeat=2))
    matrix = np.zeros((len(states), len(states)))
    for row, (one, two) in enumerate(states):
        served = (1, 0) if one >= two else (0, 1)
        for coming in product((0, 1), repeat=2):
            chance = np.prod([r if c else 1 - r for r, c in zip(rates, coming, strict=True)])
            after = []
            for q, s, c in zip((one, two), served, coming, strict=True):
                left = max(q - s + c, 0) if arrivals_servable else max(q - s, 0) + c
                after.append(min(left, cap))
            matrix[row, states.index(tuple(after))] += chance
    share = np.linalg.matrix_power(matrix, 4096)[0]
    return float(share @ [one + two for one, two in states])


@pytest.mark.parametrize("arrivals_servable", [False, True])
def test_a_given_schedule_has_the_mean_of_its_transition_matrix(arrivals_servable):
    def longer_first(queues):
        first = queues[:, 0] >= queues[:, 1]
        return torch.stack((first, ~first), -1)

    rates = (0.45, 0.3)
    got = mean_backlog(longer_first, rates, cap=4, arrivals_servable=arrivals_servable)
    assert got == pytest.approx(stationary_backlog(rates, 4, arrivals_servable=arrivals_servable), abs=1e-4)
    best = optimal_schedule(conflict_graph("clique2"), rates, cap=4, arrivals_servable=arrivals_servable)
    assert best.backlog <= got + 1e-5


def test_one_queue_that_loses_packets_when_full_is_solved_by_hand():
    """With room for one packet it is full after a slot with an arrival, whatever was before."""
    found = optimal_schedule(conflict_graph("clique1"), [0.3], cap=1)
    assert found.backlog == pytest.approx(0.3, abs=1e-4)
    assert found.full == pytest.approx(0.3, abs=1e-4)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(MaxWeight, 2.8063), pytest.param(MaxDepartures, 2.4135, marks=pytest.mark.thorough)],
)
def test_simulation_agrees_with_the_exact_means(policy, expected):
    config = QueueingConfig(graphs=("line3",), arrival_rate=0.4, max_steps=10**9)
    env = QueueingEnv(config, num_envs=1500, seed=0)
    root, act, total = env.reset(), policy(env), 0.0
    for slot in range(1200):
        root = env.step_mdp(env.step(act(root)))
        total += root["state", "queues"].sum(-1).mean().item() if slot >= 300 else 0.0
    assert total / 900 == pytest.approx(expected, rel=0.02)


def test_rates_beyond_capacity_and_wrong_counts_are_refused():
    with pytest.raises(ValueError, match="2 rates for a graph of 3 nodes"):
        optimal_schedule(conflict_graph("line3"), [0.4, 0.4], cap=4)
