"""One step of SLD resolution for pairs of a goal and a clause: unify, substitute, drop what is known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning.engine.canonical import canonical, left_aligned, without_holes
from edgewise.systems.reasoning.engine.program import FIRST, SECOND, Program
from edgewise.systems.reasoning.knowledge.placement import can_count


@dataclass(frozen=True)
class Goals:
    """B goals, ready to be resolved on their first atom.

    Attributes:
        first: `[B, 3]` int32, the atom to resolve.
        rest: `[B, W, 3]` int32, the others, left-aligned.
        bound: `[B, W, 3]` int32, as `rest`, with −1 and −2 for the variables of `first`, the others renamed
            by first appearance: what is left of the goal once a fact has bound `first`.
        length: `[B]` int64, atoms in `rest`.
        failed: `[B]` bool, some atom is `False`.
        proved: `[B]` bool, nothing is left to prove.
        excluded: `[B]` int64, the key of the fact that must not be used.
    """

    first: Tensor
    rest: Tensor
    bound: Tensor
    length: Tensor
    failed: Tensor
    proved: Tensor
    excluded: Tensor


@dataclass(frozen=True)
class Resolvents:
    """N goals that resolution gave, in canonical form.

    Attributes:
        atoms: `[N, W, 3]` int32.
        length: `[N]` int64, how many atoms are left.
        possible: `[N]` bool, false where goal and clause do not unify; None where all do.
    """

    atoms: Tensor
    length: Tensor
    possible: Tensor | None = None


def prepared(program: Program, states: Tensor, excluded: Tensor) -> Goals:
    """Goals from states `[B, A, 3]`, holes and atoms that hold allowed, and facts to exclude `[B, 3]`."""
    words, states = program.vocabulary, states.to(torch.int32)
    predicate = states[..., 0]
    failed = ((predicate == words.false) | (predicate == words.end_false)).any(-1)
    regular = (predicate > 0) & (predicate <= words.num_predicates)
    misplaced = (regular[:, 1:] & ~regular[:, :-1]) | (~regular[:, 1:] & (predicate[:, 1:] != 0))
    if not can_count(states) or misplaced.any():
        states = left_aligned(states, regular)
    length = regular.sum(-1)
    if can_count(states):
        states = states[:, : max(1, int(length.max()))] if len(length) else states[:, :1]
    first, rest = states[:, 0], states[:, 1:]
    bound = _without_variables_of(first, rest, num_entities=words.num_entities)
    return Goals(
        first,
        rest,
        bound,
        length=(length - 1).clamp(min=0),
        failed=failed,
        proved=(length == 0) & ~failed,
        excluded=program.facts.key(excluded),
    )


def _without_variables_of(first: Tensor, rest: Tensor, *, num_entities: int) -> Tensor:
    """`rest` `[B, W, 3]` with −1 and −2 for variables of `first` `[B, 3]` and others by first appearance."""
    if not rest.shape[1]:
        return rest
    terms, variables = rest[..., 1:], first[:, 1:].masked_fill(first[:, 1:] <= num_entities, -1)
    head, tail = variables[:, 0].view(-1, 1, 1), variables[:, 1].view(-1, 1, 1)
    marked = terms.masked_fill(terms == tail, -2).masked_fill(terms == head, -1)
    return canonical(torch.cat((rest[..., :1], marked), -1), num_entities=num_entities)


def by_facts(program: Program, goals: Goals, *, owner: Tensor, place: Tensor) -> Resolvents:
    """Goals `owner` `[N]` resolved with the facts at `place` `[N]` of the index, which all match."""
    rows, argument = goals.bound[owner], program.facts.arguments[place]
    terms = rows[..., 1:]
    terms = torch.where(terms == -1, argument[:, 0].view(-1, 1, 1), terms)
    terms = torch.where(terms == -2, argument[:, 1].view(-1, 1, 1), terms)
    rows = torch.cat((rows[..., :1], terms), -1)
    known = program.facts.contains(rows, without=goals.excluded[owner].unsqueeze(-1))
    return Resolvents(without_holes(rows, known), goals.length[owner] - known.sum(-1))


def by_rules(program: Program, goals: Goals, *, owner: Tensor, rule: Tensor) -> Resolvents:
    """Goals `owner` `[N]` resolved with rules `rule` `[N]`, rows of the program, of the same predicate."""
    first, rest = goals.first[owner], goals.rest[owner]
    head, tail, possible = first[:, 1], first[:, 2], None
    if not program.plain_heads:
        head, tail, rest, possible = _unified(program, first, rest, rule=rule)
    role, body = program.body_role[rule], program.body_term[rule]
    body = torch.where(role == FIRST, head.view(-1, 1, 1), body)
    body = torch.where(role == SECOND, tail.view(-1, 1, 1), body)
    body = torch.cat((program.body_predicate[rule].unsqueeze(-1), body), -1)
    rows = torch.cat((body, rest), 1)
    known = program.facts.contains(rows, without=goals.excluded[owner].unsqueeze(-1))
    dropped = known | (rows[..., 0] == 0)
    rows = canonical(without_holes(rows, dropped), num_entities=program.vocabulary.num_entities)
    return Resolvents(rows, (~dropped).sum(-1), possible)


def _unified(
    program: Program, first: Tensor, rest: Tensor, *, rule: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Most general unifiers of atoms `first` `[N, 3]` with heads: the two arguments and the rest, bound.

    An entity in a head must equal the argument or binds it if that is a variable; one variable twice in a
    head makes both arguments one. At most two variables of the goal are bound, one after the other.

    Returns:
        Values of the head's first and second argument `[N]`, the rest `[N, W, 3]`, and where it is possible.
    """
    entities, (wanted, second) = program.vocabulary.num_entities, program.head[rule].unbind(-1)
    head, tail = first[:, 1], first[:, 2]
    possible = (wanted == 0) | (head == wanted) | (head > entities)
    binds = (wanted > 0) & (head > entities)
    rest = _bind(rest, head, wanted, where=binds)
    tail = torch.where(binds & (tail == head), wanted, tail)
    head = torch.where(binds, wanted, head)
    wanted = torch.where(program.same_head[rule], head, second)
    tail_binds = (wanted > 0) & (tail > entities)
    head_binds = (wanted > entities) & (tail <= entities)
    possible = possible & ((wanted == 0) | (wanted == tail) | tail_binds | head_binds)
    old, new = torch.where(tail_binds, tail, wanted), torch.where(tail_binds, wanted, tail)
    binds = tail_binds | head_binds
    rest = _bind(rest, old, new, where=binds)
    head = torch.where(binds & (head == old), new, head)
    return head, torch.where(binds, new, tail), rest, possible


def _bind(atoms: Tensor, old: Tensor, new: Tensor, *, where: Tensor) -> Tensor:
    """Atoms `[N, W, 3]` with terms `old` `[N]` replaced by `new` in the rows `where`."""
    old, new, where = (value.view(-1, 1, 1) for value in (old, new, where))
    terms = atoms[..., 1:]
    return torch.cat((atoms[..., :1], torch.where(where & (terms == old), new, terms)), -1)
