"""The most probable proof that a policy finds of one query, as a tree that people can read."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.engine.proof import Derivation, derive
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.proof_scores import decision
from edgewise.systems.reasoning.models.proof_policy import ProofActor


@dataclass(frozen=True)
class Explanation:
    """A proof and how the policy came to it.

    Attributes:
        derivation: goals, clauses and the tree.
        probabilities: of each step.
        expanded: goals that were looked at.
    """

    derivation: Derivation
    probabilities: tuple[float, ...]
    expanded: int


@torch.no_grad()
def explain(
    env: ReasoningEnv, actor: ProofActor, query: tuple[int, int, int], *, beam: int, depth: int
) -> Explanation | None:
    """The most probable proof within a beam, or None if there is none.

    Args:
        env: whose facts and rules may be used; the query itself is not among them.
        actor: leads the search.
        query: ids of a ground atom.
        beam: goals that are kept after each step.
        depth: most steps.
    """
    asked = torch.tensor([query], device=env.device)
    states = dynamics.start(asked, max_atoms=env.config.max_atoms)
    reached = torch.zeros(1, dtype=torch.float64, device=env.device)
    trail: list[tuple[Tensor, Tensor, Tensor]] = []
    best: tuple[float, list[int], list[float]] | None = None
    expanded = 0
    for _ in range(depth):
        expanded += len(states)
        queries = asked.expand(len(states), 3)
        found = env.successors.of(states, queries, counted=True)
        chance = actor.decide(decision(states, queries, found)).logits.double()
        total = reached[found.owner] + chance
        after = dynamics.settled(found.successors, env.ends)
        trail.append((found.owner, found.origin, chance))
        proved = (after[:, 0, 0] == env.ends.true).nonzero().squeeze(1)
        if len(proved):
            row = int(proved[total[proved].argmax()])
            if best is None or float(total[row]) > best[0]:
                best = (float(total[row]), *_back(trail, row))
        alive = (~dynamics.is_over(after, env.ends)).nonzero().squeeze(1)
        alive = alive[total[alive].argsort(descending=True)[:beam]]
        if best is not None:
            alive = alive[total[alive] > best[0]]
        if not len(alive):
            break
        states, reached = after[alive], total[alive]
        trail[-1] = tuple(part[alive] for part in trail[-1])  # type: ignore[assignment]
    if best is None:
        return None
    return Explanation(derive(env.dataset, query, best[1]), tuple(best[2]), expanded)


def _back(trail: list[tuple[Tensor, Tensor, Tensor]], row: int) -> tuple[list[int], list[float]]:
    """Clauses and probabilities from the query to a row of the last step."""
    origins: list[int] = []
    chances: list[float] = []
    for owner, origin, chance in reversed(trail):
        origins.insert(0, int(origin[row]))
        chances.insert(0, float(chance[row].exp()))
        row = int(owner[row])
    return origins, chances
