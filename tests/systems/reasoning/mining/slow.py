"""A slow, independent reading of rules: every variable in turn, over sets of facts. No matrix, no sorting."""

from __future__ import annotations

import math
import random
from itertools import permutations

Facts = set[tuple[int, int, int]]


def random_facts(seed: int, *, entities: int, predicates: int, count: int) -> Facts:
    """Facts (predicate, head, tail) of ids from 1, with loops and both directions."""
    draw = random.Random(seed)
    return {
        (draw.randint(1, predicates), draw.randint(1, entities), draw.randint(1, entities))
        for _ in range(count)
    }


def conclusions(facts: Facts, head, body, entities: int) -> set[tuple[int, int]]:
    """All (first, second) arguments of the head that the body gives, with different entities for variables.

    A constant may equal what a variable of the body stands for, but not the variable of the head, unless the
    head is p(X,X). The head itself is not used as a fact for its own conclusion.
    """
    variables = sorted({term for atom in (head, *body) for term in atom[1:] if term < 0}, reverse=True)
    closed = head[1] < 0 and head[2] < 0 and head[1] != head[2]
    found = set()
    for values in permutations(range(1, entities + 1), len(variables)):
        bound = dict(zip(variables, values, strict=True))

        def put(atom, bound=bound):
            return (atom[0], bound.get(atom[1], atom[1]), bound.get(atom[2], atom[2]))

        conclusion = put(head)
        if not closed and head[1] != head[2] and conclusion[1] == conclusion[2]:
            continue
        atoms = [put(atom) for atom in body]
        loops = [a for a, b in zip(atoms, body, strict=True) if a[1] == a[2] and b[1] != b[2]]
        if loops or conclusion in atoms:
            continue
        if all(atom in facts for atom in atoms):
            found.add(conclusion[1:])
    return found


def rank(scores: dict[int, object], true: int, left_out: set[int], entities: int, nothing) -> float:
    """The filtered rank of the true entity; ties get their mean rank."""
    own = scores.get(true, nothing)
    others = [scores.get(e, nothing) for e in range(1, entities + 1) if e != true and e not in left_out]
    return 1 + sum(other > own for other in others) + sum(other == own for other in others) / 2


def lists_of_weights(concluded, rules, question, side: str) -> dict[int, list]:
    """For each concluded entity its rules, as (weight, number) by falling weight.

    Args:
        concluded: the `conclusions` of each rule.
        rules: the rules.
        question: predicate and given entity.
        side: which argument is asked for.
    """
    predicate, given = question
    found: dict[int, list] = {}
    for number, (rule, pairs) in enumerate(zip(rules, concluded, strict=True)):
        for head, tail in pairs if rule.head[0] == predicate else ():
            known, answer = (head, tail) if side == "tail" else (tail, head)
            if known == given:
                found.setdefault(answer, []).append((rule.weight, number))
    return {answer: sorted(one, reverse=True) for answer, one in found.items()}


def noisy_or(weights: list[float]) -> float:
    """−log of the probability that all are wrong."""
    return round(-sum(math.log(1 - weight) for weight in weights), 9)
