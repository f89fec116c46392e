"""Replay buffers that store an instance once: the networks see what they would see step by step."""

import pytest
import torch
from benchmarks.matrix import outcome
from torchrl.envs import ExplorationType, set_exploration_type

import edgewise as ew
from edgewise.algorithms.clone import EXPERT_ACTION
from edgewise.data.instance_transitions import MADE, STEPS_PER_ROW
from edgewise.data.random_policy import RandomPolicy
from edgewise.envs.policy import encode_once
from edgewise.evaluation.evaluate import evaluate
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.models.graph_features import GraphFeatures

SMALL = {
    "num_envs": 6,
    "rollout_length": 1,
    "minibatch_size": 24,
    "model.encoder.hidden": 8,
    "model.encoder.layers": 1,
    "model.encoder.heads": 2,
}
OFF_POLICY = {"learning_starts": 0, "updates_per_transition": 0.1, "replay_size": 400}
CITIES = {"num_cities": (4, 11)}
PROBLEMS = {
    "tsp": CITIES,
    "vertex_cover": {"num_nodes": (6, 9)},
    "job_shop": {"num_jobs": 3, "num_machines": 3},
}


def builder(algorithm="dqn", env="tsp", **settings):
    given = {name.replace("__", "."): value for name, value in settings.items()}
    besides = OFF_POLICY if algorithm != "clone" else {}
    keywords = {**SMALL, **besides, **PROBLEMS[env], **given}
    return Builder(load_config(env, algorithm=algorithm, keywords=keywords))


def sampled(built, rounds=2):
    """An algorithm whose buffer has some rows, and a minibatch of these."""
    algorithm = built.algorithm
    for _ in range(rounds):
        algorithm.learn(built.collector.collect())
    rows = algorithm._transitions.expand(algorithm.replay_buffer.sample())
    return algorithm, algorithm._prepare(rows)


class Counting(torch.nn.Module):
    """Counts the graphs that an encoder gets."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.graphs = encoder, 0
        self.graph, self.any_size, self.hidden = encoder.graph, encoder.any_size, encoder.hidden

    def forward(self, graph):
        self.graphs += graph.numel()
        return self.encoder(graph)


@pytest.mark.parametrize("env", PROBLEMS)
@pytest.mark.parametrize("algorithm", ["dqn", "iqn", "rainbow", "sac"])
def test_scores_of_rows_are_those_of_single_steps(algorithm, env):
    learner, samples = sampled(builder(algorithm, env))
    observation = samples["observation"]
    single = observation.reshape(-1)
    assert single["graph", "x"].stride(0) != 0
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        found, expected = learner.scores(observation), learner.scores(single)
    torch.testing.assert_close(found.flatten(0, 1), expected, rtol=1e-4, atol=1e-5)


def test_an_update_encodes_each_row_once():
    learner, samples = sampled(builder())
    features = learner.networks["network"].features
    features.encoder = Counting(features.encoder)
    learner.networks["network"](samples["observation"])
    assert features.encoder.graphs == len(samples) == 24 // STEPS_PER_ROW


@pytest.mark.parametrize("algorithm", ["dqn", "iqn", "rainbow", "sac"])
def test_steps_that_were_not_made_teach_nothing(algorithm):
    learner, samples = sampled(builder(algorithm))
    made = samples[MADE]
    assert not bool(made.all()), "some episodes do not fill their last row"
    changed = samples.clone()
    changed["reward"] = torch.where(made, samples["reward"], 1e3)
    losses = []
    for each in (samples, changed):
        torch.manual_seed(0)
        copy = builder(algorithm).algorithm
        copy.load_state_dict(learner.state_dict())
        losses.append(copy.update(copy._prepare(each.clone()))[0]["loss"])
    assert torch.equal(*losses)


@pytest.mark.parametrize("env", PROBLEMS)
def test_the_policy_on_instances_acts_as_it_does_step_by_step(env):
    built = builder(env=env)
    policy, world = built.algorithm.policy, built.env
    roots = world.new_worlds(5)
    reader = next(each for each in policy.networks.modules() if isinstance(each, GraphFeatures))
    reader.encoder = Counting(reader.encoder)
    prepared, bare = encode_once(policy, roots)
    assert "graph" not in bare
    each = torch.arange(5).repeat_interleave(3)
    roots, bare = roots[each], bare[each]
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        for _ in range(3):
            acted = prepared(bare.copy())
            assert torch.equal(acted["action"], policy(roots.copy())["action"])
            bare = world.simulate(acted).select(*bare.keys())
            roots = bare.copy().set("graph", roots["graph"])
    assert reader.encoder.graphs == 5 + 3 * 15, (
        "once for the instances, and in every step of the plain policy"
    )


@pytest.mark.parametrize(
    ("algorithm", "settings"), [("dqn", {"n_step": 3}), ("rainbow", {}), ("clone", {"expert": "nearest"})]
)
def test_learning_resumes_bit_for_bit(algorithm, settings):
    first, second = (builder(algorithm, **settings) for _ in range(2))
    for _ in range(2):
        first.algorithm.learn(first.collector.collect())
    second.algorithm.load_state_dict(first.algorithm.state_dict())
    second.collector.load_state_dict(first.collector.state_dict())
    for _ in range(2):
        found = []
        for each in (first, second):
            torch.manual_seed(5)
            found.append(each.algorithm.learn(each.collector.collect()))
        assert {name: float(value) for name, value in found[0].items()} == {
            name: float(value) for name, value in found[1].items()
        }


def test_cloning_instances_has_the_loss_of_single_steps():
    built = builder("clone", expert="nearest", expert_share=0.5)
    clone = built.algorithm
    samples = clone.label(built.collector.collect())
    clone.match(samples)
    steps, counted = samples["steps"], samples["steps", "counted"]
    graph = samples["graph"].unsqueeze(1).expand(*steps.batch_size)
    flat = steps.copy().set("graph", graph)[counted]
    expected = -clone.policy.get_dist(flat).log_prob(flat[EXPERT_ACTION]).mean()
    torch.testing.assert_close(clone._loss(samples), expected, rtol=1e-4, atol=1e-5)


def test_the_buffer_of_clone_keeps_the_newest_episodes():
    built = builder("clone", expert="nearest", buffer_size=100)
    sizes = [int(built.algorithm.learn(built.collector.collect())["buffered"]) for _ in range(5)]
    assert sizes[0] < 100
    assert all(80 < size <= 110 for size in sizes[2:])


@pytest.mark.parametrize("algorithm", ["dqn", "sac", "clone"])
def test_it_builds_updates_acts_legally_and_resumes(algorithm):
    assert outcome("tsp", algorithm, {}, drawn=2_000) == "works"


def test_a_learner_beats_random_tours():
    """A few hundred updates are enough to prefer near cities."""
    built = builder(
        num_cities=8,
        num_envs=32,
        updates_per_transition=1 / 8,
        learning_rate=2e-3,
        gamma=1.0,
        replay_size=20_000,
        minibatch_size=128,
        model__encoder__hidden=32,
    )
    for _ in range(14):
        metrics = built.algorithm.learn(built.collector.collect())
    assert metrics["updates"] > 0
    env = ew.make_env("tsp", num_envs=256, seed=9, num_cities=8)
    by_chance = RandomPolicy(env.actions, env.graph, seed=0)
    learnt, random = (
        evaluate(env, policy, episodes=256, seed=4).metrics["tour"].mean()
        for policy in (built.algorithm.policy, by_chance)
    )
    assert learnt < 0.87 * random
