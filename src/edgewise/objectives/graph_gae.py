"""Advantages for critics that read graphs: one forward over a rollout, no vmap, no loop over graphs.

The state after a step is the state before the next one, unless an episode or the rollout ends there. So the
critic sees every root once and, besides, only the next-states that bootstrap and are found nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from tensordict.utils import NestedKey
from torch import Tensor
from torchrl.objectives.utils import hold_out_net
from torchrl.objectives.value import ValueEstimatorBase

from edgewise.objectives.alignment import fit, of_agents
from edgewise.objectives.average_reward import AverageReward
from edgewise.objectives.boundaries import needed_next, next_positions
from edgewise.objectives.masked import masked_mean, standardise
from edgewise.objectives.returns import generalized_advantage, two_player_advantage

CHUNK_ON_CPU, CHUNK_ELSEWHERE = 256, 8192


class GraphGAE(ValueEstimatorBase):
    """Generalised advantage estimation that calls a graph critic once; a drop-in for TorchRL's `GAE`.

    Reads a rollout with batch `[*B, T]` (or time elsewhere, see `time_dim`) and writes `advantage`,
    `value_target` and the critic's own `state_value`, all in the shape of the critic's output: `[*B, T, 1]`
    or `[*B, T]` with one value per graph, `[*B, T, A, 1]` with one per agent. Rewards and ends broadcast to
    it. Agents may differ from their world: a step counts only where `("agents", "active")` is true, elsewhere
    its advantage is zero; and where `("next", "agents", "terminated")` is true an agent has ended though its
    world goes on. Keys are set with `set_keys`.

    Args:
        gamma: discount.
        lmbda: trace decay λ.
        value_network: the critic, a TensorDict module; None to use the values in `state_value` and
            `("next", "state_value")`.
        average_gae: whether to standardise the advantages, over active agents where agents act.
        differentiable: whether gradients flow through the values to the critic's inputs, as in TorchRL; its
            parameters and next values never receive any.
        time_dim: the batch dimension that is time; by default the one named "time", else the last.
        value_chunk_size: most graphs in one call of the critic, which bounds memory and changes results by
            rounding alone. None for 256 on a CPU, where larger calls fall out of its caches and can take
            three times as long, and 8,192 elsewhere.
        two_player: whether `player` says who is to move, and rewards and values are in the mover's view.
        value_transform: applied to the critic's output before it is used, such as `ValueNorm.denormalise`.
        boundary_budget: None finds the boundaries that need a next value by index, which costs one
            synchronisation with a GPU in each call; where sizes cannot depend on data (fake tensors,
            compilation) all next-states are evaluated instead. A number K keeps sizes fixed and never
            synchronises: the last step of each row and up to K truncations within it are evaluated, and
            advantages that would need one more are NaN, never silently wrong. With a time limit of L steps,
            `K = T // L + 1` is always enough.
        average_reward: for tasks that never end, with a discount of 1: is brought up to date with every
            rollout, and rewards count as far as they exceed it. Values are then relative, and targets are
            shifted so that the values of a rollout have mean 0.
        device: ignored; the tensors at hand decide.

    Example:
        >>> from tensordict import TensorDict
        >>> from tensordict.nn import TensorDictModule
        >>> critic = TensorDictModule(torch.nn.Linear(3, 1), in_keys=["x"], out_keys=["state_value"])
        >>> flags = torch.zeros(8, 32, 1, dtype=torch.bool)
        >>> following = {"x": torch.randn(8, 32, 3), "reward": torch.ones(8, 32, 1), "done": flags}
        >>> rollout = TensorDict({"x": torch.randn(8, 32, 3), "next": following}, [8, 32])
        >>> GraphGAE(gamma=0.99, lmbda=0.95, value_network=critic)(rollout)["advantage"].shape
        torch.Size([8, 32, 1])
    """

    @dataclass
    class _AcceptedKeys(ValueEstimatorBase._AcceptedKeys):
        advantage: NestedKey = "advantage"
        value_target: NestedKey = "value_target"
        value: NestedKey = "state_value"
        reward: NestedKey = "reward"
        done: NestedKey = "done"
        terminated: NestedKey = "terminated"
        steps_to_next_obs: NestedKey = "steps_to_next_obs"
        sample_log_prob: NestedKey | None = None
        player: NestedKey = "player"
        active: NestedKey = ("agents", "active")
        agent_terminated: NestedKey = ("agents", "terminated")

    default_keys = _AcceptedKeys

    def __init__(
        self,
        *,
        gamma: float,
        lmbda: float,
        value_network: TensorDictModuleBase | None,
        average_gae: bool = False,
        differentiable: bool = False,
        time_dim: int | None = None,
        value_chunk_size: int | None = None,
        two_player: bool = False,
        value_transform: Callable[[Tensor], Tensor] | None = None,
        boundary_budget: int | None = None,
        average_reward: AverageReward | None = None,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(
            value_network=value_network,
            differentiable=differentiable,
            value_chunk_size=value_chunk_size,
            deactivate_vmap=True,
            device=device,
        )
        if boundary_budget is not None and boundary_budget < 0:
            raise ValueError(f"boundary_budget must not be negative, got {boundary_budget}")
        if average_reward is not None and (gamma != 1.0 or two_player):
            raise ValueError(f"an average reward goes with gamma=1 and one player, got gamma={gamma}")
        self.gamma, self.lmbda = float(gamma), float(lmbda)
        self.average_gae, self.two_player = average_gae, two_player
        self.time_dim, self.boundary_budget = time_dim, boundary_budget
        self.__dict__["value_transform"] = value_transform
        self.__dict__["average_reward"] = average_reward

    def forward(
        self,
        tensordict: TensorDictBase,
        *,
        params: TensorDictBase | None = None,
        target_params: TensorDictBase | None = None,
        time_dim: int | None = None,
    ) -> TensorDictBase:
        """Write advantages and value targets into `tensordict` and return it.

        Args:
            tensordict: a rollout, batch `[*B, T]`.
            params: parameters to use in place of the critic's own.
            target_params: parameters for next values, where they differ from `params`.
            time_dim: overrides the constructor's.
        """
        with torch.set_grad_enabled(self.differentiable and torch.is_grad_enabled()):
            return self._estimate(tensordict, params, target_params, self._time(tensordict, time_dim))

    def value_estimate(
        self,
        tensordict: TensorDictBase,
        params: TensorDictBase | None = None,
        target_params: TensorDictBase | None = None,
        time_dim: int | None = None,
    ) -> Tensor:
        """The value targets alone; `tensordict` is left as it is."""
        written = self.forward(
            tensordict.copy(), params=params, target_params=target_params, time_dim=time_dim
        )
        return written.get(self.tensor_keys.value_target)

    def _time(self, tensordict: TensorDictBase, time_dim: int | None) -> int:
        if tensordict.batch_dims < 1:
            raise ValueError("a rollout needs a time dimension, but the TensorDict has batch size []")
        if tensordict.get(self.tensor_keys.steps_to_next_obs, None) is not None:
            raise ValueError(
                "GraphGAE reads the value after a step off the step that follows, but in an n-step batch "
                "('steps_to_next_obs' is set) another one follows: give it the rollout itself"
            )
        return self._get_time_dim(time_dim, tensordict)

    def _estimate(
        self,
        tensordict: TensorDictBase,
        params: TensorDictBase | None,
        target_params: TensorDictBase | None,
        time_dim: int,
    ) -> TensorDictBase:
        keys, following = self.tensor_keys, tensordict.get("next")
        done = _required(following, keys.done)
        terminated = following.get(keys.terminated, done)
        if self.value_network is None:
            value, next_value = _required(tensordict, keys.value), _required(following, keys.value)
        else:
            needed = needed_next(done, terminated, batch_dims=tensordict.batch_dims, time_dim=time_dim)
            value, next_value = self._values(tensordict, needed, time_dim, params, target_params)
        tensordict.set(keys.value, value)
        if self.value_transform is not None:
            value, next_value = self.value_transform(value), self.value_transform(next_value)
        advantage = self._recurse(tensordict, value, next_value.detach(), done, terminated, time_dim)
        active = of_agents(tensordict.get(keys.active, None), value, batch_dims=tensordict.batch_dims)
        level = 0.0 if self.average_reward is None else masked_mean(value, active)
        tensordict.set(keys.value_target, advantage + value - level)
        if self.average_gae:
            advantage = standardise(advantage, active)
        tensordict.set(keys.advantage, advantage)
        return tensordict

    def _recurse(
        self,
        tensordict: TensorDictBase,
        value: Tensor,
        next_value: Tensor,
        done: Tensor,
        terminated: Tensor,
        time_dim: int,
    ) -> Tensor:
        """Advantages in the shape of `value`; an inactive agent's are zero and cut the trace before."""
        keys, lead, following = self.tensor_keys, tensordict.batch_dims, tensordict.get("next")
        reward = fit(_required(following, keys.reward), value, batch_dims=lead, name="reward").to(value.dtype)
        done = fit(done, value, batch_dims=lead, name="done")
        terminated = fit(terminated, value, batch_dims=lead, name="terminated")
        gone = of_agents(following.get(keys.agent_terminated, None), value, batch_dims=lead)
        if gone is not None:
            terminated = terminated | gone
        active = of_agents(tensordict.get(keys.active, None), value, batch_dims=lead)
        if active is not None:
            reward, value = reward.masked_fill(~active, 0.0), value.masked_fill(~active, 0.0)
            next_value, done = next_value.masked_fill(~active, 0.0), done | ~active
        if self.average_reward is not None:
            after = next_value.masked_fill(terminated, 0.0)
            self.average_reward.update(reward, value=value, next_value=after, mask=active)
            reward = reward - self.average_reward.mean
        if not self.two_player:
            return generalized_advantage(
                reward,
                value,
                next_value=next_value,
                done=done,
                terminated=terminated,
                gamma=self.gamma,
                lmbda=self.lmbda,
                time_dim=time_dim,
            )[0]
        return two_player_advantage(
            reward,
            value,
            next_value=next_value,
            player=fit(_required(tensordict, keys.player), value, batch_dims=lead, name="player"),
            next_player=fit(_required(following, keys.player), value, batch_dims=lead, name="next player"),
            done=done,
            terminated=terminated,
            gamma=self.gamma,
            lmbda=self.lmbda,
            time_dim=time_dim,
        )[0]

    def _values(
        self,
        tensordict: TensorDictBase,
        needed: Tensor,
        time_dim: int,
        params: TensorDictBase | None,
        target_params: TensorDictBase | None,
    ) -> tuple[Tensor, Tensor]:
        """Values of the states before and after every step, each `[*B, T, ...]`."""
        inputs, shape = self.value_network.in_keys, tensordict.batch_size
        positions = next_positions(needed, time_dim=time_dim, budget=self.boundary_budget)
        roots = tensordict.select(*inputs, strict=False).reshape(-1)
        ahead = tensordict.get("next").select(*inputs, strict=False).reshape(-1)
        both = torch.cat([roots, ahead if positions is None else ahead[positions]])
        later = self._call(both, params if target_params is None else target_params)
        same = target_params is None or _same_weights(params, target_params)
        value = later[: roots.shape[0]] if same else self._call(roots, params)
        later, beyond = later[: roots.shape[0]], later[roots.shape[0] :]
        if positions is None:
            return value.unflatten(0, shape), beyond.unflatten(0, shape)
        later = later.unflatten(0, shape).roll(-1, time_dim).flatten(0, len(shape) - 1)
        next_value = later.index_copy(0, positions, beyond)
        if self.boundary_budget is not None:
            missed = needed.reshape(-1).index_fill(0, positions, False)
            next_value = next_value.masked_fill(missed.view(-1, *[1] * (next_value.ndim - 1)), torch.nan)
        return value.unflatten(0, shape), next_value.unflatten(0, shape)

    def _call(self, states: TensorDictBase, params: TensorDictBase | None) -> Tensor:
        """The critic's output on a flat batch of states, chunk by chunk."""
        on_cpu = next(states.values(include_nested=True, leaves_only=True)).device.type == "cpu"
        size = self.value_chunk_size or (CHUNK_ON_CPU if on_cpu else CHUNK_ELSEWHERE)
        with self._parameters_in_place(params):
            values = [self.value_network(part).get(self.tensor_keys.value) for part in states.split(size)]
        return values[0] if len(values) == 1 else torch.cat(values)

    def _parameters_in_place(self, params: TensorDictBase | None) -> AbstractContextManager[Any]:
        if params is not None:
            return params.detach().to_module(self.value_network, preserve_module_state=False)
        return hold_out_net(self.value_network) if torch.is_grad_enabled() else nullcontext()


def _same_weights(params: TensorDictBase | None, target_params: TensorDictBase) -> bool:
    """Whether both are the same memory, which is what a loss without target networks hands over."""
    if params is None:
        return False
    ours = dict(params.items(include_nested=True, leaves_only=True))
    theirs = dict(target_params.items(include_nested=True, leaves_only=True))
    return ours.keys() == theirs.keys() and all(ours[key].is_set_to(theirs[key]) for key in ours)


def _required(tensordict: TensorDictBase, key: NestedKey) -> Tensor:
    tensor = tensordict.get(key, None)
    if tensor is None:
        raise KeyError(
            f"advantages need the entry {key!r}, but there are only {sorted(map(str, tensordict.keys()))}"
        )
    return tensor
