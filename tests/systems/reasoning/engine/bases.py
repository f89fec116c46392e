"""Small random knowledge bases and goals, and the way between tensors of the engine and tuples."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st

from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.knowledge.rules import Rule
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

ENTITIES, PREDICATES, ATOMS = 4, 3, 4
WORDS = Vocabulary.of([f"e{n}" for n in range(ENTITIES)], [f"p{n}" for n in range(PREDICATES)])
TRUE, FALSE = ((WORDS.true, 0, 0),), ((WORDS.false, 0, 0),)


@dataclass(frozen=True)
class Base:
    facts: list
    rules: list

    def program(self, max_atoms=ATOMS):
        facts = torch.tensor(self.facts, dtype=torch.int64).reshape(-1, 3)
        return Program.compile(facts, self.rules, vocabulary=WORDS, max_atoms=max_atoms)


predicates = st.integers(1, PREDICATES)
entities = st.integers(1, ENTITIES)
rule_terms = st.one_of(st.integers(-4, -1), st.integers(-4, -1), entities)
facts = st.lists(st.tuples(predicates, entities, entities), max_size=14)
rule_atoms = st.tuples(predicates, rule_terms, rule_terms)
rules = st.builds(
    lambda head, body: Rule("r", 1.0, head, tuple(body)),
    rule_atoms,
    st.lists(rule_atoms, min_size=1, max_size=3),
)
bases = st.builds(Base, facts, st.lists(rules, max_size=6))
variables = st.sampled_from(["X1", "X2", "X3"])
goal_terms = st.one_of(entities, variables)
goals = st.lists(st.tuples(predicates, goal_terms, goal_terms), min_size=1, max_size=ATOMS)
ground = st.tuples(predicates, entities, entities)


def to_ids(goal, *, max_atoms=ATOMS):
    """A goal of tuples as rows of ids, `[A, 3]`."""
    rows = [[p, *(ENTITIES + int(t[1:]) if isinstance(t, str) else t for t in terms)] for p, *terms in goal]
    return torch.tensor(rows + [[0, 0, 0]] * (max_atoms - len(rows)), dtype=torch.int32)


def to_goal(rows):
    """Rows of ids as a goal of tuples, padding left out; holes are kept as None, for none may be there."""
    atoms = [tuple(row) for row in rows.tolist()]
    while atoms and atoms[-1] == (0, 0, 0):
        atoms.pop()
    return tuple(
        None
        if atom == (0, 0, 0)
        else (atom[0], *(f"X{t - ENTITIES}" if t > ENTITIES else t for t in atom[1:]))
        for atom in atoms
    )
