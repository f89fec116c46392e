"""Baseline policies without learning: random, shortest goal, and random without giving up."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.policy import Policy
from edgewise.systems.reasoning.engine.expand import Expansion
from edgewise.systems.reasoning.env import ReasoningEnv


def random_choice(env: ReasoningEnv) -> Policy:
    """Return a policy that chooses a uniformly random successor."""
    return env.rand_action


def shortest_goal(env: ReasoningEnv) -> Policy:
    """Return a policy that chooses the successor with the fewest atoms, then the fewest free arguments.

    It gives up only if there is no other successor.
    """

    def policy(tensordict: TensorDict) -> TensorDict:
        found = env.expanded(tensordict["goal"])
        return tensordict.set("action", _argmin(_remaining(env, found.successors), found))

    return policy


def persistent(env: ReasoningEnv) -> Policy:
    """Return a policy that chooses a random successor, and gives up only if there is no other."""

    def policy(tensordict: TensorDict) -> TensorDict:
        found = env.expanded(tensordict["goal"])
        ends = _gives_up(env, found.successors)
        chance = torch.rand(len(found.owner), device=found.owner.device)
        return tensordict.set("action", _argmin(chance + 2.0 * ends, found))

    return policy


def _remaining(env: ReasoningEnv, goals: Tensor) -> Tensor:
    """Score goals `[N, A, 3]` by what is left to prove, `[N]`: 0 for a proof, at least 100 for a failure."""
    predicate = goals[..., 0]
    atoms = ((predicate > 0) & (predicate <= env.ends.num_predicates)).sum(-1)
    free = (goals[..., 1:] > env.dataset.vocabulary.num_entities).sum((-1, -2))
    return atoms + free / (1 + 2 * goals.shape[1]) + 100.0 * _gives_up(env, goals)


def _gives_up(env: ReasoningEnv, goals: Tensor) -> Tensor:
    first = goals[:, 0, 0]
    return (first == env.ends.false) | (first == env.ends.end_false)


def _argmin(score: Tensor, found: Expansion) -> Tensor:
    """Return the place of the lowest score `[N]` among the successors of each goal, `[B]`; first on ties."""
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
