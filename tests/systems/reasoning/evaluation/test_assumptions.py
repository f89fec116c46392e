"""Assumed atoms: a run with them trains and ranks, and they cost what embeddings say of them."""

import math

import pytest
import torch

from edgewise.config.errors import ConfigError
from edgewise.experiments.build import Builder
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.systems.reasoning.embeddings.config import EmbeddingConfig, KGEConfig
from edgewise.systems.reasoning.embeddings.store import load_kge, save_kge
from edgewise.systems.reasoning.embeddings.training import train_kge
from edgewise.systems.reasoning.evaluation.proof_scores import beam_search_proofs, plausibility, policy_steps
from edgewise.systems.reasoning.evaluation.rank import RankOptions, candidates_of, rank_run
from edgewise.systems.reasoning.knowledge.dataset import load_dataset

DATA, WIDTH = "countries_s2", 16
SMALL = {
    "env": {"data": DATA, "max_steps": 4, "assume": True},
    "model": {"hidden": WIDTH, "rounds": 1},
    "training": {"total_frames": 64, "num_envs": 8, "rollout_length": 4},
    "algorithm": {"epochs": 1, "minibatch_size": 16},
    "evaluation": {"every": None, "episodes": 8, "baselines": ()},
    "logging": {"tensorboard": False},
}


@pytest.fixture(scope="module")
def embeddings(tmp_path_factory):
    """A folder of embeddings of as many numbers as the policy's own, trained for a moment."""
    data, folder = load_dataset(DATA), tmp_path_factory.mktemp("kge")
    config = KGEConfig(embedding=EmbeddingConfig(dim=WIDTH // 2), epochs=5)
    save_kge(folder, train_kge(data, config).model, vocabulary=data.vocabulary)
    return str(folder)


def _config():
    return load_config("reasoning-countries", keywords=SMALL)


def _log_sigmoid(atoms, env, folder):
    """Of ground atoms `[N, 3]`, by the logistic function's definition; assumed ones are what they assume."""
    words, atoms = env.dataset.vocabulary, atoms.long().clone()
    atoms[:, 0] -= words.assumed_offset * (atoms[:, 0] > words.assumed_offset)
    with torch.no_grad():
        return -(-load_kge(folder).score(atoms).double()).exp().log1p()


def test_a_run_with_them_trains_and_ranks(embeddings, tmp_path):
    run = start(_config(), folder=tmp_path / "run")
    found = rank_run(run, "hybrid", RankOptions(negatives=None, queries=6, beam=8, kge=embeddings))
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
    assert found.gain.samples == found.lists == 6


def test_what_is_assumed_costs_its_implausibility(embeddings):
    parts = Builder(_config()).parts()
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
    run = start(_config(), folder=tmp_path / "run")
    with pytest.raises(ConfigError, match="assumptions needs embeddings"):
        rank_run(run, "rl", RankOptions())
