"""What the policy over proofs sees and what it must not: shared terms, order, names, padding."""

from dataclasses import replace

import pytest
import torch
from tensordict import TensorDict

from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.knowledge.rules import Rule
from edgewise.systems.reasoning.models.build import make_prover
from edgewise.systems.reasoning.models.config import ProofConfig
from edgewise.systems.reasoning.models.decision import (
    Decision,
    count_matches,
    make_expand,
    rule_evidence,
)
from edgewise.systems.reasoning.models.proof_encoder import ProofDot, ProofGraph, Symbols
from edgewise.systems.reasoning.models.proof_policy import make_proof_actor_critic

SYMBOLS = Symbols(predicates=8, entities=10, variables=6, rules=3)
X, Y = 11, 12
QUERY = torch.tensor([[1, 1, 2]])
PLAIN = ProofConfig(hidden=16, counts=False)


def _goal(*atoms, width=3):
    state = torch.zeros(1, width, 3, dtype=torch.int64)
    state[0, : len(atoms)] = torch.tensor(atoms)
    return state


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return ProofGraph(SYMBOLS, PLAIN)


def test_a_shared_variable_is_seen(encoder):
    shared = encoder(_goal((1, 1, X), (2, X, 2)), QUERY)
    apart = encoder(_goal((1, 1, X), (2, Y, 2)), QUERY)
    assert (shared - apart).abs().max() > 1e-3


def test_names_of_entities_do_not_matter_but_their_part_in_the_query_does(encoder):
    one = encoder(_goal((1, 1, X), (2, X, 5)), QUERY)
    torch.testing.assert_close(one, encoder(_goal((1, 1, X), (2, X, 7)), QUERY))
    assert (one - encoder(_goal((1, 1, X), (2, X, 2)), QUERY)).abs().max() > 1e-3
    torch.testing.assert_close(one, encoder(_goal((1, 4, X), (2, X, 5)), torch.tensor([[1, 4, 2]])))


def test_padding_and_the_order_of_later_atoms_do_not_matter(encoder):
    narrow = encoder(_goal((1, 1, X), (2, X, 2), (3, 2, X)), QUERY)
    torch.testing.assert_close(narrow, encoder(_goal((1, 1, X), (2, X, 2), (3, 2, X), width=6), QUERY))
    torch.testing.assert_close(narrow, encoder(_goal((1, 1, X), (3, 2, X), (2, X, 2)), QUERY))
    assert (narrow - encoder(_goal((2, X, 2), (1, 1, X), (3, 2, X)), QUERY)).abs().max() > 1e-3


def test_goals_of_a_batch_do_not_see_each_other(encoder):
    goals = torch.cat((_goal((1, 1, X), (2, X, 2)), _goal((3, 2, 2)), _goal((1, X, Y))))
    together = encoder(goals, QUERY.expand(3, 3))
    for row in range(3):
        torch.testing.assert_close(together[row : row + 1], encoder(goals[row : row + 1], QUERY))


def test_counts_of_matching_facts_are_read():
    torch.manual_seed(0)
    encoder = ProofGraph(SYMBOLS, ProofConfig(hidden=16))
    goal = _goal((1, 1, X), (2, X, 2))
    found, none = torch.tensor([[0, 5, 0]]), torch.zeros(1, 3)
    assert (encoder(goal, QUERY, found) - encoder(goal, QUERY, none)).abs().max() > 1e-3
    with pytest.raises(ValueError, match="counts"):
        encoder(goal, QUERY)


def test_the_facts_of_the_environment_it_acts_in_are_counted():
    """A policy trained where facts are withheld counts all of them in an environment that has them all."""
    torch.manual_seed(0)
    whole, fewer = (
        ReasoningEnv(ReasoningConfig(view="state", withheld=share), num_envs=16, seed=0)
        for share in (0.0, 0.6)
    )
    own, trained = (make_prover(env, ProofConfig(hidden=16, policy_gain=5.0)).actor for env in (whole, fewer))
    own.load_state_dict(trained.state_dict())
    world = whole.reset()
    decision = make_expand(whole, matches=True)(world)
    with torch.no_grad(), trained.on(whole):
        expected = own.get_dist(world).logits
        torch.testing.assert_close(trained.get_dist(world).logits, expected)
    atoms, query = world["goal", "atoms"], world["goal", "query"]
    found = whole.successors.of(atoms, query)
    with torch.no_grad():
        torch.testing.assert_close(trained.decide_in(whole, atoms, query, found).logits, expected)
        counted = tuple(
            count_matches(fewer, *goals) for goals in ((atoms, query), (found.successors, query[found.owner]))
        )
        misled = own.decide(replace(decision, matches=counted)).logits
    assert (misled - expected).abs().max() > 1e-3


def test_a_true_training_query_is_not_counted_as_a_fact():
    env = ReasoningEnv(ReasoningConfig(view="state"), num_envs=1, seed=0)
    query = env.dataset.facts[:20]
    others = query.roll(1, 0)
    goals = torch.stack((query, others), 1)
    assert count_matches(env, goals, query).tolist() == [[0, 1]] * 20


def test_the_reference_encoder_is_a_mean_of_atoms():
    torch.manual_seed(0)
    encoder = ProofDot(SYMBOLS, ProofConfig(encoder="dot", hidden=16))
    torch.testing.assert_close(
        encoder(_goal((1, 1, X), (2, X, 2)), QUERY), encoder(_goal((2, X, 2), (1, 1, X), width=5), QUERY)
    )


def _decision():
    states = torch.cat((_goal((1, 1, 2)), _goal((2, 1, X))))
    successors = torch.cat(
        (_goal((2, 1, X), (3, X, 2)), _goal((3, 1, 2)), _goal((1, 4, 5)), _goal((2, 4, 4)), _goal((1, X, 2)))
    )
    return Decision(
        atoms=states,
        query=torch.tensor([[1, 1, 2], [2, 1, 3]]),
        successors=successors,
        owner=torch.tensor([0, 0, 1, 1, 1]),
        origin=torch.tensor([1, 2, 0, 0, 3]),
    )


def _actor_critic(config, evidence=None):
    torch.manual_seed(0)
    return make_proof_actor_critic(
        SYMBOLS,
        config,
        expand=lambda _: _decision(),
        read_goals=lambda _: (_decision().atoms, _decision().query, None),
        in_keys=["x"],
        evidence=evidence,
    )


def _evidence():
    return rule_evidence([Rule(f"r{i}", i / 4, (1, -1, -2), ((2, -1, -2),), i, 4) for i in (1, 2, 3)])


def test_the_prior_adds_the_log_weight_of_the_rule_and_nothing_to_facts():
    plain = _actor_critic(PLAIN, evidence=_evidence())
    with_prior = _actor_critic(PLAIN.model_copy(update={"prior": 2.0}), evidence=_evidence())
    assert with_prior.state_dict().keys() == plain.state_dict().keys()
    with_prior.load_state_dict(plain.state_dict())
    gained = with_prior.actor.score(_decision()) - plain.actor.score(_decision())
    expected = 2 * torch.tensor([0.25, 0.5, 1.0, 1.0, 0.75]).log()
    torch.testing.assert_close(gained, expected)


def test_evidence_changes_nothing_before_training_and_can_be_learned():
    plain = _actor_critic(PLAIN, evidence=_evidence())
    fed = _actor_critic(PLAIN.model_copy(update={"evidence": True}), evidence=_evidence())
    fed.load_state_dict(plain.state_dict(), strict=False)
    torch.testing.assert_close(fed.actor.score(_decision()), plain.actor.score(_decision()))
    fed.actor.score(_decision())[0].backward()
    assert fed.actor.score.from_evidence.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("encoder", ["graph", "dot"])
def test_actor_and_critic_act_value_and_learn(encoder):
    model = _actor_critic(PLAIN.model_copy(update={"encoder": encoder}))
    world = TensorDict({"x": torch.zeros(2)}, [2])
    acted = model.actor(world)
    assert acted["action"].tolist()[0] in (0, 1)
    distribution, value = model.evaluate(world)
    assert value.shape == (2, 1)
    torch.testing.assert_close(distribution.log_prob(acted["action"]), acted["action_log_prob"])
    (distribution.log_prob(acted["action"]).sum() + value.sum()).backward()
    used = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
    assert any("predicate" in name for name in used)


@pytest.mark.parametrize("encoder", ["graph", "dot"])
def test_empty_rows_behind_the_last_successor_change_nothing(encoder):
    actor, plain = _actor_critic(PLAIN.model_copy(update={"encoder": encoder})).actor, _decision()
    longer = replace(
        plain,
        successors=torch.nn.functional.pad(plain.successors, (0, 0, 0, 0, 0, 3)),
        owner=torch.nn.functional.pad(plain.owner, (0, 3), value=2),
        origin=torch.nn.functional.pad(plain.origin, (0, 3)),
    )
    expected, found = actor.decide(plain), actor.decide(longer)
    torch.testing.assert_close(found.logits[:5], expected.logits)
    torch.testing.assert_close(found.entropy(), expected.entropy())
    assert torch.equal(found.mode, expected.mode)
    assert torch.equal(found.counts, expected.counts)
    assert ((found.sample((50,)) < found.counts) & (found.sample((50,)) >= 0)).all()
    found.log_prob(torch.tensor([1, 2])).sum().backward()
    assert all(p.grad.isfinite().all() for p in actor.parameters() if p.grad is not None)
