"""Workers give the batches of their shares, bit for bit, however late and in which order they answer."""

import pytest
import torch
from tests.scale.workers.runs import (
    config_of,
    equal,
    parts_of,
    same,
    same_batches,
    shuffled,
    trained,
)

from edgewise.algorithms.state import load_module_state
from edgewise.config.errors import CheckpointError, ConfigError
from edgewise.config.seeds import derive_seed
from edgewise.experiments.build import Builder
from edgewise.runs.checkpoint import random_state
from edgewise.scale.workers.message import copied, pack, unpack
from edgewise.training.run_evaluator import mean_measures

EPISODES = {
    "tsp ppo": {"env.num_cities": (4, 6)},
    "tsp reinforce": {"env.num_cities": (4, 6), "algorithm.starts": 2},
    "tsp dqn": {"env.num_cities": (4, 6), "algorithm.learning_starts": 0, "algorithm.minibatch_size": 8},
}
"""Environments that describe an instance once, collected in whole episodes."""
QUICK = {
    ("graphwalk-ppo", 0),
    ("graphwalk-ppo", 3),
    ("marine-dqn", 1),
    ("hex-expert", 0),
    ("tsp ppo", 0),
    ("tsp reinforce", 0),
    ("tsp dqn", 3),
}
SOURCES = (
    "graphwalk-ppo",
    "marine-dqn",
    "marine-ac-iqn",
    "marine-rainbow",
    "queueing-line3-clone",
    "hex-expert",
    "queueing-line3-ppo",
)
CASES = [
    pytest.param(source, staleness, marks=() if (source, staleness) in QUICK else pytest.mark.thorough)
    for source in (*SOURCES, *EPISODES)
    for staleness in (0, 1, 3)
    if not staleness or source not in ("tsp ppo", "tsp reinforce")
]
RESTORED = [
    pytest.param(staleness, after, marks=() if after == 2 and staleness != 1 else pytest.mark.thorough)
    for staleness in (0, 1, 3)
    for after in (0, 1, 2, 4)
]


def config_for(source, **settings):
    from edgewise.experiments.load import load_config

    if source == "graphwalk-ppo" or source.startswith("marine"):
        return config_of(source, **settings)
    narrow = {"model.encoder.hidden": 8, "model.encoder.layers": 1}
    search = {"env.size": 2, "algorithm.simulations": 2, "algorithm.considered": 2}
    besides = {"hex-expert": search | narrow, **{name: each | narrow for name, each in EPISODES.items()}}
    kept = {"training.num_envs": 4, "training.rollout_length": 4, "evaluation.episodes": 2, "workers": 2}
    named = {name.replace("__", "."): value for name, value in settings.items()}
    env, _, algorithm = source.partition(" ")
    keywords = {**kept, **besides.get(source, {}), **named}
    return load_config(env, algorithm=algorithm or None, keywords=keywords)


def test_a_share_is_a_rollout_with_random_numbers_of_its_own():
    config = config_of()
    batches, _ = trained(parts_of(config), 2)
    alone = Builder(config, num_envs=3)
    parts = parts_of(config)
    for share in range(2):
        alone.env.set_seed(derive_seed(config.seed, f"env of share {share}"))
        alone.collector.load_state_dict({"env": alone.env.state_dict(), "carried": {}})
        random_state.seed(derive_seed(config.seed, f"share {share}"))
        load_module_state(alone.algorithm.policy, dict(parts.algorithm.policy.state_dict()), name="policy")
        batch = alone.collector.collect()
        rows = batches[0][3 * share : 3 * share + 3]
        assert equal(rows.to_dict(), batch.to_dict())
    assert not same(batches[0][:3]["action"], batches[0][3:]["action"])


@pytest.mark.parametrize(("source", "staleness"), CASES)
def test_order_and_repeats_change_nothing(source, staleness):
    config = config_for(source, ray__max_staleness=staleness)
    batches, _ = trained(alone := parts_of(config), 5)
    for seed in range(2):
        workers = shuffled(config, seed)
        others, _ = trained(parts := parts_of(config, workers), 5)
        assert same_batches(batches, others)
        assert equal(alone.algorithm.state_dict(), parts.algorithm.state_dict())
        assert workers.repeats


@pytest.mark.parametrize("staleness", [0, 2])
def test_a_batch_is_collected_with_the_weights_it_should_be(staleness):
    config = config_of(ray__max_staleness=staleness)
    workers = shuffled(config, 0)
    parts = parts_of(config, workers)
    versions = []
    for _ in range(5):
        versions.append(copied(pack(parts.algorithm.policy.state_dict())))
        batch = parts.rollout.collect()
        ages = batch.get("staleness", None)
        assert (ages is None) == (staleness == 0)
        if ages is not None:
            assert bool((ages == min(len(versions) - 1, staleness)).all())
            assert parts.rollout.metrics() == {"staleness": min(len(versions) - 1, staleness)}
        parts.algorithm.learn(batch)
    seen = {0: 0, 1: 0}
    for _, order, call in workers.orders:
        number = seen[call["share"]]
        seen[call["share"]] += 1
        version = max(0, number - staleness)
        assert equal(unpack(order)["weights"], dict(unpack(versions[version])))
    assert min(seen.values()) >= 5


@pytest.mark.parametrize(("staleness", "after"), RESTORED)
def test_a_restored_collector_goes_on_bit_for_bit(staleness, after):
    config = config_of(ray__max_staleness=staleness)
    parts = parts_of(config, shuffled(config, 0))
    trained(parts, after)
    kept = [copied(pack(each.state_dict())) for each in (parts.algorithm, parts.rollout)]
    random = random_state.capture()
    batches, _ = trained(parts, 4)
    other = parts_of(config, shuffled(config, 1))
    trained(other, 1)
    other.algorithm.load_state_dict(unpack(kept[0]))
    other.rollout.load_state_dict(unpack(kept[1]))
    random_state.restore(random)
    others, _ = trained(other, 4)
    assert same_batches(batches, others)
    assert equal(parts.algorithm.state_dict(), other.algorithm.state_dict())


def test_another_number_of_workers_is_refused():
    state = parts_of(config_of()).rollout.state_dict()
    with pytest.raises(CheckpointError, match="shared by 2 workers, got 3"):
        parts_of(config_of(workers=3)).rollout.load_state_dict(state)


def test_collecting_leaves_the_generators_of_this_process_alone():
    parts = parts_of(config_of())
    before = random_state.capture()
    parts.rollout.collect()
    assert equal(before, random_state.capture())


def test_workers_follow_schedules_and_the_curriculum():
    config = config_of(
        "marine-dqn",
        training__curriculum=[
            {"name": "one", "env": {"num_robots": 1}, "until": {"frames": 1}},
            {"name": "rest", "env": {}},
        ],
    )
    workers = shuffled(config, 0)
    parts = parts_of(config, workers)
    parts.env.apply_stage(num_robots=1)
    parts.algorithm.set_scalar("epsilon", 0.75)
    batch = parts.rollout.collect()
    assert bool((batch["agents", "active"].sum(-1) == 1).all())
    order = unpack(workers.orders[-1][1])
    assert order["scalars"]["epsilon"] == 0.75
    assert workers._worker._builder.algorithm.config.epsilon == 0.75


def test_an_evaluation_is_that_of_this_process():
    config = config_of()
    parts = parts_of(config)
    trained(parts, 2)
    here = Builder(config).evaluator(parts.algorithm.policy, record=1)
    there = parts.evaluate(parts.algorithm.policy, record=1)
    assert there.to_json() == here.to_json()
    assert mean_measures(there) == mean_measures(here)
    assert len(here.recordings) == len(there.recordings) == 1
    assert equal(here.recordings[0].to_dict(), there.recordings[0].to_dict())
    assert there.recordings[0].batch_size == here.recordings[0].batch_size


def test_an_evaluation_draws_as_it_would_in_this_process():
    config = config_of()
    workers = shuffled(config, 0)
    parts, builder, drawn = parts_of(config, workers), workers._worker._builder, []
    evaluate = builder.evaluator

    def drawing(policy, *, record=0):
        drawn.append(float(torch.rand(())))
        return evaluate(policy, record=record)

    builder.__dict__["evaluator"] = drawing
    random_state.seed(5)
    parts.evaluate(parts.algorithm.policy)
    random_state.seed(5)
    assert set(drawn) == {float(torch.rand(()))}


def test_a_baseline_is_evaluated_in_this_process():
    config = config_of(evaluation__baselines=["random"])
    workers = shuffled(config, 0)
    parts = parts_of(config, workers)
    parts.evaluate(parts.baselines["random"])
    assert workers.orders == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 4}, "training.num_envs: got 6, which 4 workers cannot share equally"),
        ({"processes": 2, "workers": 2}, "ray.address: 2 processes need workers of one cluster"),
        ({"processes": 2, "workers": 3}, "workers: got 3, which 2 processes cannot share equally"),
    ],
)
def test_unequal_shares_are_refused(settings, message):
    from edgewise.scale.division import refuse_unequal_shares

    with pytest.raises(ConfigError, match=message):
        refuse_unequal_shares(config_of(**settings))


@pytest.mark.parametrize("address", ["ray://host:1", "host", "http://host:1", ""])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ConfigError, match="expected host:port, or auto"):
        config_of(ray__address=address)


def test_shares_of_workers_are_shown():
    from edgewise.scale.division import shares

    assert shares(config_of()) == {"workers": 2, "each_worker": {"num_envs": 3, "frames_per_batch": 12}}


def test_algorithms_that_cannot_are_refused():
    from edgewise.experiments.load import load_config

    keywords = {"workers": 2, "baseline": "greedy"}
    config = load_config("graphwalk", algorithm="reinforce", keywords=keywords)
    with pytest.raises(ConfigError, match="reinforce collects graphwalk in a way of its own"):
        parts_of(config)
    config = load_config("tsp", algorithm="reinforce", keywords={"workers": 2, "num_envs": 8, "starts": 5})
    with pytest.raises(ConfigError, match="each of 2 workers has 4 worlds"):
        parts_of(config)
    config = load_config("tsp", algorithm="ppo", keywords={"workers": 2, "ray.max_staleness": 1})
    with pytest.raises(ConfigError, match="cannot learn from steps that older weights made"):
        parts_of(config)
    config = load_config("hex-selfplay", keywords={"workers": 2})
    from edgewise.scale.division import refuse_unequal_shares

    with pytest.raises(ConfigError, match="played where the run learns"):
        refuse_unequal_shares(config)


def test_staleness_is_refused_where_nothing_corrects_for_it():
    settings = {"algorithm__average_reward": True, "algorithm__gamma": 1.0}
    with pytest.raises(ConfigError, match="cannot learn from steps that older weights made"):
        parts_of(config_of(ray__max_staleness=1, **settings))


def test_messages_hold_every_kind_of_state():
    state = {
        "numbers": [1, 2.5, None, True, float("inf"), "text"],
        "nested": {"a": torch.arange(6).reshape(2, 3).t(), 3: (torch.tensor(1.5), torch.zeros(0, 2))},
        "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "flags": torch.tensor([True, False]),
    }
    found = unpack(copied(pack(state)))
    assert equal(found, state)
    assert found["half"].dtype == torch.bfloat16
