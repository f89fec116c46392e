"""Every packet followed through its network: waiting times add up, and Little's law holds for each class."""

import pytest
import torch
from tests.systems.multihop.packets import JourneyLog

from edgewise.systems.multihop.baselines import BASELINES
from edgewise.systems.multihop.config import MultihopConfig
from edgewise.systems.multihop.env import MultihopEnv


def followed(slots, *, worlds, policy="spbp", networks=("cross",)):
    config = MultihopConfig(networks=networks, max_steps=10**9, max_backlog=1e9)
    env = MultihopEnv(config, num_envs=worlds, seed=3)
    act, root = BASELINES[policy](env), env.reset()
    log = JourneyLog(root["state"])
    for _ in range(slots):
        step = env.step(act(root))
        log.record(step["state"], step["action"], step["next", "state"])
        root = env.step_mdp(step)
    return log.report(), root["state"], env


@pytest.mark.parametrize("policy", sorted(BASELINES))
def test_waiting_times_add_up_to_the_backlog_of_each_class(policy):
    report, state, _ = followed(60, worlds=4, policy=policy, networks=("cross", "two-path", "diamond"))
    torch.testing.assert_close(report.sojourn + report.age, report.backlog_sum)
    torch.testing.assert_close(report.backlog_sum.sum(-1), state["backlog_sum"])
    assert torch.equal(report.entered, report.delivered + report.waiting)
    assert torch.equal(report.waiting, state["queues"].sum(1).double())
    assert torch.equal(report.delivered.sum(-1), state["delivered"])
    assert torch.equal(report.entered.sum(-1), state["arrived"])


def test_littles_law_for_every_class():
    report, _, env = followed(400, worlds=12)
    slots = report.slots * 12
    delivered = report.delivered.sum(0)
    backlog, throughput = report.backlog_sum.sum(0) / slots, delivered / slots
    offered = env.networks.arrival_rate[0].sum(0).double()
    torch.testing.assert_close(throughput, offered, rtol=0.06, atol=0)
    torch.testing.assert_close(backlog, throughput * report.sojourn.sum(0) / delivered, rtol=0.03, atol=0)
    assert (backlog > 0.3).all()


def test_a_packet_takes_at_least_the_hops_of_its_way():
    """On a line every step back is one more forth: what a packet takes beyond its way is even."""
    report, _, env = followed(80, worlds=2, networks=("line4",))
    network = env.networks
    sources = network.arrival_rate[0].argmax(0)
    ways = network.hops[0].gather(0, sources.unsqueeze(0)).squeeze(0).double()
    beyond = report.hops - report.delivered * ways
    assert (beyond >= 0).all()
    assert not (beyond % 2).any()
    assert (report.sojourn >= report.delivered * (ways - 1)).all()


def test_a_packet_out_of_nowhere_is_noticed():
    env = MultihopEnv(MultihopConfig(networks=("cross",)), num_envs=2, seed=0)
    act, root = BASELINES["spbp"](env), env.reset()
    log = JourneyLog(root["state"])
    for _ in range(6):
        step = env.step(act(root))
        log.record(step["state"], step["action"], step["next", "state"])
        root = env.step_mdp(step)
    step = env.step(act(root))
    lost = step["next", "state"].clone()
    lost["queues"] = (lost["queues"] - 1).clamp_min(0)
    with pytest.raises(ValueError, match="slot 6"):
        log.record(step["state"], step["action"], lost)


def test_packets_are_followed_from_empty_queues_only():
    env = MultihopEnv(MultihopConfig(networks=("cross",)), num_envs=1, seed=0)
    state = env.reset()["state"].clone()
    state["queues"] += 1
    with pytest.raises(ValueError, match="empty"):
        JourneyLog(state)
