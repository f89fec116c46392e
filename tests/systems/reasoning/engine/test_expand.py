"""The batched engine against SLD resolution in plain Python, on random knowledge bases and planted cases."""

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.systems.reasoning.engine.bases import (
    ATOMS,
    FALSE,
    TRUE,
    WORDS,
    Base,
    bases,
    goals,
    ground,
    to_goal,
    to_ids,
)
from tests.systems.reasoning.engine.reference import canonical, proof_depth, successors

from edgewise.systems.reasoning.engine.expand import NO_CLAUSE, expand
from edgewise.systems.reasoning.knowledge.rules import Rule

NONE = (0, 0, 0)


def engine(base, batch, excluded=None, *, cap=None, max_atoms=ATOMS):
    """The expansion of many goals, and each goal's successors as a list of tuples."""
    states = torch.stack([to_ids(goal, max_atoms=max_atoms) for goal in batch])
    barred = torch.tensor([fact or NONE for fact in excluded or [None] * len(batch)])
    found = expand(base.program(max_atoms), states, excluded=barred, cap=cap)
    ends = found.offsets.tolist()
    rows = [to_goal(row) for row in found.successors]
    return found, [rows[low:high] for low, high in itertools.pairwise(ends)]


def expected(base, goal, excluded=None, *, max_atoms=ATOMS):
    """What the definition gives: all successors in order, or the one that stands for a proof or a failure."""
    found = [
        new for new in successors(goal, _once(base.facts), base.rules, excluded) if len(new) <= max_atoms
    ]
    if () in found:
        return [TRUE]
    return found or [FALSE]


def _once(facts):
    return list(dict.fromkeys(facts))


@given(bases, st.lists(goals, min_size=1, max_size=4), st.lists(st.none() | ground, min_size=4, max_size=4))
def test_successors_are_those_of_the_definition(base, batch, excluded):
    found, offered = engine(base, batch, excluded[: len(batch)])
    for goal, barred, mine in zip(batch, excluded, offered, strict=False):
        wanted = expected(base, goal, barred)
        assert sorted(map(str, mine)) == sorted(map(str, wanted))
    assert found.owner.tolist() == sorted(found.owner.tolist())
    assert found.proved.tolist() == [mine == [TRUE] for mine in offered]
    assert found.failed.tolist() == [mine == [FALSE] for mine in offered]


@given(bases, goals)
def test_rules_come_first_and_in_order(base, goal):
    found, (_mine,) = engine(base, [goal])
    if not (found.proved | found.failed):
        split = int((found.origin >= 0).sum())
        assert (found.origin[:split] >= 0).all()
        assert found.origin[:split].diff().gt(0).all()


@given(bases, goals, st.none() | ground)
def test_the_origin_of_a_successor_gives_it_by_itself(base, goal, excluded):
    found, (mine,) = engine(base, [goal], [excluded])
    for successor, origin in zip(mine, found.origin.tolist(), strict=True):
        if origin == NO_CLAUSE:
            assert successor == FALSE
            continue
        rules = [base.rules[origin]] if origin >= 0 else []
        resolved = _with_one_clause(
            base, goal, rules, None if origin >= 0 else base.facts[-1 - origin], excluded
        )
        assert (() if successor == TRUE else successor) in resolved


def _with_one_clause(base, goal, rules, fact, excluded):
    """Successors of the goal by one rule, or by one fact, with all facts known for dropping."""
    usable = [known for known in _once(base.facts) if known != excluded]
    resolve_with_rules = successors(goal, [], rules)
    by_fact = successors(goal, [fact], []) if fact is not None and fact != excluded else []
    return {canonical(atom for atom in new if atom not in usable) for new in resolve_with_rules + by_fact}


@given(bases, st.lists(goals, min_size=1, max_size=3), st.integers(1, 6))
def test_a_cap_leaves_out_and_says_so_and_invents_nothing(base, batch, cap):
    _, everything = engine(base, batch)
    found, capped = engine(base, batch, cap=cap)
    for row, (mine, all_of_them) in enumerate(zip(capped, everything, strict=True)):
        assert len(mine) <= cap
        if not found.truncated_successors[row]:
            assert mine == all_of_them
        elif mine not in ([TRUE], [FALSE]):
            assert all_of_them == [TRUE] or set(mine) <= set(all_of_them)
        if mine == [TRUE]:
            assert all_of_them == [TRUE]


@given(bases, st.lists(goals, min_size=1, max_size=3), st.integers(1, 6))
def test_rows_that_are_not_counted_are_the_same_rows(base, batch, cap):
    program, barred = base.program(), torch.zeros(len(batch), 3, dtype=torch.int64)
    states = torch.stack([to_ids(goal) for goal in batch])
    exact = expand(program, states, excluded=barred, cap=cap)
    loose = expand(program, states, excluded=barred, cap=cap, counted=False)
    rows = len(exact.owner)
    assert len(loose.owner) == cap * len(batch)
    for name, value in vars(exact).items():
        assert torch.equal(value, getattr(loose, name)[: len(value)]), name
    assert (loose.owner[rows:] == len(batch)).all()
    for left, right in zip(exact.padded(cap + 1), loose.padded(cap + 1), strict=True):
        assert torch.equal(left, right)


@given(bases, st.lists(goals, min_size=1, max_size=3), st.data())
def test_holes_and_atoms_that_hold_change_nothing(base, batch, data):
    width = ATOMS + 3
    program = base.program(width)
    plain, pierced = [], []
    for goal in batch:
        ids = to_ids(goal, max_atoms=len(goal))
        rows = list(ids)
        for _ in range(3):
            place = data.draw(st.integers(0, len(rows)))
            filler = data.draw(st.sampled_from([0, WORDS.true, WORDS.end_true, WORDS.assumed_offset + 1]))
            rows.insert(place, torch.tensor([filler, 0, 0], dtype=torch.int32))
        rows += [torch.zeros(3, dtype=torch.int32)] * (width - len(rows))
        pierced.append(torch.stack(rows))
        plain.append(to_ids(goal, max_atoms=width))
    barred = torch.zeros(len(batch), 3, dtype=torch.int64)
    left = expand(program, torch.stack(plain), excluded=barred)
    right = expand(program, torch.stack(pierced), excluded=barred)
    assert torch.equal(left.successors, right.successors)
    assert torch.equal(left.owner, right.owner)


def test_goals_that_are_over_stay_so():
    batch = [[], [(WORDS.true, 0, 0)], [(WORDS.false, 0, 0)], [(1, 1, 1), (WORDS.end_false, 0, 0)]]
    found, offered = engine(Base([(1, 1, 1)], []), batch)
    assert offered == [[TRUE], [TRUE], [FALSE], [FALSE]]
    assert (found.origin == NO_CLAUSE).all()


def test_one_variable_twice_asks_for_loops_alone():
    base = Base([(1, 1, 2), (1, 3, 3), (1, 4, 4)], [])
    _, (mine,) = engine(base, [[(1, "X1", "X1"), (2, "X1", "X2")]])
    assert mine == [((2, 3, "X1"),), ((2, 4, "X1"),)]


def test_an_entity_in_a_head_binds_the_goal():
    rule = Rule("r", 1.0, (1, 2, -1), ((2, -1, -1),))
    _, (mine,) = engine(Base([], [rule]), [[(1, "X1", "X1"), (3, "X1", "X2")]])
    assert mine == [((2, 2, 2), (3, 2, "X1"))]


def test_a_repeated_head_variable_makes_arguments_one():
    rule = Rule("r", 1.0, (1, -1, -1), ((2, -1, -2),))
    _, (joined, bound, apart) = engine(
        Base([], [rule]),
        [[(1, "X1", "X2"), (3, "X2", "X1")], [(1, "X1", 4), (3, "X1", "X2")], [(1, 1, 2)]],
    )
    assert joined == [((2, "X1", "X2"), (3, "X1", "X1"))]
    assert bound == [((2, 4, "X1"), (3, 4, "X2"))]
    assert apart == [FALSE]


def test_overflow_is_no_proof():
    """More successors than there is room for: the ones that fit are offered, and nothing is proved."""
    base = Base([(1, 1, n) for n in (1, 2, 3, 4)], [])
    found, (mine,) = engine(base, [[(1, 1, "X1"), (2, "X1", 1)]], cap=2)
    assert mine == [((2, 1, 1),), ((2, 2, 1),)]
    assert found.truncated_successors.all()
    assert not found.proved.any()


def test_dropped_atoms_leave_no_hole():
    """The known atom between two open ones goes; the successor's own successors are found."""
    rule = Rule("r", 1.0, (1, -1, -2), ((3, -1, -1), (2, -1, -3), (2, -3, -2)))
    base = Base([(3, 1, 1), (2, 1, 4), (2, 4, 2)], [rule])
    _, (mine,) = engine(base, [[(1, 1, 2)]])
    assert mine == [((2, 1, "X1"), (2, "X1", 2))]
    _, (after,) = engine(base, mine)
    assert after == [TRUE]


def test_goals_that_grow_too_long_are_dropped_and_flagged():
    rule = Rule("r", 1.0, (1, -1, -2), ((1, -1, -3), (2, -3, -4), (1, -4, -2)))
    found, (long, short) = engine(Base([], [rule]), [[(1, 1, 2)] * 3, [(1, 1, 2)]])
    assert found.dropped_long.tolist() == [True, False]
    assert long == [FALSE]
    assert len(short[0]) == 3


def test_a_query_does_not_prove_itself():
    base = Base([(1, 1, 2), (1, 2, 1)], [Rule("r", 1.0, (1, -1, -2), ((1, -2, -1),))])
    _, (with_itself, without) = engine(base, [[(1, 1, 2)]] * 2, [None, (1, 1, 2)])
    assert with_itself == [TRUE]
    assert without == [TRUE]
    _, (alone,) = engine(Base([(1, 1, 2)], base.rules), [[(1, 1, 2)]], [(1, 1, 2)])
    assert alone == [((1, 2, 1),)]


@given(bases, st.lists(ground, min_size=1, max_size=3))
def test_steps_of_the_engine_prove_what_the_definition_proves(base, queries):
    program, limit = base.program(16), 2
    states = torch.stack([to_ids([query], max_atoms=16) for query in queries])
    barred = torch.tensor(queries)
    depth, owner = [None] * len(queries), torch.arange(len(queries))
    for step in range(1, limit + 1):
        found = expand(program, states, excluded=barred[owner])
        for number in owner[found.proved].tolist():
            depth[number] = depth[number] or step
        going = ~(found.proved | found.failed)[found.owner]
        states, owner = found.successors[going], owner[found.owner[going]]
    facts = _once(base.facts)
    assert depth == [proof_depth(q, facts, base.rules, limit=limit, excluded=q) for q in queries]
