"""Runs of proofs: what the policy is handed, what withheld facts change, and how candidates are ranked."""

import pytest
import torch

from edgewise.config.errors import ConfigError
from edgewise.evaluation.request import EvaluationRequest
from edgewise.evaluation.result import Evaluation
from edgewise.experiments.build import Builder
from edgewise.experiments.evaluate import evaluate_run
from edgewise.experiments.launch import start
from edgewise.experiments.load import load_config
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.engine.support import proving_share, usable_matches
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.proof_scores import beam_search_proofs, oracle_proofs, policy_steps
from edgewise.systems.reasoning.evaluation.rank import RankOptions, candidates_of, rank_run
from edgewise.systems.reasoning.models.build import make_prover
from edgewise.systems.reasoning.models.config import ProofConfig

SMALL = {
    "env": {"data": "countries_s2", "max_steps": 4},
    "model": {"hidden": 8, "rounds": 1},
    "training": {"total_frames": 64, "num_envs": 8, "rollout_length": 4},
    "algorithm": {"epochs": 1, "minibatch_size": 16},
    "evaluation": {"every": None, "episodes": 8},
    "logging": {"tensorboard": False},
}


@pytest.fixture(scope="module")
def env():
    return ReasoningEnv(ReasoningConfig(data="countries_s2", view="state"), num_envs=16, seed=0)


def _config(**changes):
    merged = {**SMALL, **{name: {**SMALL.get(name, {}), **value} for name, value in changes.items()}}
    return load_config("reasoning-countries", keywords=merged)


def test_recomputed_successors_are_those_that_were_chosen_from(env):
    parts = Builder(_config()).parts()
    batch = parts.rollout.collect()
    distribution = parts.algorithm.policy.get_dist(batch.reshape(-1))
    assert torch.equal(distribution.counts, batch["n_actions"].flatten())
    log_ratio = distribution.log_prob(batch["action"].flatten()) - batch["action_log_prob"].flatten()
    assert log_ratio.abs().max() < 1e-5
    metrics = parts.algorithm.learn(batch)
    assert metrics["ratio_start"] == 1.0


def test_the_evaluation_of_a_run_is_that_of_its_checkpoint(tmp_path):
    """With facts withheld in training alone; a large gain makes the choices depend on what is counted."""
    model, evaluation = {"policy_gain": 5.0}, {"every": 64, "episodes": 48}
    settings = {"env": {"withheld": 0.5}, "model": model, "evaluation": evaluation}
    run = start(_config(**settings), folder=tmp_path / "run")
    recorded = Evaluation.load(run / "evaluations" / "000000000064.json")
    measured = evaluate_run(run, EvaluationRequest(checkpoint="latest"))[0]
    assert torch.equal(torch.as_tensor(recorded.returns), torch.as_tensor(measured.returns))


def test_withheld_facts_are_out_of_reach_in_training_and_back_in_evaluation():
    parts = Builder(_config(env={"withheld": 0.5})).parts()
    facts = len(parts.env.successors.program.facts)
    everything = len(parts.evaluate.env.successors.program.facts)
    assert 0.4 * everything < facts < 0.6 * everything
    seen = []
    policy = parts.algorithm.policy
    policy.score.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    parts.evaluate(policy)
    first = seen[0]
    own = policy._expand
    with policy.on(parts.evaluate.env):
        assert policy._expand is not own
    assert policy._expand is own
    expected = parts.evaluate.env.successors.of(first.atoms, first.query)
    assert torch.equal(first.successors, expected.successors)


def test_whether_a_training_query_is_true_cannot_be_seen_in_counts(env):
    facts, program = env.dataset.facts, env.successors.program
    variable = torch.full_like(facts[:, 2:], env.dataset.vocabulary.num_entities + 1)
    assert (usable_matches(program, facts, excluded=facts) == 0).all()
    assert (usable_matches(program, facts, excluded=facts.roll(1, 0)) == 1).all()
    opened = torch.cat((facts[:, :2], variable), 1)
    assert torch.equal(usable_matches(program, opened, excluded=facts), program.facts.matches(opened)[1] - 1)


def test_the_share_of_facts_that_prove_counts_them(env):
    words, program = env.dataset.vocabulary, env.successors.program
    near, region = words.predicate("neighborOf"), words.predicate("locatedInCR")
    facts = {tuple(row) for row in env.dataset.facts.tolist()}
    country = words.entity("germany") if words.has_entity("germany") else env.dataset.test[0, 1].item()
    neighbours = [tail for predicate, head, tail in facts if (predicate, head) == (near, country)]
    for place in env.dataset.domains[next(iter(env.dataset.domains))][:1] + tuple(
        {tail for predicate, _, tail in facts if predicate == region}
    ):
        proving = sum((region, other, place) in facts for other in neighbours)
        state = torch.zeros(1, env.config.max_atoms, 3, dtype=torch.int32)
        variable = words.num_entities + 1
        state[0, :2] = torch.tensor([[near, country, variable], [region, variable, place]])
        share = proving_share(program, state, excluded=torch.zeros(1, 3, dtype=torch.int64))
        expected = proving / len(neighbours) if proving else 1.0
        assert share.item() == pytest.approx(expected)


def test_chance_through_a_wide_beam_proves_what_exhaustive_search_does(env):
    lists = candidates_of(env, RankOptions(negatives=None, queries=None), split="test")
    beam = beam_search_proofs(env, policy_steps(env, None), lists, beam=1000, depth=3)
    oracle = oracle_proofs(env, lists, depth=3, cap=2000)
    assert torch.equal(beam.depth, oracle.depth)
    assert (beam.log_probability.exp() <= 1 + 1e-9).all()


def test_ranking_a_run(tmp_path):
    run = start(_config(), folder=tmp_path / "run")
    found = rank_run(run, "rl", RankOptions(negatives=None, queries=None))
    assert [one.name for one in found.ranked] == ["rl", "greedy", "rules", "chance", "oracle"]
    assert found.lists == 24
    oracle = found.proofs["oracle"]
    assert oracle["positives"] == 1.0
    assert found.ranked[0].figures["mrr"] > 0.9
    with pytest.raises(ConfigError, match="embeddings"):
        rank_run(run, "hybrid", RankOptions())


def test_a_prover_acts_on_another_device_and_never_waits(fake_device):
    env = ReasoningEnv(ReasoningConfig(data="countries_s2", view="state"), num_envs=3).to(fake_device)
    model = make_prover(env, ProofConfig(hidden=8, rounds=1)).to(fake_device)
    root = model.critic(model.actor(env.reset()))
    assert {root[name].device for name in ("action", "action_log_prob", "state_value")} == {fake_device}
