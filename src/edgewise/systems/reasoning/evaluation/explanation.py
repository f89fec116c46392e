"""The most probable proof of a query under a policy, as a readable tree."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.engine.proof import Derivation, derive
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.models.proof_policy import ProofActor


@dataclass(frozen=True)
class Explanation:
    """A proof with the policy's probabilities.

    Attributes:
        derivation: goals, clauses and the tree.
        probabilities: probability of each step.
        expanded: number of expanded goals.
    """

    derivation: Derivation
    probabilities: tuple[float, ...]
    expanded: int


@torch.no_grad()
def explain(
    env: ReasoningEnv, actor: ProofActor, query: tuple[int, int, int], *, beam: int, depth: int
) -> Explanation | None:
    """Find the most probable proof within a beam; return None if there is none.

    Args:
        env: provides facts and rules; the query itself is not used as a fact.
        actor: policy that scores the steps.
        query: ids of a ground atom.
        beam: number of goals kept after each step.
        depth: maximum number of steps.
    """
    root = torch.tensor([query], device=env.device)
    states = dynamics.start(root, max_atoms=env.config.max_atoms)
    log_probability = torch.zeros(1, dtype=torch.float64, device=env.device)
    trail: list[tuple[Tensor, Tensor, Tensor]] = []
    best: tuple[float, list[int], list[float]] | None = None
    expanded = 0
    for _ in range(depth):
        expanded += len(states)
        queries = root.expand(len(states), 3)
        found = env.successors.of(states, queries, counted=True)
        step = actor.decide_in(env, states, queries, found).logits.double()
        total = log_probability[found.owner] + step
        after = dynamics.drop_assumed(found.successors, env.ends)
        trail.append((found.owner, found.origin, step))
        proved = (after[:, 0, 0] == env.ends.true).nonzero().squeeze(1)
        if len(proved):
            row = int(proved[total[proved].argmax()])
            if best is None or float(total[row]) > best[0]:
                best = (float(total[row]), *_trace_back(trail, row))
        alive = (~dynamics.is_over(after, env.ends)).nonzero().squeeze(1)
        alive = alive[total[alive].argsort(descending=True)[:beam]]
        if best is not None:
            alive = alive[total[alive] > best[0]]
        if not len(alive):
            break
        states, log_probability = after[alive], total[alive]
        trail[-1] = tuple(part[alive] for part in trail[-1])  # type: ignore[assignment]
    if best is None:
        return None
    return Explanation(derive(env.dataset, query, best[1]), tuple(best[2]), expanded)


def _trace_back(trail: list[tuple[Tensor, Tensor, Tensor]], row: int) -> tuple[list[int], list[float]]:
    """Return the clauses and probabilities from the query to a row of the last step."""
    origins: list[int] = []
    probabilities: list[float] = []
    for owner, origin, step in reversed(trail):
        origins.insert(0, int(origin[row]))
        probabilities.insert(0, float(step[row].exp()))
        row = int(owner[row])
    return origins, probabilities
