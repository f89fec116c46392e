"""What a prover is offered beside resolution: no way back, ends where they belong, steps without a choice."""

from contextlib import ExitStack
from unittest.mock import patch

import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict
from tests.systems.reasoning.engine.bases import (
    ATOMS,
    ENTITIES,
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

from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.engine import canonical as canonicals
from edgewise.systems.reasoning.engine import expand as expanding
from edgewise.systems.reasoning.engine import history as histories
from edgewise.systems.reasoning.engine import resolve
from edgewise.systems.reasoning.engine.canonical import canonical, goal_hash
from edgewise.systems.reasoning.engine.expand import expand
from edgewise.systems.reasoning.engine.extra_actions import ExtraActions
from edgewise.systems.reasoning.engine.successors import Successors
from edgewise.systems.reasoning.knowledge import index
from edgewise.systems.reasoning.knowledge.rules import Rule

ENDS = dynamics.Ends(
    WORDS.num_predicates, WORDS.true, WORDS.false, WORDS.end_false, WORDS.end_true, WORDS.assumed_offset
)
ENDF, ENDT = ((WORDS.end_false, 0, 0),), ((WORDS.end_true, 0, 0),)
CIRCLE = [Rule("r", 1.0, (p, -1, -2), ((p % 3 + 1, -1, -2),)) for p in (1, 2, 3)]


def offered(found, row=0):
    low, high = found.offsets[row : row + 2].tolist()
    return [to_goal(goal) for goal in found.successors[low:high]]


def nothing(count=1):
    return torch.zeros(count, 3, dtype=torch.int64)


@given(bases, st.lists(goals, min_size=1, max_size=3), st.data())
def test_goals_of_the_history_are_left_out_and_no_others(base, batch, data):
    states = torch.stack([to_ids(goal) for goal in batch])
    program = base.program()
    every = expand(program, states, excluded=nothing(len(batch)))
    codes = goal_hash(every.successors)
    barred = data.draw(st.lists(st.integers(0, len(codes) - 1), max_size=4))
    history = torch.zeros(len(batch), 5, dtype=torch.int64)
    for column, row in enumerate(barred):
        history[every.owner[row], column] = codes[row]
    found = expand(program, states, excluded=nothing(len(batch)), history=history)
    loose = expand(program, states, excluded=nothing(len(batch)), history=history, cap=99, counted=False)
    for row in range(len(batch)):
        low, high = every.offsets[row : row + 2].tolist()
        wanted = [
            goal
            for goal, code in zip(offered(every, row), codes[low:high], strict=True)
            if goal in (TRUE, FALSE) or code not in history[row]
        ]
        assert offered(found, row) == offered(loose, row) == (wanted or [FALSE])


@given(st.lists(goals, min_size=2, max_size=6))
def test_the_hash_tells_goals_apart_and_ignores_the_order_of_atoms(batch):
    states = torch.stack([to_ids(goal) for goal in batch])
    codes = goal_hash(states).tolist()
    as_sets = [tuple(sorted(map(str, goal))) for goal in batch]
    for left, one in zip(as_sets, codes, strict=True):
        for right, other in zip(as_sets, codes, strict=True):
            assert (left == right) == (one == other)
    assert torch.equal(goal_hash(states), goal_hash(states[:, torch.randperm(ATOMS)]))


@given(st.lists(goals, min_size=1, max_size=4))
def test_canonical_goals_do_not_depend_on_names(batch):
    states = torch.stack([to_ids(goal) for goal in batch])
    other = torch.where(states > ENTITIES, 3 * ENTITIES - states, states)
    other[..., 0] = states[..., 0]
    both = [canonical(value, num_entities=ENTITIES) for value in (states, other)]
    assert torch.equal(*both)
    assert torch.equal(canonical(both[0], num_entities=ENTITIES), both[0])


def test_ends_are_offered_where_no_successor_ends_the_proof():
    base = Base([(2, 1, 2)], [Rule("r", 1.0, (1, -1, -2), ((2, -1, -3), (3, -3, -2)))])
    extra_actions = ExtraActions(give_up=True, claim=True)
    batch = torch.stack([to_ids([(1, 1, 2)]), to_ids([(2, 1, 2)]), to_ids([(3, 1, 2)])])
    found = expand(base.program(), batch, excluded=nothing(3), extra_actions=extra_actions)
    assert offered(found, 0) == [((2, 1, "X1"), (3, "X1", 2)), ENDF, ENDT]
    assert offered(found, 1) == [TRUE]
    assert offered(found, 2) == [FALSE]


def test_a_ground_first_atom_can_be_assumed_and_then_holds():
    base = Base([(2, 1, 2)], [])
    batch = torch.stack([to_ids([(3, 1, 2), (2, 2, "X1")]), to_ids([(3, 1, "X1")]), to_ids([(3, 1, 2)])])
    found = expand(base.program(), batch, excluded=nothing(3), extra_actions=ExtraActions(assume=True))
    assumed = (3 + WORDS.assumed_offset, 1, 2)
    assert offered(found, 0) == [FALSE, (assumed, (2, 2, "X1"))]
    assert offered(found, 1) == [FALSE]
    after = dynamics.drop_assumed(found.chosen(torch.tensor([1, 0, 1])), ENDS)
    assert [to_goal(goal) for goal in after] == [((2, 2, "X1"),), FALSE, TRUE]


def test_a_call_takes_batches_of_any_shape():
    base = Base([(2, 1, 2), (2, 1, 3)], [Rule("r", 1.0, (1, -1, -2), ((2, -1, -3), (3, -3, -2)))])
    successors = Successors(base.program(), cap=5)
    states = torch.stack([to_ids([(2, 1, "X1"), (3, "X1", "X1")]), to_ids([(1, 1, 2)])]).repeat(3, 1, 1)
    goal = TensorDict(
        {"atoms": states, "query": nothing(6), "history": torch.zeros(6, 2, dtype=torch.int64)}, [6]
    )
    flat, square = successors(goal), successors(goal.reshape(3, 2))
    assert torch.equal(flat.successors, square.successors)
    assert flat.counts.tolist() == [2, 1] * 3


@given(bases, st.lists(goals, min_size=1, max_size=4), ground, st.integers(1, 6))
def test_rows_that_are_not_counted_hold_the_same(base, batch, excluded, cap):
    """What an expansion is on an accelerator, where it has all the rows that there can be."""
    program, states = base.program(), torch.stack([to_ids(goal) for goal in batch])
    asked = {
        "excluded": torch.tensor([excluded]).expand(len(batch), 3),
        "cap": cap,
        "history": goal_hash(states).unsqueeze(-1),
        "extra_actions": ExtraActions(assume=True, give_up=True, claim=True),
    }
    counted = expand(program, states, **asked)
    with ExitStack() as stack:
        for module in (expanding, resolve, canonicals, histories, index):
            stack.enter_context(patch.object(module, "can_count", lambda _: False))
        padded = expand(program, states, **asked)
    rows = int(counted.offsets[-1])
    assert (padded.owner[rows:] == len(batch)).all()
    assert not padded.successors[rows:].any()
    for name in ("successors", "owner", "origin"):
        assert torch.equal(getattr(counted, name), getattr(padded, name)[:rows])
    for name in ("offsets", "proved", "failed", "truncated_successors", "dropped_long"):
        assert torch.equal(getattr(counted, name), getattr(padded, name))
