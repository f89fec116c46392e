"""One step of SLD resolution for pairs of a goal and a clause: unify, substitute, drop known facts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning.engine.canonical import canonical, drop_atoms, left_aligned
from edgewise.systems.reasoning.engine.program import FIRST, SECOND, Program
from edgewise.systems.reasoning.knowledge.placement import can_count


@dataclass(frozen=True)
class Goals:
    """B goals prepared for resolution of their first atom.

    Attributes:
        first: `[B, 3]` int32, the atom to resolve.
        rest: `[B, W, 3]` int32, the other atoms, left-aligned.
        bound: `[B, W, 3]` int32, `rest` with −1 and −2 for the variables of `first` and the others renamed by
            first appearance: the template for resolution with a fact.
        length: `[B]` int64, number of atoms in `rest`.
        failed: `[B]` bool, some atom is `False`.
        proved: `[B]` bool, no atom is left.
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
    """N goals after resolution, in canonical form.

    Attributes:
        atoms: `[N, W, 3]` int32.
        length: `[N]` int64, number of atoms.
        possible: `[N]` bool, false where goal and clause do not unify; None if all unify.
    """

    atoms: Tensor
    length: Tensor
    possible: Tensor | None = None


def prepare_goals(program: Program, states: Tensor, excluded: Tensor) -> Goals:
    """Prepare states `[B, A, 3]`, which may have gaps and `True` atoms, with facts to exclude `[B, 3]`."""
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
    bound = _mark_variables(first, rest, num_entities=words.num_entities)
    return Goals(
        first,
        rest,
        bound,
        length=(length - 1).clamp(min=0),
        failed=failed,
        proved=(length == 0) & ~failed,
        excluded=program.facts.key(excluded),
    )


def _mark_variables(first: Tensor, rest: Tensor, *, num_entities: int) -> Tensor:
    """Replace variables of `first` `[B, 3]` in `rest` `[B, W, 3]` by −1 and −2; rename the others."""
    if not rest.shape[1]:
        return rest
    terms, variables = rest[..., 1:], first[:, 1:].masked_fill(first[:, 1:] <= num_entities, -1)
    head, tail = variables[:, 0].view(-1, 1, 1), variables[:, 1].view(-1, 1, 1)
    marked = terms.masked_fill(terms == tail, -2).masked_fill(terms == head, -1)
    return canonical(torch.cat((rest[..., :1], marked), -1), num_entities=num_entities)


def resolve_with_facts(program: Program, goals: Goals, *, owner: Tensor, place: Tensor) -> Resolvents:
    """Resolve goals `owner` `[N]` with the matching facts at `place` `[N]` of the index."""
    rows, argument = goals.bound[owner], program.facts.arguments[place]
    terms = rows[..., 1:]
    terms = torch.where(terms == -1, argument[:, 0].view(-1, 1, 1), terms)
    terms = torch.where(terms == -2, argument[:, 1].view(-1, 1, 1), terms)
    rows = torch.cat((rows[..., :1], terms), -1)
    known = program.facts.contains(rows, without=goals.excluded[owner].unsqueeze(-1))
    return Resolvents(drop_atoms(rows, known), goals.length[owner] - known.sum(-1))


def resolve_with_rules(program: Program, goals: Goals, *, owner: Tensor, rule: Tensor) -> Resolvents:
    """Resolve goals `owner` `[N]` with rules `rule` `[N]`, rows of the program with the same predicate."""
    first, rest = goals.first[owner], goals.rest[owner]
    head, tail, possible = first[:, 1], first[:, 2], None
    if not program.plain_heads:
        head, tail, rest, possible = _unify_heads(program, first, rest, rule=rule)
    role, body = program.body_role[rule], program.body_term[rule]
    body = torch.where(role == FIRST, head.view(-1, 1, 1), body)
    body = torch.where(role == SECOND, tail.view(-1, 1, 1), body)
    body = torch.cat((program.body_predicate[rule].unsqueeze(-1), body), -1)
    rows = torch.cat((body, rest), 1)
    known = program.facts.contains(rows, without=goals.excluded[owner].unsqueeze(-1))
    dropped = known | (rows[..., 0] == 0)
    rows = canonical(drop_atoms(rows, dropped), num_entities=program.vocabulary.num_entities)
    return Resolvents(rows, (~dropped).sum(-1), possible)


def _unify_heads(
    program: Program, first: Tensor, rest: Tensor, *, rule: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Unify atoms `first` `[N, 3]` with the heads of rules and apply the bindings.

    An entity in a head must equal the argument, or binds it if that is a variable. A head with the same
    variable twice makes both arguments equal. At most two variables of the goal are bound.

    Returns:
        Values of the head's first and second argument `[N]`, the rest `[N, W, 3]`, and whether they unify.
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
    """Replace terms `old` `[N]` of atoms `[N, W, 3]` by `new` in the rows `where`."""
    old, new, where = (value.view(-1, 1, 1) for value in (old, new, where))
    terms = atoms[..., 1:]
    return torch.cat((atoms[..., :1], torch.where(where & (terms == old), new, terms)), -1)
