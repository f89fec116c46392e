"""An actor as a function of named tensors, for export."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Generator, Tensor

from edgewise.graphs.keys import GRAPH
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.models.heads import Head
from edgewise.models.memory import Memory
from edgewise.models.observation_inputs import AGENTS, GRAPHS, ObservationInputs
from edgewise.models.policy_function import PolicyFunction, TensorInfo, Tensors

MEMORY, NEXT_MEMORY = "memory", "next_memory"


class ActorFunction(PolicyFunction):
    """The observation of graphs to the parameters of the distribution over actions.

    Args:
        encoder: maps graphs to node embeddings.
        head: maps node embeddings to a distribution over actions.
        memory: recurrent cell of the agents; None for a feed-forward actor.
        env: an environment of the policy.
    """

    def __init__(self, encoder: GraphEncoder, head: Head, memory: Memory | None, *, env: Any) -> None:
        super().__init__()
        self.encoder, self.head, self.memory = copy.deepcopy((encoder, head, memory))
        self._observed = ObservationInputs(env, head.in_keys, any_size=encoder.any_size)
        self.encoder.graph = self.head.graph = self._observed.graph
        self.inputs, self.outputs = self._observed.infos, dict(head.outputs)
        self.sizes, self.decoding, self.decode = self._observed.sizes, head.decoding, head.decode
        if memory is not None:
            add_memory(self, memory)

    def forward(self, inputs: Tensors) -> Tensors:
        """Return the tensors of the head, and the next hidden state of a recurrent actor."""
        root = self._observed.root(inputs)
        h = self.encoder(root[GRAPH])
        if self.memory is None:
            return self.head.tensors(h, root)
        root.set(self.memory.key, inputs[MEMORY])
        h = self.memory.step(h, root)
        return {**self.head.tensors(h, root), NEXT_MEMORY: root["next", *self.memory.key]}

    def inputs_of(self, root: TensorDictBase) -> Tensors:
        """Return the inputs for an observation of the environment, `[B]`."""
        found = self._observed.of(root)
        return found if self.memory is None else {**found, MEMORY: memory_in(root, found, self.memory)}

    def fit(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes that are possible together, near to `sizes`."""
        return self._observed.fit(sizes)

    def sample(self, sizes: Mapping[str, int], generator: Generator) -> Tensors:
        """Sample random inputs of the given sizes."""
        memory = {MEMORY: self.inputs[-1].sample(sizes, generator)} if self.memory is not None else {}
        return self._observed.sample(sizes, generator) | memory


def add_memory(function: PolicyFunction, memory: Memory) -> None:
    """Add the hidden state of agents to the inputs and outputs of a function."""
    meaning = "hidden state of each agent, zero in the first step of an episode"
    agents = AGENTS if AGENTS in function.sizes else memory.num_agents
    shape = (GRAPHS, agents, memory.cell.hidden_size)
    function.inputs += (TensorInfo(MEMORY, torch.float32, shape, meaning),)
    following = "hidden state of each agent, an input of the next step"
    function.outputs = {**function.outputs, NEXT_MEMORY: following}
    function.recurrent = {MEMORY: NEXT_MEMORY}


def memory_in(root: TensorDictBase, inputs: Tensors, memory: Memory) -> Tensor:
    """Return the hidden states in an observation; zero in the first step."""
    hidden: Tensor | None = root.get(memory.key, None)
    if hidden is not None:
        return hidden
    agents = inputs["active"].shape[-1] if "active" in inputs else memory.num_agents
    return torch.zeros(*root.batch_size, agents, memory.cell.hidden_size, device=root.device)
