"""A trained policy as users hold it: a module for TensorDicts, and `act` for single graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy, acting_in, encode_once
from edgewise.graphs.convert import from_networkx, from_pyg
from edgewise.graphs.keys import GRAPH

ACTION_MASK = "action_mask"


class TrainedPolicy(TensorDictModuleBase):
    """The policy of a run.

    As a module it sets `action` in the root TensorDict of its environment: sampled under TorchRL's
    `ExplorationType.RANDOM`, its mode under `DETERMINISTIC`.

    Args:
        policy: the trained module.
        env: an environment of the settings that it was loaded for.

    Example:
        >>> policy = run.policy()
        >>> action = policy.act(env.reset())
    """

    def __init__(self, policy: Policy, env: GraphEnv[Any]) -> None:
        super().__init__()
        self.policy, self._env = policy, [env]
        self.in_keys = getattr(policy, "in_keys", [GRAPH])
        self.out_keys = getattr(policy, "out_keys", ["action"])

    @property
    def env(self) -> GraphEnv[Any]:
        """The environment that the policy was loaded for, of one world."""
        return self._env[0]

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`."""
        return self.policy(tensordict)

    def on_instances(self, roots: TensorDictBase) -> Policy:
        """Return the policy for the worlds that start at `roots [I]`; see `encode_once`."""
        prepared = encode_once(self.policy, roots)[0]
        return self if prepared is self.policy else prepared

    @contextmanager
    def on(self, env: Any) -> Iterator[None]:
        """Act in another environment inside the context."""
        with acting_in(self.policy, env):
            yield

    @torch.no_grad()
    def act(self, observation: Any, *, deterministic: bool = True) -> Tensor:
        """Return the action for an observation.

        Args:
            observation: a root as `reset()` gives it, `[*B]`; or one graph, as PyG `Data` or networkx, with
                `x` and, where the policy needs one, `action_mask`. A networkx graph may hold `action_mask`
                at its nodes or in `graph.graph`.
            deterministic: whether to take the mode; otherwise the action is sampled.

        Returns:
            The action, `[*B, ...]`; without leading dimension for one graph.
        """
        is_one = not isinstance(observation, TensorDictBase)
        root = self._root(observation) if is_one else observation.copy()
        if root.batch_size == torch.Size([]):
            is_one, root = True, root.unsqueeze(0)
        mode = ExplorationType.DETERMINISTIC if deterministic else ExplorationType.RANDOM
        was_training = self.training
        self.eval()
        try:
            with set_exploration_type(mode):
                action: Tensor = self.policy(root)["action"]
        finally:
            self.train(was_training)
        return action[0] if is_one else action

    def _root(self, graph: Any) -> TensorDict:
        """Return the root of one graph that comes from another library."""
        spec, device = self.env.graph, self.env.device
        if hasattr(graph, "edge_index") or hasattr(graph, "num_node_features"):
            observed, mask = from_pyg([graph], spec), graph.get(ACTION_MASK)
        elif hasattr(graph, "nodes") and hasattr(graph, "edges"):
            observed = from_networkx([graph], spec)
            listed = [data.get(ACTION_MASK) for _, data in graph.nodes(data=True)]
            mask = graph.graph.get(ACTION_MASK, None if None in listed else listed)
        else:
            raise TypeError(
                f"act takes a TensorDict, a PyG Data or a networkx graph, got {type(graph).__name__}"
            )
        root = TensorDict({GRAPH: observed}, [1])
        if mask is not None:
            root[ACTION_MASK] = self._padded(torch.as_tensor(mask, dtype=torch.bool)).unsqueeze(0)
        elif self.env.observation_spec.get(ACTION_MASK, None) is not None:
            raise ValueError(
                f"{self.env.name} restricts actions: give the graph an `action_mask` over what may be chosen"
            )
        return root.to(device)

    def _padded(self, mask: Tensor) -> Tensor:
        """Return a mask with false for the slots that a smaller graph leaves empty."""
        wanted = self.env.observation_spec[ACTION_MASK].shape[1:]
        if mask.dim() != len(wanted) or any(
            have > want for have, want in zip(mask.shape, wanted, strict=True)
        ):
            raise ValueError(f"action_mask: got shape {list(mask.shape)}, expected at most {list(wanted)}")
        padded = torch.zeros(wanted, dtype=torch.bool)
        padded[tuple(slice(0, size) for size in mask.shape)] = mask
        return padded
