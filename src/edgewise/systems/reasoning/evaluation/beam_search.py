"""Beam search for proofs with a policy: the probability that the policy proves a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Steps = Callable[[Tensor, Tensor, bool], "Offered"]
"""Maps states `[F, A, 3]` of queries `[F, 3]`, and whether this is the last step, to successors with their
log-probabilities. In the last step only successors that complete a proof are needed."""


@dataclass(frozen=True)
class Offered:
    """Successors of states and their log-probabilities.

    Args:
        successors: `[L, A, 3]`.
        owner: `[L]` int64, the row of the state, non-decreasing.
        log_probability: `[L]`, of each step.
    """

    successors: Tensor
    owner: Tensor
    log_probability: Tensor

    def best(self) -> Offered:
        """Return only the most probable successor of each state."""
        kept = best_of_each(self.log_probability, self.owner, 1)
        return Offered(self.successors[kept], self.owner[kept], self.log_probability[kept])


@dataclass(frozen=True)
class Proofs:
    """The result of a search for Q queries.

    Args:
        log_probability: `[Q]`, of all proofs found together; minus infinity if there is none.
        depth: `[Q]` int64, steps of the shortest proof found; -1 if there is none.
        expanded: `[Q]` int64, number of expanded states.
    """

    log_probability: Tensor
    depth: Tensor
    expanded: Tensor

    @property
    def proved(self) -> Tensor:
        """Which queries have a proof, `[Q]` bool."""
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
    ties: torch.Generator | None = None,
) -> Proofs:
    """Search for proofs of each query along the most probable steps.

    The probability of a proof is the product over its steps. The probability of a query is the sum over its
    proofs, as for a sampled policy. A beam finds only the most probable proofs, so the result is a lower
    bound. It is exact if the beam never drops a state.

    Args:
        steps: computes successors and their log-probabilities.
        starts: `[Q, A, 3]`, initial states.
        queries: `[Q, 3]`.
        true: predicate of a proved state.
        ends: first predicates of states that ended without a proof.
        depth: maximum number of steps.
        beam: number of states kept per query after each step; None for greedy search, which follows only the
            most probable step.
        ties: breaks ties of the beam at random; by default the first states are kept.
    """
    count = len(queries)
    probability = torch.zeros(count, dtype=torch.float64, device=starts.device)
    shortest = torch.full((count,), -1, dtype=torch.int64, device=starts.device)
    expanded = torch.zeros_like(shortest)
    states, row = starts, torch.arange(count, device=starts.device)
    log_probability = torch.zeros(count, dtype=torch.float64, device=starts.device)
    failing = torch.tensor(ends, device=starts.device)
    for step in range(1, depth + 1):
        if not len(states):
            break
        expanded.index_add_(0, row, torch.ones_like(row))
        offered = steps(states, queries[row], step == depth and beam is not None)
        if beam is None:
            offered = offered.best()
        total = log_probability[offered.owner] + offered.log_probability.double()
        query, first = row[offered.owner], offered.successors[:, 0, 0]
        proved = first == true
        probability.index_add_(0, query[proved], total[proved].exp())
        done = query[proved]
        shortest[done] = torch.where(shortest[done] < 0, step, shortest[done])
        alive = (~proved & ~torch.isin(first, failing)).nonzero().squeeze(1)
        if beam is not None:
            if ties is not None:
                alive = alive[torch.randperm(len(alive), generator=ties).to(alive.device)]
            alive = alive[best_of_each(total[alive], query[alive], beam)]
        states, row, log_probability = offered.successors[alive], query[alive], total[alive]
    return Proofs(probability.log(), shortest, expanded)


def best_of_each(scores: Tensor, owner: Tensor, count: int) -> Tensor:
    """Return the indices of the `count` highest scores `[L]` of each owner `[L]`, by owner; first on ties."""
    order = scores.argsort(descending=True, stable=True)
    order = order[owner[order].argsort(stable=True)]
    sorted_owner = owner[order]
    rank = torch.arange(len(order), device=owner.device) - torch.searchsorted(sorted_owner, sorted_owner)
    return order[rank < count]
