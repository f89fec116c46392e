"""Generalised advantage estimation with a graph critic: one forward pass over a rollout, without vmap.

The state after a step is the state before the next step, unless an episode or the rollout ends there. So the
critic evaluates every state once, and additionally only the next-states at these boundaries.
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

from edgewise.graphs.keys import GRAPH
from edgewise.graphs.ragged import Ragged
from edgewise.objectives.alignment import expand_agent_mask, match_log_ratio, match_shape
from edgewise.objectives.average_reward import AverageReward
from edgewise.objectives.boundaries import bootstrap_mask, bootstrap_positions
from edgewise.objectives.masked import mean_of_all, standardise
from edgewise.objectives.returns import generalized_advantage, two_player_advantage
from edgewise.objectives.vtrace import vtrace
from edgewise.scale.processes.group import ALONE, Group

NODES_ON_CPU, NODES_ELSEWHERE = 5_120, 163_840
"""Default number of node slots per call of the critic."""
NODES_PER_STATE = 20
"""Node slots that are assumed of a state without a graph."""


class GraphGAE(ValueEstimatorBase):
    """Generalised advantage estimation for graph critics; a drop-in for TorchRL's `GAE`.

    Reads a rollout with batch `[*B, T]` and writes `advantage`, `value_target` and the critic's `state_value`
    in the shape of the critic's output: `[*B, T, 1]` or `[*B, T]` with one value per graph, `[*B, T, A, 1]`
    with one value per agent. Rewards and done flags are broadcast to this shape.

    Agents may be inactive or terminate before their world does. The advantage is zero where
    `("agents", "active")` is false, and an agent's episode ends where `("next", "agents", "terminated")` is
    true. Keys are set with `set_keys`.

    If older weights made the steps, `log_ratio` is the log-probability of each decision now, minus that with
    which it was made. V-trace then corrects targets and advantages, with both of its clips at 1; where all
    log-ratios are zero they are those of GAE.

    Args:
        gamma: discount factor.
        lmbda: trace decay λ.
        value_network: the critic, a TensorDict module; None to use the values in `state_value` and
            `("next", "state_value")`.
        average_gae: whether to normalise the advantages, over active agents only.
        differentiable: whether gradients flow through the values to the critic's inputs, as in TorchRL. The
            critic's parameters and the next values never receive gradients.
        time_dim: the batch dimension of time; by default the one named "time", else the last.
        value_chunk_size: largest number of graphs per call of the critic. It bounds memory and changes
            results by rounding only. None means as many graphs as have 5,120 node slots on a CPU, where
            larger calls exceed the caches and can take three times as long, and 163,840 on other devices.
        two_player: whether `player` is the player to move, and rewards and values are from the mover's
            perspective.
        value_transform: applied to the critic's output before use, such as `ValueNorm.denormalise`.
        boundary_budget: None finds the boundaries that need a next value by index, which synchronises once
            per call on a GPU; if sizes cannot depend on data (fake tensors, compilation), all next-states are
            evaluated. A number K keeps sizes fixed and never synchronises: the last step of each row and up
            to K truncations within it are evaluated, and advantages that would need more are NaN. With a time
            limit of L steps, `K = T // L + 1` is always enough.
        reuse_values: whether `state_value` in the rollout already has the values of this critic, with these
            weights. Only the next-states at boundaries are then evaluated.
        average_reward: for continuing tasks with `gamma=1`. It is updated with every rollout and subtracted
            from the rewards. Values are then differential, and targets are shifted so that the values of a
            rollout have mean 0.
        group: processes over which means and variances are computed.
        device: ignored; the device of the inputs is used.

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
        log_ratio: NestedKey = "log_ratio"

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
        reuse_values: bool = False,
        average_reward: AverageReward | None = None,
        group: Group = ALONE,
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
            raise ValueError(
                f"average_reward needs gamma=1 and two_player=False, got gamma={gamma} and "
                f"two_player={two_player}"
            )
        self.gamma, self.lmbda = float(gamma), float(lmbda)
        self.average_gae, self.two_player = average_gae, two_player
        self.time_dim, self.boundary_budget, self.reuse_values = time_dim, boundary_budget, reuse_values
        self.__dict__["value_transform"] = value_transform
        self.__dict__["average_reward"] = average_reward
        self.__dict__["group"] = group

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
            time_dim: the dimension of time; overrides the argument of the constructor.
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
        """Return the value targets; `tensordict` is not changed."""
        written = self.forward(
            tensordict.copy(), params=params, target_params=target_params, time_dim=time_dim
        )
        return written.get(self.tensor_keys.value_target)

    def _time(self, tensordict: TensorDictBase, time_dim: int | None) -> int:
        if tensordict.batch_dims < 1:
            raise ValueError("a rollout needs a time dimension, but the TensorDict has batch size []")
        if tensordict.get(self.tensor_keys.steps_to_next_obs, None) is not None:
            raise ValueError(
                "GraphGAE takes the next value of a step from the following step, which is wrong in an "
                "n-step batch ('steps_to_next_obs' is set): pass the rollout itself"
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
            needed = bootstrap_mask(done, terminated, batch_dims=tensordict.batch_dims, time_dim=time_dim)
            value, next_value = self._values(tensordict, needed, time_dim, params, target_params)
        tensordict.set(keys.value, value)
        if self.value_transform is not None:
            value, next_value = self.value_transform(value), self.value_transform(next_value)
        advantage = self._recurse(tensordict, value, next_value.detach(), done, terminated, time_dim)
        active = expand_agent_mask(tensordict.get(keys.active, None), value, batch_dims=tensordict.batch_dims)
        level = 0.0 if self.average_reward is None else mean_of_all(value, active, group=self.group)
        tensordict.set(keys.value_target, advantage + value - level)
        if self.average_gae:
            advantage = standardise(advantage, active, group=self.group)
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
        """Compute advantages in the shape of `value`; inactive agents get zero, which also cuts the trace."""
        keys, lead, following = self.tensor_keys, tensordict.batch_dims, tensordict.get("next")
        reward = match_shape(_required(following, keys.reward), value, batch_dims=lead, name="reward")
        reward = reward.to(value.dtype)
        done = match_shape(done, value, batch_dims=lead, name="done")
        terminated = match_shape(terminated, value, batch_dims=lead, name="terminated")
        agent_terminated = expand_agent_mask(
            following.get(keys.agent_terminated, None), value, batch_dims=lead
        )
        if agent_terminated is not None:
            terminated = terminated | agent_terminated
        active = expand_agent_mask(tensordict.get(keys.active, None), value, batch_dims=lead)
        if active is not None:
            reward, value = reward.masked_fill(~active, 0.0), value.masked_fill(~active, 0.0)
            next_value, done = next_value.masked_fill(~active, 0.0), done | ~active
        if self.average_reward is not None:
            after = next_value.masked_fill(terminated, 0.0)
            self.average_reward.update(reward, value=value, next_value=after, mask=active, group=self.group)
            reward = reward - self.average_reward.mean
        log_ratio = tensordict.get(keys.log_ratio, None)
        if log_ratio is not None:
            if self.two_player:
                raise ValueError("V-trace is for one player, so `log_ratio` does not go with two_player=True")
            target = vtrace(
                reward,
                value,
                next_value=next_value,
                log_ratio=match_log_ratio(log_ratio, value, batch_dims=lead),
                done=done,
                terminated=terminated,
                gamma=self.gamma,
                lmbda=self.lmbda,
                active=active,
                time_dim=time_dim,
            )[1]
            return target - value
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
            player=match_shape(_required(tensordict, keys.player), value, batch_dims=lead, name="player"),
            next_player=match_shape(
                _required(following, keys.player), value, batch_dims=lead, name="next player"
            ),
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
        """Compute the values of the states before and after every step, each `[*B, T, ...]`."""
        inputs, shape = self.value_network.in_keys, tensordict.batch_size
        positions = bootstrap_positions(needed, time_dim=time_dim, budget=self.boundary_budget)
        ahead = tensordict.get("next").select(*inputs, strict=False).reshape(-1)
        ahead = ahead if positions is None else ahead[positions]
        if self.reuse_values:
            value = later = _required(tensordict, self.tensor_keys.value).flatten(0, len(shape) - 1)
            beyond = self._call(ahead, params) if len(ahead) else later[:0]
        else:
            roots = tensordict.select(*inputs, strict=False).reshape(-1)
            later = self._call(torch.cat([roots, ahead]), params if target_params is None else target_params)
            same = target_params is None or _same_weights(params, target_params)
            value = later[: len(roots)] if same else self._call(roots, params)
            later, beyond = later[: len(roots)], later[len(roots) :]
        if positions is None:
            return value.unflatten(0, shape), beyond.unflatten(0, shape)
        later = later.unflatten(0, shape).roll(-1, time_dim).flatten(0, len(shape) - 1)
        next_value = later.index_copy(0, positions, beyond)
        if self.boundary_budget is not None:
            missed = needed.reshape(-1).index_fill(0, positions, False)
            next_value = next_value.masked_fill(missed.view(-1, *[1] * (next_value.ndim - 1)), torch.nan)
        return value.unflatten(0, shape), next_value.unflatten(0, shape)

    def _call(self, states: TensorDictBase, params: TensorDictBase | None) -> Tensor:
        """Evaluate the critic on a flat batch of states, chunk by chunk."""
        size = self.value_chunk_size or _default_chunk_size(states)
        with self._with_parameters(params):
            values = [self.value_network(part).get(self.tensor_keys.value) for part in states.split(size)]
        return values[0] if len(values) == 1 else torch.cat(values)

    def _with_parameters(self, params: TensorDictBase | None) -> AbstractContextManager[Any]:
        if params is not None:
            return params.detach().to_module(self.value_network, preserve_module_state=False)
        return hold_out_net(self.value_network) if torch.is_grad_enabled() else nullcontext()


def _default_chunk_size(states: TensorDictBase) -> int:
    """Return the number of graphs per call of the critic, by their node slots."""
    mask = states.get((GRAPH, "node_mask"), None)
    nodes = NODES_PER_STATE if mask is None else mask.shape[-1]
    if isinstance(mask, Ragged):
        nodes = max(1, mask.numbers() // max(1, len(mask)))
    on_cpu = next(states.values(include_nested=True, leaves_only=True)).device.type == "cpu"
    return max(1, (NODES_ON_CPU if on_cpu else NODES_ELSEWHERE) // nodes)


def _same_weights(params: TensorDictBase | None, target_params: TensorDictBase) -> bool:
    """Return whether both share memory, as in a loss without target networks."""
    if params is None:
        return False
    ours = dict(params.items(include_nested=True, leaves_only=True))
    theirs = dict(target_params.items(include_nested=True, leaves_only=True))
    return ours.keys() == theirs.keys() and all(ours[key].is_set_to(theirs[key]) for key in ours)


def _required(tensordict: TensorDictBase, key: NestedKey) -> Tensor:
    tensor = tensordict.get(key, None)
    if tensor is None:
        raise KeyError(
            f"GraphGAE needs the entry {key!r}, but found only {sorted(map(str, tensordict.keys()))}"
        )
    return tensor
