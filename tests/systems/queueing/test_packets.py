"""Every packet followed: waiting times add up to the backlog, and Little's law holds."""

from itertools import pairwise

import pytest
import torch
from tests.systems.queueing.packets import PacketLog

from edgewise.systems.queueing.baselines import MaxWeight
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.env import QueueingEnv


def followed(slots, *, worlds=16, room=1024, **settings):
    config = QueueingConfig(max_steps=10**9, max_backlog=1e9, **settings)
    env = QueueingEnv(config, num_envs=worlds, seed=2)
    root, act = env.reset(), MaxWeight(env)
    log = PacketLog(root["state"], room=room)
    for _ in range(slots):
        after = env.step(act(root))
        log.record(after["state"], after["next", "state"])
        root = env.step_mdp(after)
    return log.report(), root["state"]


SETTINGS = {
    "textbook": {"graphs": ("line3", "ring5")},
    "servable": {"graphs": ("line3",), "arrivals_servable": True},
    "batches": {
        "graphs": ("line3",),
        "arrival_law": "poisson",
        "arrival_rate": 0.9,
        "service_law": "poisson",
        "service_rate": 2.5,
    },
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_waiting_times_add_up_to_the_backlog(settings):
    report, state = followed(150, **settings)
    assert torch.equal(report.sojourn + report.age, report.backlog_sum)
    assert torch.equal(report.waiting, state["queues"].double())
    assert torch.equal(report.departed + report.waiting, state["arrived"].double())
    assert torch.allclose(report.backlog_sum.sum(-1), state["backlog_sum"])


@pytest.mark.parametrize("arrivals_servable", [False, True])
def test_littles_law_at_every_node(arrivals_servable):
    report, _ = followed(600, worlds=96, graphs=("line3",), arrivals_servable=arrivals_servable)
    departed = report.departed.sum(0)
    backlog = report.backlog_sum.sum(0) / (report.slots * 96)
    throughput = departed / (report.slots * 96)
    sojourn = report.sojourn.sum(0) / departed
    assert torch.allclose(backlog, throughput * sojourn, rtol=0.01)
    assert torch.allclose(throughput, torch.full((3,), 0.4, dtype=torch.float64), rtol=0.02)


def test_first_in_first_out_by_hand():
    """One queue: packets come in slots 0, 1 and 3, one leaves in slot 2, two in slot 4."""
    config = QueueingConfig(graphs=("clique1",))
    log = PacketLog(QueueingEnv(config, seed=0).reset()["state"])
    arrived, queue = [0, 1, 2, 2, 3, 3], [0, 1, 2, 1, 2, 0]
    states = [
        {"arrived": torch.tensor([[float(a)]]), "queues": torch.tensor([[float(q)]])}
        for a, q in zip(arrived, queue, strict=True)
    ]
    for before, after in pairwise(states):
        log.record(before, after)
    report = log.report()
    assert report.departed.item() == 3
    assert report.sojourn.item() == (2 - 0) + (4 - 1) + (4 - 3)


def test_a_full_log_says_so():
    with pytest.raises(ValueError, match="more room"):
        followed(60, graphs=("clique3",), arrival_rate=0.9, room=4)


def test_packets_are_followed_from_empty_queues_only():
    env = QueueingEnv(QueueingConfig(initial_queue=5), num_envs=8, seed=0)
    with pytest.raises(ValueError, match="initial_queue"):
        PacketLog(env.reset()["state"])
