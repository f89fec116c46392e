"""The jump chain: against closed forms, an independent event-driven simulator, and stored networks."""

import json
import random
from pathlib import Path

import pytest
import torch

from edgewise.config.errors import DataError
from edgewise.envs.contract import check_graph_env
from edgewise.systems.reentrant.baselines import BASELINES, POTENTIAL_BASELINES
from edgewise.systems.reentrant.config import PotentialsConfig, ReentrantConfig
from edgewise.systems.reentrant.dynamics import Chain, event, queue_to_serve
from edgewise.systems.reentrant.env import ReentrantEnv, ReentrantPotentialsEnv
from edgewise.systems.reentrant.network import generated, load_networks, parse_network, read_network
from edgewise.systems.reentrant.rules import RULES, Potential, potential_index
from edgewise.systems.reentrant.tables import Tables

STORED = Path(__file__).parents[4] / "shared" / "data" / "reentrant"
MIXED = ("reentrant2", "re-reentrant3", "reentrant4*3")


def written(folder, **changes):
    """A file of two queues at one server: jobs pass both."""
    content = {
        "server_of_queue": [0, 0],
        "service_rate": [1.0, 1.0],
        "arrival_rate": [0.3, 0.0],
        "next_queue": [1, None],
    }
    path = folder / "network.json"
    path.write_text(json.dumps({k: v for k, v in (content | changes).items() if v != "absent"}))
    return path


def potentials(names, **settings):
    return ReentrantPotentialsEnv(PotentialsConfig(networks=names, **settings), num_envs=64, seed=0)


def run(names, rule, *, worlds=128, events=4000, warm=1000, seed=0):
    """Mean jobs under a rule after some events, over worlds."""
    config = PotentialsConfig(
        networks=names, events_per_step=100, max_steps=(events + warm) // 100, hold=warm // 100
    )
    env = ReentrantPotentialsEnv(config, num_envs=worlds, seed=seed)
    policy, root = POTENTIAL_BASELINES[rule](env), env.reset()
    first = env.step(policy(root))["next"]
    before = first["state", "cost_sum"].clone(), first["state", "time"].clone()
    root = first.exclude("reward")
    while not root["done"].all():
        root = env.step(policy(root))["next"].exclude("reward")
    cost, time = (
        root["state", name] - start for name, start in zip(("cost_sum", "time"), before, strict=True)
    )
    return (cost.sum() / time.sum()).item()


@pytest.mark.parametrize("load", [0.5, 0.7])
def test_a_single_queue_is_an_mm1_queue(tmp_path, load):
    path = written(tmp_path, server_of_queue=[0], service_rate=[1.0], arrival_rate=[load], next_queue=[None])
    assert run((str(path),), "cmu") == pytest.approx(load / (1 - load), rel=0.06)


def test_a_tandem_is_two_mm1_queues(tmp_path):
    """Jackson: arrivals of rate 0.5, services of rates 1 and 0.8."""
    path = written(tmp_path, server_of_queue=[0, 1], service_rate=[1.0, 0.8], arrival_rate=[0.5, 0.0])
    expected = 0.5 / 0.5 + (0.5 / 0.8) / (1 - 0.5 / 0.8)
    assert run((str(path),), "maxweight") == pytest.approx(expected, rel=0.06)


def test_priorities_at_one_server_have_the_known_mean(tmp_path):
    """Preemptive priority of fast jobs, which is cμ: the formula for preemptive-resume service."""
    path = written(
        tmp_path,
        server_of_queue=[0, 0],
        service_rate=[2.0, 0.5],
        arrival_rate=[0.6, 0.2],
        next_queue=[None, None],
    )
    fast, slow = 0.6 / 2.0, 0.2 / 0.5
    first = fast / (1 - fast)
    residual = 0.6 * 2 / 2.0**2 / 2 + 0.2 * 2 / 0.5**2 / 2
    second = 0.2 * (1 / 0.5 / (1 - fast) + residual / ((1 - fast) * (1 - fast - slow)))
    assert run((str(path),), "cmu", worlds=256) == pytest.approx(first + second, rel=0.08)


def simulated(network, index, *, events, seed):
    """An independent simulator with drawn times, one world, plain Python; the time average of jobs."""
    draw, jobs, total, clock = random.Random(seed), [0] * network.num_queues, 0.0, 0.0
    for _ in range(events):
        rates, moves = [], []
        for queue, rate in enumerate(network.arrival_rate):
            if rate:
                rates.append(rate)
                moves.append((None, queue))
        for server in range(network.num_servers):
            own = [q for q in range(network.num_queues) if network.server[q] == server and jobs[q]]
            if own:
                best = max(own, key=lambda queue: index(network, jobs, queue))
                rates.append(network.service_rate[best])
                moves.append((best, network.next_queue[best]))
        time = draw.expovariate(sum(rates))
        total, clock = total + time * sum(jobs), clock + time
        source, target = draw.choices(moves, rates)[0]
        if source is not None:
            jobs[source] -= 1
        if target is not None:
            jobs[target] += 1
    return total / clock


def of_root_backpressure(network, jobs, queue):
    following = network.next_queue[queue]
    after = 0.0 if following is None else jobs[following] ** 0.5
    return network.service_rate[queue] * (jobs[queue] ** 0.5 - after)


def test_it_agrees_with_a_simulator_that_draws_times():
    network = generated("re-reentrant", 2)
    runs = [simulated(network, of_root_backpressure, events=6000, seed=seed) for seed in range(24)]
    expected = sum(runs) / len(runs)
    spread = (sum((one - expected) ** 2 for one in runs) / 23 / 24) ** 0.5
    found = run(("re-reentrant2",), "root-backpressure", worlds=256, events=5000, warm=1000)
    assert abs(found - expected) < 4 * spread + 1.0


def test_jobs_are_conserved_and_move_along_their_routes():
    tables = Tables(load_networks(MIXED))
    generator = torch.Generator().manual_seed(0)
    network = torch.arange(len(tables)).repeat_interleave(20)
    chain = tables.chain(network)
    jobs = torch.zeros(len(network), tables.num_queues)
    for _ in range(200):
        serving, works = queue_to_serve(torch.rand(jobs.shape, generator=generator), jobs, chain)
        padded = torch.nn.functional.pad(jobs, (0, 1))
        waiting = padded.gather(1, chain.queue_of.flatten(1)).view_as(chain.queue_of) > 0
        assert torch.equal(works, waiting.any(-1))
        after, time = event(jobs, serving, works, torch.rand(len(jobs), generator=generator), chain)
        change = after - jobs
        assert (after >= 0).all()
        assert (time > 0).all()
        for row, delta in enumerate(change):
            gained, lost = (delta > 0).nonzero().flatten().tolist(), (delta < 0).nonzero().flatten().tolist()
            if not lost:
                assert len(gained) == 1
                assert chain.arrival_rate[row, gained[0]] > 0
            else:
                assert lost[0] in serving[row][works[row]].tolist()
                target = int(chain.next_queue[row, lost[0]])
                assert gained == ([] if target == tables.num_queues else [target])
        jobs = after


def test_the_time_of_a_state_is_one_over_all_rates():
    chain = Chain(
        service_rate=torch.tensor([[2.0, 3.0]]),
        arrival_rate=torch.tensor([[0.5, 0.0]]),
        next_queue=torch.tensor([[1, 2]]),
        queue_of=torch.tensor([[[0], [1]]]),
    )
    serving, works = torch.tensor([[0, 1]]), torch.tensor([[True, False]])
    _, time = event(torch.tensor([[1.0, 0.0]]), serving, works, torch.tensor([0.0]), chain)
    assert time.item() == pytest.approx(1 / 2.5)


@pytest.mark.parametrize("name", sorted(RULES))
def test_potentials_give_the_order_of_every_rule(name):
    env = potentials(("reentrant5", "re-reentrant3", "re-reentrant4*6"))
    root, tables = env.reset(), env.tables
    network = root["state", "network"]
    exists = tables.of(tables.queue_mask, network)
    jobs = torch.randint(0, 20, exists.shape, generator=torch.Generator().manual_seed(0)).float() * exists
    action = env.actions.unpack(POTENTIAL_BASELINES[name](env)(root)["action"], env.graph)
    assert env.actions.is_legal(root["action"], root, env.graph).all()
    chain = tables.chain(network)
    by_rule = queue_to_serve(RULES[name](tables, jobs, network), jobs, chain)
    found = queue_to_serve(potential_index(tables, jobs, network, Potential.of(action)), jobs, chain)
    assert torch.equal(by_rule[1], found[1])
    assert torch.equal(by_rule[0][by_rule[1]], found[0][by_rule[1]])


def test_a_rule_costs_the_same_by_choices_and_by_potentials():
    """The same events, one by one and in the steps of a held decision."""
    names = ("reentrant3", "re-reentrant2")
    single = ReentrantEnv(ReentrantConfig(networks=names, max_steps=60), num_envs=32, seed=3)
    held = ReentrantPotentialsEnv(
        PotentialsConfig(networks=names, events_per_step=1, max_steps=60), num_envs=32, seed=3
    )
    policy, root = BASELINES["backpressure"](single), single.reset()
    for _ in range(60):
        root = single.step(policy(root))["next"].exclude("reward")
    start = held.reset()
    after = held.step(POTENTIAL_BASELINES["backpressure"](held)(start))["next"]
    assert (after["done"] & root["done"]).all()
    # A draw of `[B]` and one of `[B, 1]` take the same numbers from the generator.
    assert torch.equal(root["state", "jobs"], after["state", "jobs"])
    assert torch.allclose(root["metrics", "jobs"], after["metrics", "jobs"])


@pytest.mark.skipif(not STORED.exists(), reason="the stored networks of QGym are not on this machine")
def test_generated_networks_are_the_stored_ones():
    for path in sorted(STORED.glob("*.json")):
        kind, servers = json.loads(path.read_text())["name"].rsplit("_", 1)
        one, other = read_network(path), generated(kind, int(servers))
        assert (one.server, one.next_queue, one.cost) == (other.server, other.next_queue, other.cost)
        assert one.service_rate == pytest.approx(other.service_rate, rel=1e-6)
        assert one.arrival_rate == pytest.approx(other.arrival_rate, rel=1e-6)


def test_random_service_times_keep_the_load():
    found = load_networks(("reentrant4*5", "re-reentrant3*5"), seed=2)
    assert len({network.service_rate for network in found}) == 10
    assert all(max(network.loads()) == pytest.approx(0.9) for network in found)


@pytest.mark.parametrize(
    "settings", [{}, {"prior": "cmu"}, {"prior": "root-backpressure", "initial_jobs": 2.0}]
)
def test_the_contract_of_single_decisions(settings):
    check_graph_env(ReentrantEnv(ReentrantConfig(networks=MIXED, **settings), num_envs=4, seed=0))


@pytest.mark.parametrize("hold", ["episode", 2])
def test_the_contract_of_potentials(hold):
    check_graph_env(potentials(MIXED, events_per_step=3, max_steps=4, hold=hold))


def test_initial_jobs_are_geometric():
    env = potentials(("reentrant2",), initial_jobs=2.0)
    jobs = env.new_worlds(4000)["state", "jobs"]
    assert jobs.mean().item() == pytest.approx(2.0, rel=0.05)
    assert (jobs == 0).float().mean().item() == pytest.approx(1 / 3, abs=0.02)


BAD = {
    "service_rate: 3 entries": {"service_rate": [1.0, 1.0, 1.0]},
    r"service_rate\[1\]: expected a finite number above zero": {"service_rate": [1.0, 0]},
    r"arrival_rate\[0\]: expected a finite number from zero": {"arrival_rate": [-1, 0.0]},
    r"next_queue\[0\]: expected a queue from 0 to 1": {"next_queue": [2, None]},
    "a job from queue 0 comes back to queue 0": {"next_queue": [1, 0]},
    r"server_of_queue\[1\]: expected a server": {"server_of_queue": [0, -1]},
    "server 0 has no queue": {"server_of_queue": [1, 1]},
    "no job ever arrives": {"arrival_rate": [0, 0]},
    "server 0 would have to work 1.2 of the time": {"arrival_rate": [0.6, 0]},
    "colour: unknown field": {"colour": "red"},
    "next_queue: missing": {"next_queue": "absent"},
    "service_rate: expected a filled list": {"service_rate": 3},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_files_are_refused_by_field(tmp_path, message):
    path = written(tmp_path, **BAD[message])
    with pytest.raises(DataError, match=message) as error:
        read_network(path)
    assert str(path) in str(error.value)


def test_a_file_that_is_no_object_is_refused():
    with pytest.raises(DataError, match="expected an object"):
        parse_network([1], name="mine.json")
