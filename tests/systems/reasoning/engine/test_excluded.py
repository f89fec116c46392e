"""A query that is excluded from the facts is no fact, neither as a clause nor in the body of a rule."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.systems.reasoning.engine.bases import TRUE, Base, bases, goals, predicates
from tests.systems.reasoning.engine.test_expand import engine, expected

from edgewise.systems.reasoning.knowledge.rules import Rule

aimed = settings(max_examples=60, derandomize=True)


@aimed
@given(bases, st.lists(goals, min_size=1, max_size=4), st.data())
def test_successors_without_one_of_the_facts_are_those_of_the_definition(base, batch, data):
    assume(base.facts)
    excluded = [data.draw(st.sampled_from(base.facts)) for _ in batch]
    for goal, barred, mine in zip(batch, excluded, engine(base, batch, excluded)[1], strict=True):
        assert sorted(map(str, mine)) == sorted(map(str, expected(base, goal, barred)))


@aimed
@given(bases, predicates, st.data())
def test_a_rule_does_not_prove_its_body_by_the_excluded_fact(base, head, data):
    assume(base.facts)
    fact = data.draw(st.sampled_from(base.facts))
    assume(head != fact[0])
    copies = Base([fact], [Rule("copy", 1.0, (head, -1, -2), ((fact[0], -1, -2),))])
    goal = [(head, *fact[1:])]
    (free,), (barred,) = engine(copies, [goal])[1], engine(copies, [goal], [fact])[1]
    assert free == [TRUE]
    assert barred == [(fact,)]


@aimed
@given(bases, st.data())
def test_a_fact_does_not_prove_the_rest_of_a_goal_by_the_excluded_fact(base, data):
    assume(len(set(base.facts)) > 1)
    fact = data.draw(st.sampled_from(base.facts))
    other = data.draw(st.sampled_from([each for each in base.facts if each != fact]))
    both, goal = Base([other, fact], []), [(other[0], "X1", other[2]), fact]
    assert engine(both, [goal])[1] == [[TRUE]]
    assert engine(both, [goal], [fact])[1] == [[(fact,)]]
