"""Collecting: a policy plays in an environment, and what happened comes back as one batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torchrl.envs import EnvBase, ExplorationType, set_exploration_type

from edgewise.graphs.keys import RECURRENT, STATE
from edgewise.graphs.policy import Policy


class Rollout:
    """Plays a policy in an environment, portion after portion, each going on where the one before ended.

    A batch has what the policy saw and wrote at its root and what followed under `next`: the reward, the
    flags and the observation, which for a world that ended is its last, not the first of its successor.
    The policy runs without gradients, exploring, with its modules in evaluation mode (no dropout).

    Storage is taken once and used again: a batch holds until the next `collect`. Clone what should live on.

    Args:
        env: an environment of batch size `[B]`. What it saves of itself decides whether a rollout resumes.
        policy: takes the root TensorDict and sets `action` and whatever else should be kept.
        rollout_length: T, steps of every world in a batch.
        keep_state: whether batches hold the simulator's `state`, which no model reads.

    Example:
        >>> rollout = Rollout(env, RandomPolicy(env.actions, env.graph), rollout_length=16)
        >>> rollout.collect().batch_size
        torch.Size([64, 16])
    """

    def __init__(
        self, env: EnvBase, policy: Policy, *, rollout_length: int, keep_state: bool = False
    ) -> None:
        if rollout_length < 1:
            raise ValueError(f"rollout_length must be at least 1, got {rollout_length}")
        self.env, self.policy, self.rollout_length = env, policy, rollout_length
        self._dropped = () if keep_state else (STATE, ("next", STATE))
        self._carried_names = (*env.full_observation_spec.keys(), *env.full_done_spec.keys())
        self._carried: TensorDictBase | None = None
        self._storage: TensorDictBase | None = None

    @property
    def frames(self) -> int:
        """Steps of single worlds in one batch, `B * T`."""
        return int(self.env.batch_size.numel()) * self.rollout_length

    def collect(self) -> TensorDictBase:
        """The next T steps of every world, `[B, T]`."""
        played = []
        with _acting(self.policy):
            root = self.env.reset() if self._carried is None else self._carried
            for _ in range(self.rollout_length):
                step, root = self.env.step_and_maybe_reset(self.policy(root))
                forget(root, step["next", "done"])
                played.append(step.exclude(*self._dropped))
            self._carried = root.select(*self._carried_names, RECURRENT, strict=False)
            self._storage = TensorDict.stack(played, -1, out=self._storage)
        return self._storage.copy()

    def state_dict(self) -> dict[str, Any]:
        """What is under way: the worlds as they stand, and the environment's own state."""
        carried = {} if self._carried is None else self._carried.to_dict()
        return {"carried": carried, "env": self.env.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on, bit for bit, as the rollout that gave `state` would have."""
        self.env.load_state_dict(state["env"])
        self._carried = None
        if state["carried"]:
            size, device = self.env.batch_size, self.env.device
            self._carried = TensorDict(state["carried"], batch_size=size, device=device).clone()


def forget(root: TensorDictBase, done: Tensor) -> None:
    """Clear what agents remember, where there is such an entry, in the worlds that have just begun anew.

    Args:
        root: the next root, changed in place.
        done: which worlds ended with the step before, `[*B, 1]` bool.
    """
    memory = root.get(RECURRENT, None)
    if memory is not None:
        root.set(RECURRENT, memory.apply(lambda each: each.masked_fill(done.unsqueeze(-1), 0.0)))


@contextmanager
def _acting(policy: Policy) -> Iterator[None]:
    """Without gradients, exploring, and with all modules of the policy in evaluation mode until the end."""
    modules = list(policy.modules()) if isinstance(policy, nn.Module) else []
    training = [module for module in modules if module.training]
    for module in training:
        module.training = False
    try:
        with torch.no_grad(), set_exploration_type(ExplorationType.RANDOM):
            yield
    finally:
        for module in training:
            module.training = True
