"""Tables of proofs: what steps cost, what the last step may leave out, and where candidates are absent."""

import pytest
import torch

from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.engine.expand import NO_CLAUSE
from edgewise.systems.reasoning.engine.support import proving_share
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation import proof_scores
from edgewise.systems.reasoning.evaluation.beam_search import search
from edgewise.systems.reasoning.evaluation.candidates import draw_candidates
from edgewise.systems.reasoning.evaluation.proof_scores import beam_search_proofs, oracle_proofs, policy_steps
from edgewise.systems.reasoning.models.build import make_prover
from edgewise.systems.reasoning.models.config import ProofConfig
from edgewise.systems.reasoning.models.decision import make_decision


@pytest.fixture(scope="module")
def env():
    config = ReasoningConfig(data="countries_s2", view="state", max_successors=40)
    return ReasoningEnv(config, num_envs=1, seed=0)


@pytest.fixture(scope="module")
def actor(env):
    torch.manual_seed(2)
    return make_prover(env, ProofConfig(hidden=8, rounds=1, policy_gain=5.0)).actor


@pytest.fixture(scope="module")
def lists(env):
    return draw_candidates(
        env.dataset.test[:8],
        env.dataset.known(),
        num_entities=env.dataset.vocabulary.num_entities,
        sides=("tail",),
        domains=env.dataset.domains.values(),
    )


def _goals(env, queries, steps=1):
    """Goals within so many steps of queries, and the query of each."""
    states = dynamics.start(queries, max_atoms=env.config.max_atoms)
    for _ in range(steps):
        found = env.successors.of(states, queries)
        alive = ~dynamics.is_over(found.successors, env.ends)
        states, queries = found.successors[alive], queries[found.owner[alive]]
    return states, queries


def test_rules_are_counted_from_one_and_facts_and_ends_are_nothing(env):
    states, queries = _goals(env, env.dataset.test[:8], steps=0)
    found = env.successors.of(states, queries)
    asked = make_decision(env, states, queries, found, matches=False)
    by_rule = found.origin >= 0
    assert torch.equal(asked.origin[by_rule], found.origin[by_rule] + 1)
    assert (asked.origin[~by_rule] == 0).all()
    assert (found.origin[~by_rule] == NO_CLAUSE).any()


def test_steps_cost_what_the_policy_gives_them_and_proofs_the_share_that_proves(env, actor):
    states, queries = _goals(env, env.dataset.test[:8])
    found = env.successors.of(states, queries)
    assert 0 < found.proved.sum() < len(states)
    with torch.no_grad():
        offered = policy_steps(env, actor)(states, queries, False)
        own = actor.decide_in(env, states, queries, found).logits.double()
    proves = found.proved[found.owner]
    torch.testing.assert_close(offered.log_probability[~proves], own[~proves])
    share = proving_share(env.successors.program, states, excluded=queries)[found.proved]
    torch.testing.assert_close(offered.log_probability[proves].exp(), share)
    total = torch.zeros(len(states), dtype=torch.float64)
    total.index_add_(0, offered.owner, offered.log_probability.exp())
    torch.testing.assert_close(total[~found.proved], torch.ones_like(total[~found.proved]), atol=1e-5, rtol=0)


def test_chance_gives_all_steps_of_a_goal_alike(env):
    states, queries = _goals(env, env.dataset.test[:8], steps=0)
    found, offered = env.successors.of(states, queries), policy_steps(env, None)(states, queries, False)
    expected = 1 / found.counts[found.owner].double()
    torch.testing.assert_close(offered.log_probability.exp(), expected)


def test_leaving_out_all_but_proofs_in_the_last_step_changes_nothing(env, actor, lists):
    led = policy_steps(env, actor)
    atoms = lists.atoms[lists.exists]
    starts = dynamics.start(atoms, max_atoms=env.config.max_atoms)
    ends = {"true": env.ends.true, "ends": (env.ends.false, env.ends.end_false)}
    short, full = (
        search(steps, starts, atoms, beam=16, depth=2, **ends)
        for steps in (led, lambda states, queries, last: led(states, queries, False))
    )
    assert short.proved.any()
    torch.testing.assert_close(short.log_probability, full.log_probability)
    assert torch.equal(short.depth, full.depth)


def test_a_greedy_proof_is_one_of_those_of_the_beam(env, actor, lists):
    led, told = policy_steps(env, actor), []
    greedy = beam_search_proofs(env, led, lists, beam=None, depth=4, progress=told.append)
    beam = beam_search_proofs(env, led, lists, beam=500, depth=4)
    assert (beam.proved | ~greedy.proved).all()
    assert (greedy.log_probability <= beam.log_probability + 1e-9).all()
    assert greedy.expanded < beam.expanded
    assert sum(told) == int(lists.exists.sum())


def test_absent_candidates_have_no_proof_and_shorter_proofs_are_worth_more(env, lists):
    exists = lists.exists.clone()
    exists[:, 1] = False
    table = oracle_proofs(env, type(lists)(lists.atoms, exists, lists.query, lists.side), depth=3, cap=2000)
    assert (table.depth[:, 1] == -1).all()
    assert table.log_probability[:, 1].isneginf().all()
    assert table.proved[:, 0].all()
    torch.testing.assert_close(table.log_probability[table.proved], -table.depth[table.proved].double())


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """An environment where s(X,Y) follows from t(X,Y) with weight .5, and from r(Y,X) with weight .25."""
    folder = tmp_path_factory.mktemp("weighted")
    (folder / "train.txt").write_text("b\tr\ta\nc\tr\td\nd\tt\tc\na\ts\td\n")
    for split in ("valid", "test"):
        (folder / f"{split}.txt").write_text("a\ts\tb\nd\ts\tc\n")
    rules = "one:0.5:t(X,Y) -> s(X,Y)\ntwo:0.25:r(Y,X) -> s(X,Y)\n"
    (folder / "rules.txt").write_text(rules)
    return ReasoningEnv(ReasoningConfig(data=str(folder), view="state"), num_envs=1, seed=0)


@pytest.mark.parametrize(("prior", "power"), [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)])
def test_a_rule_that_proves_at_once_counts_by_its_weight(weighted, prior, power):
    queries = weighted.dataset.test
    states = dynamics.start(queries, max_atoms=weighted.config.max_atoms)
    torch.manual_seed(0)
    actor = make_prover(weighted, ProofConfig(hidden=8, rounds=1, prior=prior)).actor
    weights = torch.tensor([0.25, 0.5], dtype=torch.float64)  # the first of several rules for d, c

    def found(actor, **settings):
        with torch.no_grad():
            return policy_steps(weighted, actor, **settings)(states, queries, True).log_probability.exp()

    torch.testing.assert_close(found(actor), weights**power)
    torch.testing.assert_close(found(None), torch.ones(2).double())
    torch.testing.assert_close(found(None, by_weight=True), weights)


def test_wide_beams_search_fewer_candidates_at_once(env, actor, lists, monkeypatch):
    """The goals that are kept at once are bounded, and batches change nothing."""
    expected, most = beam_search_proofs(env, policy_steps(env, actor), lists, beam=8, depth=3), 0

    def steps(states, queries, last):
        nonlocal most
        most = max(most, len(states))
        return policy_steps(env, actor)(states, queries, last)

    monkeypatch.setattr(proof_scores, "GOALS_AT_ONCE", 32)
    found = beam_search_proofs(env, steps, lists, beam=8, depth=3)
    assert 8 < most <= 32
    torch.testing.assert_close(found.log_probability, expected.log_probability)
    assert torch.equal(found.depth, expected.depth)
    assert found.expanded == expected.expanded
