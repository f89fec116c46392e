"""The proof that is shown is the most probable of all derivations, by a recursion, and rests on facts."""

import math

import pytest
import torch

from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.explanation import explain
from edgewise.systems.reasoning.models.build import make_prover
from edgewise.systems.reasoning.models.config import ProofConfig

DEPTH = 3


def _world(**fields):
    torch.manual_seed(1)
    env = ReasoningEnv(ReasoningConfig(data="countries_s2", view="state", **fields), num_envs=1, seed=0)
    return env, make_prover(env, ProofConfig(hidden=8, rounds=1, policy_gain=5.0)).actor


@pytest.fixture(scope="module")
def world():
    return _world(max_successors=40)


def _best(env, actor, state, query, depth):
    """The greatest probability of a proof from a state, every derivation tried; 0 if there is none."""
    if state[0, 0, 0] == env.ends.true:
        return 1.0
    if depth == 0 or bool(dynamics.is_over(state, env.ends)):
        return 0.0
    found = env.successors.of(state, query)
    chances = actor.decide_in(env, state, query, found).logits.exp().tolist()
    after = dynamics.drop_assumed(found.successors, env.ends)
    return max(
        chance * _best(env, actor, after[row : row + 1], query, depth - 1)
        for row, chance in enumerate(chances)
    )


@pytest.mark.parametrize("row", [0, 7, 15])
def test_it_is_the_most_probable_of_all_derivations(world, row):
    env, actor = world
    query = env.dataset.test[row]
    found = explain(env, actor, tuple(query.tolist()), beam=1000, depth=DEPTH)
    state = dynamics.start(query.unsqueeze(0), max_atoms=env.config.max_atoms)
    with torch.no_grad():
        best = _best(env, actor, state, query.unsqueeze(0), DEPTH)
    assert math.prod(found.probabilities) == pytest.approx(best, rel=1e-5)
    assert len(found.probabilities) == len(found.derivation.origins)


def test_it_is_complete_and_rests_on_facts_other_than_the_query(world):
    env, actor = world
    facts = {tuple(fact) for fact in env.dataset.facts.tolist()}
    for query in (tuple(env.dataset.test[0].tolist()), tuple(env.dataset.train[-1].tolist())):
        found = explain(env, actor, query, beam=100, depth=DEPTH)
        assert found.derivation.complete
        leaves = list(_leaves(found.derivation.tree))
        assert {leaf.by for leaf in leaves} == {"fact"}
        assert {leaf.atom for leaf in leaves} <= facts - {query}


def _leaves(node):
    yield from (leaf for child in node.children for leaf in _leaves(child)) if node.children else (node,)


def test_without_a_proof_there_is_nothing_to_show(world):
    env, actor = world
    words = env.dataset.vocabulary
    predicate, head, _ = env.dataset.test[0].tolist()
    assert explain(env, actor, (predicate, head, words.entity("zambia")), beam=100, depth=DEPTH) is None
    assert explain(env, actor, tuple(env.dataset.test[0].tolist()), beam=100, depth=1) is None


def test_a_narrow_beam_shows_no_better_proof_and_looks_at_less(world):
    env, actor = world
    narrow, wide = (
        explain(env, actor, tuple(env.dataset.test[3].tolist()), beam=beam, depth=DEPTH) for beam in (3, 1000)
    )
    assert narrow is None or math.prod(narrow.probabilities) <= math.prod(wide.probabilities) + 1e-12
    assert narrow is None or narrow.expanded <= wide.expanded


def test_what_was_assumed_is_shown_as_assumed():
    env, actor = _world(max_successors=40, assume=True)
    query = tuple(env.dataset.test[0].tolist())
    found = explain(env, actor, query, beam=1, depth=1)
    assert found.derivation.tree.by == "assumed"
    assert "[assumed]" in found.derivation.tree.text(env.dataset)
