"""What a router observes: pairs without a path do not exist, and numbers are where they belong."""

import torch

from edgewise.envs.registry import make_env
from edgewise.systems.multihop import observe, render
from edgewise.systems.multihop.networks.batch import networks_of
from edgewise.systems.multihop.networks.instance import Instance, Link, TrafficClass

ONE_WAY = Instance("one-way", 3, (Link(0, 1, 2.0), Link(1, 2, 1.0)), (TrafficClass(1, {0: 0.5}),))
LOOP = Instance(
    "loop", 2, (Link(0, 1, 1.0), Link(1, 0, 1.0)), (TrafficClass(1, {0: 0.25}), TrafficClass(0, {1: 0.75}))
)
NETWORKS = networks_of([ONE_WAY, LOOP])


def test_only_pairs_with_a_path_exist():
    found = observe.present(NETWORKS).unflatten(1, (3, 2))
    assert found[0].tolist() == [[True, False], [True, False], [False, False]]  # node 2 leads nowhere
    assert found[1].tolist() == [[True, True], [True, True], [False, False]]


def test_constant_features_are_rate_destination_and_hops():
    found = observe.constant_features(NETWORKS).unflatten(1, (3, 2))
    exists = observe.present(NETWORKS).unflatten(1, (3, 2))
    assert found.shape == (2, 3, 2, 3)
    rate, home, hops = found.unbind(-1)
    torch.testing.assert_close(rate[exists], NETWORKS.arrival_rate[exists].log1p())
    for network, instance in enumerate((ONE_WAY, LOOP)):
        for node in range(instance.num_nodes):
            for kind, traffic in enumerate(instance.classes):
                if not exists[network, node, kind]:
                    continue
                assert float(home[network, node, kind]) == float(node == traffic.destination)
                expected = 0.0 if node == traffic.destination else 1.0
                assert float(hops[network, node, kind] > 0) == expected
    assert found.isfinite().all()


def test_parts_without_a_link_are_drawn_a_little_apart():
    start, end = torch.tensor([0, 1, 3]), torch.tensor([1, 2, 4])
    place = render.layout(start, end, 5)
    near = torch.cdist(place, place)
    assert place.isfinite().all()
    assert float(near[0, 1]) < float(near[0, 3])
    assert float(near[0, 3]) < 2.2 * float(near[0, 2])  # one more than the longest path, not as far as can be


def test_the_throughput_of_a_world_without_arrivals_is_zero():
    env = make_env("multihop", num_envs=1, seed=0)
    state = env.reset()["state"]
    state["arrived"] = torch.zeros_like(state["arrived"])
    states = torch.stack([state[0], state[0]])
    facts = render.replay(states)["facts"]
    assert facts["throughput"] == 0.0
    assert facts["slots"] == 1
