"""Policies of off-policy algorithms as functions of named tensors, for export."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Generator, Tensor
from torchrl.data import TensorSpec
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.algorithms.off_policy import OffPolicy
from edgewise.graphs.keys import ACTIVE, EGO, MASK
from edgewise.models.actor_function import MEMORY, NEXT_MEMORY, add_memory, memory_in
from edgewise.models.agents.ego import EgoEncoder
from edgewise.models.graph_features import GraphFeatures
from edgewise.models.memory import Memory
from edgewise.models.observation_inputs import AGENTS, ObservationInputs
from edgewise.models.policy_function import PolicyFunction, TensorInfo, Tensors

SLOTS = "slots"
_SCORES = {
    "scores": "action value or logit of each choice; -1e9 for choices that are not allowed",
    "action": "the choice with the largest score",
}
_WITHOUT_SCORES = {"action": "the action, as the environment takes it"}
_EGO_MEANINGS = {
    "self": "numbers about the agent itself, in the units of its environment",
    "objects": "numbers about the objects around it, in its own frame and the same units",
    "mask": "whether a slot holds an object; what empty slots hold has no effect",
    MASK: "which actions are allowed",
}


class LearnerFunction(PolicyFunction):
    """Base of functions that act by the networks of an off-policy algorithm.

    Args:
        learner: the algorithm; its networks are copied.
    """

    def __init__(self, learner: Any) -> None:
        super().__init__()
        self._learner = copy.copy(learner)
        self._learner.deciders = copy.copy(learner.deciders)
        self.networks = self._learner.networks = copy.deepcopy(learner.networks).eval()
        has_scores = type(learner).scores is not OffPolicy.scores
        self.outputs = dict(_SCORES if has_scores else _WITHOUT_SCORES)
        self.decoding = (
            "`action` is the choice with the largest score."
            if has_scores
            else "`action` is the action, as the environment takes it."
        )

    def outputs_of(self, observation: TensorDictBase) -> Tensors:
        """Return the outputs for what the deciders observe."""
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            scores = self._learner.scores(observation)
            if scores is None:
                return {"action": self._learner.act(observation)}
            return {"scores": scores, "action": scores.argmax(-1)}


class EgoFunction(LearnerFunction):
    """The policy of agents that act on their own observations; one row for every agent.

    Args:
        learner: the algorithm.
        env: an environment of the policy.
    """

    def __init__(self, learner: Any, env: Any) -> None:
        super().__init__(learner)
        observed = env.observation_spec
        encoders = [module for module in self.networks.modules() if isinstance(module, EgoEncoder)]
        slots: int | str = SLOTS if all(encoder.any_slots for encoder in encoders) else encoders[0].spec.slots
        mask = observed.get(MASK, None)
        ego = observed[EGO]
        specs: dict[str, TensorSpec] = {name: ego[name] for name in ("self", "objects", "mask")}
        specs |= {} if mask is None else {MASK: mask}
        shapes = {name: tuple(spec.shape[2:]) for name, spec in specs.items()}
        self.sizes = {AGENTS: int(ego["self"].shape[1])}
        if slots == SLOTS:
            self.sizes |= {SLOTS: int(shapes["mask"][0])}
            shapes["objects"], shapes["mask"] = (SLOTS, shapes["objects"][1]), (SLOTS,)
        self.inputs = tuple(
            TensorInfo(name, spec.dtype, (AGENTS, *shapes[name]), _EGO_MEANINGS[name])
            for name, spec in specs.items()
        )

    def forward(self, inputs: Tensors) -> Tensors:
        """Return scores `[agents, K]` and actions `[agents]`, or actions `[agents, dim]`."""
        return self.outputs_of(TensorDict(inputs, [inputs["self"].shape[0]]))

    def inputs_of(self, root: TensorDictBase) -> Tensors:
        """Return the observations of all active agents of all worlds."""
        active, ego = root[ACTIVE], root[EGO]
        found = {name: ego[name][active] for name in ("self", "objects", "mask")}
        return found if root.get(MASK, None) is None else {**found, MASK: root[MASK][active]}

    def actions_of(self, root: TensorDictBase) -> Tensor:
        """Return the actions of all active agents of all worlds."""
        chosen: Tensor = root["action"][root[ACTIVE]]
        return chosen


class WorldFunction(LearnerFunction):
    """The policy of deciders that share the observation of their world.

    Args:
        learner: the algorithm.
        env: an environment of the policy.
        idle: the action of deciders that do not act.
    """

    def __init__(self, learner: Any, env: Any, *, idle: float) -> None:
        super().__init__(learner)
        readers = [module for module in self.networks.modules() if isinstance(module, GraphFeatures)]
        any_size = all(reader.encoder.any_size for reader in readers)
        self._idle = idle
        self._observed = ObservationInputs(env, learner.deciders.stored, any_size=any_size)
        for each in (self._learner.deciders, *readers):
            each.graph = self._observed.graph
        self.inputs, self.sizes = self._observed.infos, self._observed.sizes
        self._memory = next((each for each in self.networks.modules() if isinstance(each, Memory)), None)
        if self._memory is not None:
            add_memory(self, self._memory)

    def forward(self, inputs: Tensors) -> Tensors:
        """Return scores `[*D, K]` and actions `[*D]`, or actions `[*D, dim]`, and the next hidden state."""
        root = self._observed.root(inputs)
        if self._memory is not None:
            root.set(self._memory.key, inputs[MEMORY])
        found = self.outputs_of(root)
        if self._memory is not None:
            found[NEXT_MEMORY] = root["next", *self._memory.key]
        counted = self._learner.deciders.counted(root)
        if counted is None:
            return found
        action = found["action"]
        acts = counted.reshape(*counted.shape, *[1] * (action.ndim - counted.ndim))
        return {**found, "action": torch.where(acts, action, self._idle)}

    def inputs_of(self, root: TensorDictBase) -> Tensors:
        """Return the inputs for an observation of the environment, `[B]`."""
        found = self._observed.of(root)
        return found if self._memory is None else {**found, MEMORY: memory_in(root, found, self._memory)}

    def fit(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes that are possible together, near to `sizes`."""
        return self._observed.fit(sizes)

    def sample(self, sizes: Mapping[str, int], generator: Generator) -> Tensors:
        """Sample random inputs of the given sizes."""
        memory = {MEMORY: self.inputs[-1].sample(sizes, generator)} if self._memory is not None else {}
        return self._observed.sample(sizes, generator) | memory
