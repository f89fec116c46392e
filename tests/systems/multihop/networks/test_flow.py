"""The flow of least delay: closed forms on parallel links, and a solver on small networks."""

import numpy as np
import pytest
import scipy.optimize

from edgewise.systems.multihop.networks import flow


@pytest.fixture
def exact(monkeypatch):
    """Let delays of busy links grow as those of a queue do, to compare with closed forms."""
    monkeypatch.setattr(flow, "FULL", 0.98)


def test_two_parallel_links_share_the_traffic_so_that_marginal_delays_are_equal(exact):
    """Rates 4 and 1, traffic 3: (4 - f)^2 / 4 = (1 - g)^2 with f + g = 3 gives g = 1/3 and a delay of 9/4."""
    start, end = np.array([0, 0, 1]), np.array([2, 1, 2])
    rate = np.array([4.0, 1.0, 1e9])
    arrivals = np.array([[3.0], [0.0], [0.0]])
    length = flow.marginal_delays(start, end, rate, np.array([2]), arrivals)
    assert length[0] == pytest.approx(9 / 4, rel=1e-2)
    assert length[1] == pytest.approx(9 / 4, rel=1e-2)


def test_little_traffic_takes_the_shortest_path_by_rate():
    start, end, rate = np.array([0, 0, 1]), np.array([2, 1, 2]), np.array([1.0, 4.0, 4.0])
    length = flow.marginal_delays(start, end, rate, np.array([2]), np.array([[1e-6], [0.0], [0.0]]))
    assert length == pytest.approx(1 / rate, rel=1e-3)
    distance = flow.distances_to(start, end, length, np.array([2]), 3)
    assert distance[:, 0] == pytest.approx([0.5, 0.25, 0.0], rel=1e-3)


def test_more_traffic_than_links_carry_has_a_finite_delay():
    length = flow.marginal_delays(
        np.array([0]), np.array([1]), np.array([1.0]), np.array([1]), np.array([[2.0], [0.0]])
    )
    assert np.isfinite(length).all()
    assert length[0] > 1 / (1 - flow.FULL) ** 2


def test_nodes_without_a_path_are_infinitely_far():
    distance = flow.distances_to(np.array([0]), np.array([1]), np.array([1.0]), np.array([1]), 3)
    assert distance[:, 0].tolist() == [1.0, 0.0, np.inf]


@pytest.mark.parametrize("seed", range(3))
def test_the_total_delay_is_that_of_a_solver(exact, seed):
    """Two classes on a square with both diagonals; the solver works on flows of every class on every link."""
    generator = np.random.default_rng(seed)
    links = [(a, b) for a in range(4) for b in range(4) if a != b]
    start, end = (np.array(side) for side in zip(*links, strict=True))
    rate = generator.uniform(1.0, 3.0, len(links))
    destination = np.array([2, 3])
    arrivals = np.zeros((4, 2))
    arrivals[0, 0], arrivals[1, 1], arrivals[0, 1] = generator.uniform(0.3, 1.2, 3)
    count = len(links)

    def delay(flows):
        total = flows.reshape(2, count).sum(0)
        return (total / (rate - total)).sum()

    balance, supply = [], []
    for k in range(2):
        for node in range(4):
            if node == destination[k]:
                continue
            row = np.zeros((2, count))
            row[k] = (start == node).astype(float) - (end == node)
            balance.append(row.ravel())
            supply.append(arrivals[node, k])
    begin = scipy.optimize.linprog(
        np.ones(2 * count),
        A_eq=np.array(balance),
        b_eq=supply,
        A_ub=np.tile(np.eye(count), 2),
        b_ub=0.8 * rate,
    ).x
    solved = scipy.optimize.minimize(
        delay,
        begin,
        method="SLSQP",
        bounds=[(0, None)] * (2 * count),
        constraints=[
            {"type": "eq", "fun": lambda flows: np.array(balance) @ flows - supply},
            {"type": "ineq", "fun": lambda flows: 0.97 * rate - flows.reshape(2, count).sum(0)},
        ],
        options={"maxiter": 500, "ftol": 1e-10},
    )
    length = flow.marginal_delays(start, end, rate, destination, arrivals)
    ours = rate - np.sqrt(rate / length)  # the flow at which a link has this marginal delay
    assert (ours / (rate - ours)).sum() == pytest.approx(solved.fun, rel=0.02)
