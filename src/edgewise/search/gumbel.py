"""Tree search that improves a policy with few simulations: Gumbel root selection and sequential halving.

The root samples the best actions of the prior without replacement (Gumbel top-k) and spends its simulations
on them in rounds; after each round the worse half is dropped. Below the root, actions are followed in
proportion to the improved policy. With exact values, the played action is in expectation at least as good as
one of the prior, also with two simulations. Danihelka et al., ICLR 2022,
https://openreview.net/forum?id=bERaNdoegnO.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.envs.base import GraphEnv
from edgewise.models.distributions.masked import gumbel_like
from edgewise.scale.devices import constant
from edgewise.search.tree import Evaluator, Tree, TreeSearch

SEARCH_POLICY, SEARCH_VALUE = "search_policy", "search_value"
VISIT_OFFSET, VALUE_SCALE = 50.0, 1.0
"""Constants of the transform of values to logits: c_visit and c_scale of the paper."""
ROUNDING = 1e-4
"""Differences of values below this share of them count as rounding."""
SMALLEST = 1e-9
"""Smallest prior probability of a legal action."""


class GumbelSearch(TreeSearch):
    """A policy that improves the evaluator's prior by search.

    Args:
        env: see `TreeSearch`.
        evaluator: gives priors and values of states; in games, values are in [-1, 1].
        simulations: number of simulations per decision.
        considered: largest number of actions that the root tries.
        value_scale: how much values count against the prior: logits of the improved policy are those of the
            prior plus `(VISIT_OFFSET + most visits of an action) * value_scale * value`. With one player,
            values at each node are scaled to [0, 1] for this, since returns may have any range.
        noise: random generator of the Gumbel noise, to explore; None to play the best action.

    Example:
        With `env`, a two-player environment of 4 worlds and 9 actions:

        >>> uniform = lambda root: (torch.ones_like(root["action_mask"]) / 9, torch.zeros(len(root)))
        >>> GumbelSearch(env, uniform, simulations=8)(env.reset())["search_policy"].shape
        torch.Size([4, 9])
    """

    def __init__(
        self,
        env: GraphEnv[Any],
        evaluator: Evaluator,
        *,
        simulations: int,
        considered: int = 16,
        value_scale: float = VALUE_SCALE,
        noise: torch.Generator | None = None,
    ) -> None:
        super().__init__(env, evaluator, simulations=simulations)
        if considered < 1:
            raise ValueError(f"considered must be at least 1, got {considered}")
        self.considered, self.value_scale, self.noise = considered, value_scale, noise

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`, the improved policy `search_policy` `[B, A]`, and `search_value` `[B]`.

        The action is the best of those with the most visits; the value is that of the improved policy, in the
        mover's view.
        """
        tree = self.search(tensordict["state"])
        root = torch.zeros_like(tree.row)
        visits = tree.visits[:, 0]
        logits, q_value = self.improve(tree, root)
        policy = logits.softmax(-1)
        tensordict.set("action", self._best(logits, visits == visits.amax(-1, keepdim=True)))
        tensordict.set(SEARCH_POLICY, policy)
        return tensordict.set(SEARCH_VALUE, (policy * q_value).sum(-1))

    def prepare(self, tree: Tree) -> None:
        """Sample the noise of the roots and look up the order of their simulations."""
        legal = tree.prior[:, 0] >= 0
        self._gumbel = torch.zeros_like(tree.prior[:, 0])
        if self.noise is not None:
            self._gumbel = gumbel_like(self._gumbel, self.noise)
        plans = constant(halving_plans(self.considered, self.simulations), legal)
        self._plan = plans[legal.sum(-1).clamp(max=self.considered)]

    def choose_at_root(self, tree: Tree, simulation: int) -> Tensor:
        """Return the best action among those with the number of visits that the plan asks for, `[B]`."""
        logits, _ = self.improve(tree, torch.zeros_like(tree.row))
        return self._best(logits, tree.visits[:, 0] == self._plan[:, simulation].unsqueeze(-1))

    def choose(self, tree: Tree, node: Tensor) -> Tensor:
        """Return the action whose share of visits is furthest below the improved policy, `[B]`."""
        logits, _ = self.improve(tree, node)
        visits = tree.visits[tree.row, node]
        share = visits / (1 + visits.sum(-1, keepdim=True))
        return (logits.softmax(-1) - share).masked_fill(logits == -torch.inf, -torch.inf).argmax(-1)

    def improve(self, tree: Tree, node: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the logits of the improved policy and the values of actions, `[B, A]`, at `node` `[B]`.

        Unvisited actions have the value of the node: the evaluator's own, mixed with the values of visited
        actions, weighted by their prior.
        """
        prior, visits = tree.prior[tree.row, node], tree.visits[tree.row, node]
        legal, visited = prior >= 0, visits > 0
        prior = prior.clamp(min=SMALLEST)
        q_value = tree.total[tree.row, node] / visits.clamp(min=1)
        weight = (prior * visited).sum(-1)
        mean = (prior * visited * q_value).sum(-1) / weight.clamp(min=SMALLEST)
        count = visits.sum(-1)
        value = (tree.value_of_mover(node) + count * mean) / (1 + count)
        completed = torch.where(visited, q_value, value.unsqueeze(-1))
        counted = completed if "player" in tree.state else scaled(completed, legal)
        scale = (VISIT_OFFSET + visits.amax(-1, keepdim=True)) * self.value_scale
        return (prior.log() + scale * counted).masked_fill(~legal, -torch.inf), completed

    def _best(self, logits: Tensor, allowed: Tensor) -> Tensor:
        return (logits + self._gumbel).masked_fill(~allowed, -torch.inf).argmax(-1)


def scaled(values: Tensor, legal: Tensor) -> Tensor:
    """Scale the values `[B, A]` of legal actions to [0, 1]; about 0 if they are equal up to rounding.

    Example:
        >>> scaled(torch.tensor([[-9.0, -5.0, -7.0]]), torch.tensor([[True, False, True]]))
        tensor([[0., 2., 1.]])
    """
    lowest = values.masked_fill(~legal, torch.inf).amin(-1, keepdim=True)
    highest = values.masked_fill(~legal, -torch.inf).amax(-1, keepdim=True)
    rounding = ROUNDING * torch.maximum(lowest.abs(), highest.abs())
    return (values - lowest) / torch.maximum(highest - lowest, rounding.clamp(min=SMALLEST))


@cache
def halving_plans(considered: int, simulations: int) -> tuple[tuple[int, ...], ...]:
    """Return for 0 to `considered` actions which number of visits an action must have at each simulation.

    Sequential halving visits all actions equally often in a round. So the action of a simulation is the best
    of those that have had a certain number of visits, and those that were dropped have had fewer.

    Example:
        >>> halving_plans(4, 8)[4]
        (0, 0, 0, 0, 1, 1, 2, 2)
    """
    return tuple(_halving_plan(actions, simulations) for actions in range(considered + 1))


def _halving_plan(actions: int, simulations: int) -> tuple[int, ...]:
    if actions <= 1:
        return tuple(range(simulations))
    rounds, left, done = math.ceil(math.log2(actions)), actions, 0
    plan: list[int] = []
    while len(plan) < simulations:
        for _ in range(max(1, simulations // (rounds * left))):
            plan += [done] * left
            done += 1
        left = max(2, left // 2)
    return tuple(plan[:simulations])
