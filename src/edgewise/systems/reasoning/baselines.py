"""Provers that need no learning: by chance, by the shortest goal, and one that never gives up."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.policy import Policy
from edgewise.systems.reasoning.engine.expand import Expansion
from edgewise.systems.reasoning.env import ReasoningEnv


def random_choice(env: ReasoningEnv) -> Policy:
    """Any successor, all alike."""
    return env.rand_action


def shortest_goal(env: ReasoningEnv) -> Policy:
    """What leaves the fewest atoms, then the fewest free arguments; gives up only where all else failed."""

    def policy(tensordict: TensorDict) -> TensorDict:
        found = env.expanded(tensordict["goal"])
        return tensordict.set("action", _least(_burden(env, found.successors), found))

    return policy


def persistent(env: ReasoningEnv) -> Policy:
    """Any successor that does not end the proof as failed, as long as there is one."""

    def policy(tensordict: TensorDict) -> TensorDict:
        found = env.expanded(tensordict["goal"])
        ends = _gives_up(env, found.successors)
        chance = torch.rand(len(found.owner), device=found.owner.device)
        return tensordict.set("action", _least(chance + 2.0 * ends, found))

    return policy


def _burden(env: ReasoningEnv, goals: Tensor) -> Tensor:
    """What is left to prove of goals `[N, A, 3]`, a proof 0 and a failure more than anything, `[N]`."""
    predicate = goals[..., 0]
    atoms = ((predicate > 0) & (predicate <= env.ends.num_predicates)).sum(-1)
    free = (goals[..., 1:] > env.dataset.vocabulary.num_entities).sum((-1, -2))
    return atoms + free / (1 + 2 * goals.shape[1]) + 100.0 * _gives_up(env, goals)


def _gives_up(env: ReasoningEnv, goals: Tensor) -> Tensor:
    first = goals[:, 0, 0]
    return (first == env.ends.false) | (first == env.ends.end_false)


def _least(score: Tensor, found: Expansion) -> Tensor:
    """The place of the least score `[N]` among the successors of each goal, the first of equals, `[B]`."""
    goals = len(found.offsets) - 1
    owner = found.owner.clamp(max=goals - 1)
    score = torch.where(found.owner < goals, score, torch.inf)
    least = torch.full((goals,), torch.inf, device=score.device).scatter_reduce(0, owner, score, "amin")
    place = torch.where(score == least[owner], found.place, len(owner))
    first = torch.full((goals,), len(owner), device=score.device)
    return first.scatter_reduce(0, owner, place, "amin")


BASELINES: Mapping[str, Callable[[ReasoningEnv], Policy]] = {
    "random": random_choice,
    "shortest_goal": shortest_goal,
    "persistent": persistent,
}
