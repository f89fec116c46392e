"""Beam search for proofs, led by a policy: with what probability it proves a query, by its best ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Steps = Callable[[Tensor, Tensor, bool], "Offered"]
"""States `[F, A, 3]` of proofs of queries `[F, 3]` to what each can become and how probable that is; of the
last step, which only a proof can make worth while, nothing but proofs need be offered."""


@dataclass(frozen=True)
class Offered:
    """What states can become.

    Args:
        successors: `[L, A, 3]`.
        owner: `[L]` int64, the row of the state, never decreasing.
        log_probability: `[L]`, of the step.
    """

    successors: Tensor
    owner: Tensor
    log_probability: Tensor

    def best(self) -> Offered:
        """The most probable step of each state alone."""
        kept = best_of_each(self.log_probability, self.owner, 1)
        return Offered(self.successors[kept], self.owner[kept], self.log_probability[kept])


@dataclass(frozen=True)
class Proofs:
    """What a search found of Q queries.

    Args:
        log_probability: `[Q]`, of all proofs found together; minus infinity where there is none.
        depth: `[Q]` int64, steps of the shortest proof found; -1 where there is none.
        expanded: `[Q]` int64, states that were expanded.
    """

    log_probability: Tensor
    depth: Tensor
    expanded: Tensor

    @property
    def proved(self) -> Tensor:
        """Which queries have a proof, `[Q]`."""
        return self.depth >= 0


@torch.no_grad()
def search(
    steps: Steps,
    starts: Tensor,
    queries: Tensor,
    *,
    true: int,
    ends: tuple[int, ...],
    depth: int,
    beam: int | None,
) -> Proofs:
    """Follow the policy's most probable ways to prove each query.

    The probability of a proof is the product over its steps, and that of a query the sum over its proofs:
    what a policy that is sampled would prove. A beam finds only the most probable of them, so this is a lower
    bound, exact where the beam never has to leave anything out.

    Args:
        steps: the choices of states and their probabilities.
        starts: `[Q, A, 3]`, first states.
        queries: `[Q, 3]`.
        true: the predicate that stands alone in a proved state.
        ends: predicates that stand first in states that are over without a proof.
        depth: most steps.
        beam: most states that are kept of each query after each step; None for the greedy way, which takes
            the most probable step and nothing else, be it the end.
    """
    count = len(queries)
    probability = torch.zeros(count, dtype=torch.float64, device=starts.device)
    shortest = torch.full((count,), -1, dtype=torch.int64, device=starts.device)
    expanded = torch.zeros_like(shortest)
    states, of = starts, torch.arange(count, device=starts.device)
    reached = torch.zeros(count, dtype=torch.float64, device=starts.device)
    failing = torch.tensor(ends, device=starts.device)
    for step in range(1, depth + 1):
        if not len(states):
            break
        expanded.index_add_(0, of, torch.ones_like(of))
        offered = steps(states, queries[of], step == depth and beam is not None)
        if beam is None:
            offered = offered.best()
        total = reached[offered.owner] + offered.log_probability.double()
        query, first = of[offered.owner], offered.successors[:, 0, 0]
        proved = first == true
        probability.index_add_(0, query[proved], total[proved].exp())
        done = query[proved]
        shortest[done] = torch.where(shortest[done] < 0, step, shortest[done])
        alive = (~proved & ~torch.isin(first, failing)).nonzero().squeeze(1)
        if beam is not None:
            alive = alive[best_of_each(total[alive], query[alive], beam)]
        states, of, reached = offered.successors[alive], query[alive], total[alive]
    return Proofs(probability.log(), shortest, expanded)


def best_of_each(scores: Tensor, owner: Tensor, count: int) -> Tensor:
    """Places of the `count` highest scores of each owner, owner by owner; `owner [L]` never decreases."""
    order = scores.argsort(descending=True, stable=True)
    order = order[owner[order].argsort(stable=True)]
    sorted_owner = owner[order]
    rank = torch.arange(len(order), device=owner.device) - torch.searchsorted(sorted_owner, sorted_owner)
    return order[rank < count]
