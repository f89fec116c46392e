"""Embeddings in a prover: each coupling does what it says and nothing else, in training and in ranking."""

import math

import pytest
import torch
from torch.nn import functional

from edgewise.config.errors import ConfigError
from edgewise.experiments.build import Builder
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig, KGEConfig
from edgewise.systems.reasoning.embeddings.store import load_kge, save_kge
from edgewise.systems.reasoning.embeddings.training import train_kge
from edgewise.systems.reasoning.evaluation.proof_scores import beam_search_proofs, policy_steps
from edgewise.systems.reasoning.evaluation.rank import RankOptions, candidates_of, rank_run
from edgewise.systems.reasoning.knowledge.dataset import load_dataset
from edgewise.systems.reasoning.models.build import plausibility
from edgewise.systems.reasoning.models.decision import make_expand

DATA, WIDTH = "countries_s2", 16
SMALL = {
    "env": {"data": DATA, "max_steps": 4},
    "model": {"hidden": WIDTH, "rounds": 1},
    "training": {"total_frames": 64, "num_envs": 8, "rollout_length": 4},
    "algorithm": {"epochs": 1, "minibatch_size": 16},
    "evaluation": {"every": None, "episodes": 8, "baselines": ()},
    "logging": {"tensorboard": False},
}
COUPLINGS = {
    "initialise": {"model": {"initialise": True, "entities": True}},
    "fusion": {"model": {"fusion": 2.0}},
    "keep_best": {"model": {"keep_best": 1}},
    "shaping": {"model": {"shaping": 0.5}},
    "assume": {"env": {"assume": True}},
}


@pytest.fixture(scope="module")
def embeddings(tmp_path_factory):
    """A folder of embeddings of as many numbers as the policy's own, trained for a moment."""
    data, folder = load_dataset(DATA), tmp_path_factory.mktemp("kge")
    config = KGEConfig(embedding=EmbeddingConfig(dim=WIDTH // 2), epochs=5)
    save_kge(folder, train_kge(data, config).model, vocabulary=data.vocabulary)
    return str(folder)


def _config(folder, *names):
    fields = {part: dict(values) for part, values in SMALL.items()}
    if folder is not None:
        fields["model"]["kge"] = folder
    for name in names:
        for part, values in COUPLINGS[name].items():
            fields[part] |= values
    return load_config("reasoning-countries", keywords=fields)


def _ground(atoms, env):
    return ((atoms[:, 1:] > 0) & (atoms[:, 1:] <= env.dataset.vocabulary.num_entities)).all(-1)


def _log_sigmoid(atoms, env, folder):
    """Of ground atoms `[N, 3]`, by the logistic function's definition; assumed ones are what they assume."""
    words, atoms = env.dataset.vocabulary, atoms.long().clone()
    atoms[:, 0] -= words.assumed_offset * (atoms[:, 0] > words.assumed_offset)
    with torch.no_grad():
        return -(-load_kge(folder).score(atoms).double()).exp().log1p()


def _asked(parts):
    """What the policy is asked in a few random steps."""
    batch = parts.env.rollout(6, break_when_any_done=False)
    return make_expand(parts.env, matches=True)(batch.reshape(-1))


@pytest.mark.parametrize("name", COUPLINGS)
def test_a_run_with_it_trains_and_ranks(name, embeddings, tmp_path):
    run = start(_config(embeddings, name), folder=tmp_path / "run")
    found = rank_run(run, "hybrid", RankOptions(negatives=None, queries=6, beam=8))
    assert [one.name for one in found.ranked] == [
        "hybrid",
        "rl",
        "greedy",
        "rules",
        "kge",
        "chance",
        "oracle",
    ]
    assert found.lists == found.fusion.fitted_on == 6
    assert all(0 < one.figures["mrr"] <= 1 for one in found.ranked)
    assert found.gain.low <= found.gain.estimate <= found.gain.high


def test_fusion_changes_logits_by_the_gain_times_log_sigmoid(embeddings):
    plain, fused = (
        Builder(_config(embeddings, *names)).parts() for names in (["assume"], ["assume", "fusion"])
    )
    asked = _asked(plain)
    first = asked.successors[:, 0]
    ground = _ground(first, plain.env)
    assert (first[ground, 0] > plain.env.ends.assumed_offset).any()
    assert 0 < ground.sum() < len(ground)
    expected = torch.zeros(len(first), dtype=torch.float64)
    expected[ground] = 2.0 * _log_sigmoid(first[ground], plain.env, embeddings)
    with torch.no_grad():
        gained = fused.algorithm.policy.score(asked) - plain.algorithm.policy.score(asked)
    torch.testing.assert_close(gained.double(), expected, atol=1e-5, rtol=1e-4)


def test_keep_best_drops_the_least_plausible_and_never_an_end(embeddings):
    parts = Builder(_config(embeddings, "keep_best")).parts()
    asked = _asked(parts)
    first = asked.successors[:, 0]
    ground = _ground(first, parts.env)
    dropped = parts.algorithm.policy.score(asked).detach() < -1e8
    assert dropped.any()
    assert not dropped[~ground].any()
    assert (first[~ground, 0] == parts.env.ends.end_false).any()
    for owner in asked.owner[ground].unique().tolist():
        of_this = ground & (asked.owner == owner)
        believed = _log_sigmoid(first[of_this], parts.env, embeddings)
        assert (~dropped[of_this]).sum() == 1
        assert believed[~dropped[of_this]] >= believed.max() - 1e-6


def test_entities_begin_as_far_apart_as_in_the_embeddings(embeddings):
    model = Builder(_config(embeddings, "initialise")).parts().algorithm.actor_critic
    vectors = load_kge(embeddings).entity_vectors().detach()
    expected = functional.normalize((vectors @ vectors.T).flatten(), dim=0)
    for part in (model.actor.score.encoder, model.critic.encoder):
        own = part.entity.weight.detach()[1:]
        assert own.shape == vectors.shape
        torch.testing.assert_close(functional.normalize((own @ own.T).flatten(), dim=0), expected)


def test_entities_without_vectors_cannot_begin_with_any(embeddings):
    fields = {"model": {"kge": embeddings, "initialise": True}}
    with pytest.raises(ConfigError, match="entities=true"):
        load_config("reasoning-countries", keywords=fields)


def test_shaped_rewards_are_plain_ones_and_what_the_next_goal_promises(embeddings):
    parts = Builder(_config(embeddings, "shaping")).parts()
    batch = parts.rollout.collect().reshape(-1)
    over = batch["next", "terminated"].squeeze(-1)

    def promised(atoms):
        first = atoms[:, 0]
        ground = _ground(first, parts.env)
        value = torch.zeros(len(first), dtype=torch.float64)
        value[ground] = 0.5 * _log_sigmoid(first[ground], parts.env, embeddings)
        return value

    after = promised(batch["next", "goal", "atoms"]).masked_fill(over, 0.0)
    gained = 0.99 * after - promised(batch["goal", "atoms"])
    plain = batch["next", "reward"].squeeze(-1).double() - gained
    torch.testing.assert_close(plain.abs(), over.double(), atol=1e-5, rtol=0)
    assert gained.abs().max() > 0.01


def test_what_is_assumed_costs_its_implausibility(embeddings):
    parts = Builder(_config(embeddings, "assume")).parts()
    env, actor = parts.env, parts.algorithm.policy
    lists = candidates_of(env, RankOptions(negatives=None, queries=4), split="test")
    believed = plausibility(load_kge(embeddings))
    tables = [
        beam_search_proofs(env, policy_steps(env, actor, plausibility=known), lists, beam=8, depth=1)
        for known in (believed, None)
    ]
    atoms = lists.atoms[lists.exists]
    states = torch.zeros(len(atoms), env.config.max_atoms, 3, dtype=torch.int32)
    states[:, 0] = atoms
    found = env.successors.of(states, atoms)
    assert not found.proved.any()
    chosen = actor.decide_in(env, states, atoms, found).logits.detach().double()
    assuming = chosen[found.successors[:, 0, 0] > env.ends.assumed_offset]
    assert len(assuming) == len(atoms)
    torch.testing.assert_close(tables[1].log_probability[lists.exists], assuming)
    costs = _log_sigmoid(atoms, env, embeddings)
    torch.testing.assert_close(
        tables[0].log_probability[lists.exists], assuming + costs, atol=1e-5, rtol=1e-4
    )
    assert costs.std() > 1e-3
    assert math.isfinite(costs.sum())


def test_assumptions_cannot_be_ranked_without_embeddings(tmp_path):
    run = start(_config(None, "assume"), folder=tmp_path / "run")
    with pytest.raises(ConfigError, match="assumptions needs embeddings"):
        rank_run(run, "rl", RankOptions())
