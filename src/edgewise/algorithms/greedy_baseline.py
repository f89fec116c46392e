"""The greedy-rollout baseline of REINFORCE (https://arxiv.org/abs/1803.08475)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from scipy import stats
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs import ExplorationType

from edgewise.algorithms.config import ReinforceConfig
from edgewise.algorithms.state import load_module_state, module_state
from edgewise.data.episodes import World, play_episodes
from edgewise.data.rollout import acting
from edgewise.envs.policy import encode_once
from edgewise.graphs.keys import ACTIVE
from edgewise.models.actor_critic import Actor
from edgewise.objectives.episodes import episode_returns
from edgewise.scale.processes.group import ALONE, Group


class GreedyBaseline:
    """Returns of a frozen copy of the policy that acts by its mode.

    Every `challenge_every` batches, policy and copy play the same new instances by their modes. If a paired
    one-sided t-test finds the policy better, it replaces the copy.

    Args:
        actor: the policy that learns.
        config: see `ReinforceConfig`.
        group: the processes that learn together; each plays its share of the new instances.
    """

    def __init__(self, actor: Actor, config: ReinforceConfig, *, group: Group = ALONE) -> None:
        self.actor, self.config, self._group = actor, config, group
        self.frozen = deepcopy(actor).requires_grad_(False)
        self._batches, self._replaced = 0, 0
        self._p_value: float | None = None

    def __call__(self, env: World, root: TensorDictBase) -> Tensor:
        """Return the discounted returns of the copy from every root, `[I]`, or `[I, A]` if agents act."""
        return self._returns(env, self.frozen, root)

    def update(self, env: World) -> None:
        """Count a batch, and let the policy challenge its copy if it is time."""
        self._batches += 1
        if self._batches % self.config.challenge_every:
            return
        count = -(-self.config.challenge_instances // self._group.size)
        root = torch.cat([env.reset() for _ in range(-(-count // env.num_envs))])[:count]
        new, old = (_team(self._returns(env, one, root)) for one in (self.actor, self.frozen))
        found = self._group.gather([new.tolist(), old.tolist()])
        ours, theirs = ([each for one in found for each in one[side]] for side in (0, 1))
        if ours == theirs:
            return
        self._p_value = float(stats.ttest_rel(ours, theirs, alternative="greater").pvalue)
        if self._p_value < self.config.significance:
            load_module_state(self.frozen, module_state(self.actor), name="baseline")
            self._replaced += 1

    def _returns(self, env: World, actor: Actor, root: TensorDictBase) -> Tensor:
        with acting(actor, mode=ExplorationType.DETERMINISTIC):
            policy, root = encode_once(actor, root)
            steps, counted = play_episodes(env, policy, root, longest=self.config.longest_episode)
            played = steps[counted]
        returns, _ = episode_returns(
            played["next", "reward"].squeeze(-1),
            played["next", "done"].squeeze(-1),
            active=played.get(ACTIVE, None),
            gamma=self.config.gamma,
        )
        return returns[: len(root)]

    def metrics(self) -> dict[str, float]:
        """Return how often the copy was replaced, and the p-value of the last comparison."""
        known = {} if self._p_value is None else {"p_value": self._p_value}
        return {"baselines": self._replaced, **known}

    def state_dict(self) -> dict[str, Any]:
        """Return the copy's weights and the counts."""
        return {
            "frozen": module_state(self.frozen),
            "batches": self._batches,
            "replaced": self._replaced,
            "p_value": self._p_value,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        load_module_state(self.frozen, state["frozen"], name="baseline")
        self._batches, self._replaced = int(state["batches"]), int(state["replaced"])
        self._p_value = state["p_value"]


def _team(returns: Tensor) -> Tensor:
    """Return one number per instance: the return, or its sum over agents."""
    return (returns if returns.ndim == 1 else returns.sum(-1)).double()
