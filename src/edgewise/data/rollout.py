"""Collect rollouts: run a policy in a batched environment for a fixed number of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torchrl.envs import EnvBase, ExplorationType, set_exploration_type

from edgewise.envs.policy import Policy
from edgewise.graphs.keys import RECURRENT, STATE
from edgewise.graphs.ragged import Ragged, pack, pays


class Rollout:
    """Collects consecutive batches of a policy in an environment.

    The root of a batch has the observations and everything that the policy wrote. `next` has the reward, the
    flags and the next observation; at the end of an episode this is its last observation, not that after the
    reset. The policy explores, without gradients and with its modules in evaluation mode (no dropout).

    The memory of a batch is reused: a batch is valid until the next `collect`. Clone it to keep it longer.
    Where two thirds of the slots of graphs are empty at the beginning, batches do not store empty slots,
    see `graphs/ragged.py`.

    Args:
        env: an environment of batch size `[B]`. Its `state_dict` decides whether a rollout can be resumed.
        policy: takes the root TensorDict and sets `action` and any entries to keep.
        rollout_length: T, steps of every world in a batch.
        keep_state: whether batches keep the simulator's `state`, which no model reads.

    Example:
        >>> import edgewise as ew
        >>> from edgewise.data.random_policy import RandomPolicy
        >>> env = ew.make_env("graphwalk", num_envs=64)
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
        self._packs: bool | None = None

    @property
    def frames(self) -> int:
        """The number of environment steps in a batch, `B * T`."""
        return int(self.env.batch_size.numel()) * self.rollout_length

    def collect(self) -> TensorDictBase:
        """Collect the next T steps of every world, `[B, T]`."""
        steps = []
        with acting(self.policy):
            root = self.env.reset() if self._carried is None else self._carried
            if self._packs is None:
                self._packs = pays(root)
            before: TensorDictBase | None = None
            for _ in range(self.rollout_length):
                step, root = self.env.step_and_maybe_reset(self.policy(root))
                if RECURRENT in root:
                    reset_hidden_state(root, step["next", "done"])
                kept = step.exclude(*self._dropped)
                if self._packs:
                    kept = self._packed(kept, before)
                    before = None if bool(kept["next", "done"].any()) else kept.get("next")
                steps.append(kept)
            self._carried = root.select(*self._carried_names, RECURRENT, strict=False)
            if self._packs:
                return TensorDict.stack(steps, -1)
            self._storage = TensorDict.stack(steps, -1, out=self._storage)
        return self._storage.copy()

    def _packed(self, step: TensorDictBase, before: TensorDictBase | None) -> TensorDictBase:
        """Return a step without the empty slots of its graphs.

        Args:
            step: of all worlds.
            before: the packed `next` of the step before, if no world began anew after it.
        """
        layout = getattr(self.env, "actions", None)
        if before is None:
            packed = pack(step, layout)
        else:
            packed = step.copy()
            for key, value in before.items(include_nested=True, leaves_only=True):
                if isinstance(value, Ragged):
                    packed.set(key, value)
        return packed.set("next", pack(step.get("next"), layout))

    def state_dict(self) -> dict[str, Any]:
        """Return the current observations of all worlds and the environment's state."""
        carried = {} if self._carried is None else self._carried.to_dict()
        return {"carried": carried, "env": self.env.state_dict(), "packs": bool(self._packs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; the next batch is then bit-equal to that of the saved rollout."""
        self.env.load_state_dict(state["env"])
        self._carried, self._packs = None, None
        if state["carried"]:
            self._packs = state.get("packs", False)
            size, device = self.env.batch_size, self.env.device
            self._carried = TensorDict(state["carried"], batch_size=size, device=device).clone()


def reset_hidden_state(root: TensorDictBase, done: Tensor) -> None:
    """Set the hidden states of recurrent models to zero in worlds that were reset.

    Args:
        root: the next root, changed in place.
        done: `[*B, 1]` bool, the worlds whose episode ended with the last step.
    """
    hidden = root.get(RECURRENT, None)
    if hidden is not None:
        root.set(RECURRENT, hidden.apply(lambda each: each.masked_fill(done.unsqueeze(-1), 0.0)))


@contextmanager
def acting(policy: Policy, *, mode: ExplorationType = ExplorationType.RANDOM) -> Iterator[None]:
    """Run a policy without gradients and with its modules in evaluation mode; it explores by default."""
    modules = list(policy.modules()) if isinstance(policy, nn.Module) else []
    training = [module for module in modules if module.training]
    for module in training:
        module.training = False
    try:
        with torch.no_grad(), set_exploration_type(mode):
            yield
    finally:
        for module in training:
            module.training = True
