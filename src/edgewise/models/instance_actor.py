"""Actors and critics for environments that describe an instance once: encode once, decode every step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Self

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Generator, Tensor, nn
from torch.distributions import Distribution

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout, ChooseFromSet, ChooseNode
from edgewise.graphs.keys import CHOICES, GRAPH, MASK, STEP, STEPS
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.step_spec import StepSpec
from edgewise.models.acting import OtherGraphs, set_action
from edgewise.models.build import make_encoder, make_head
from edgewise.models.config import ModelConfig
from edgewise.models.decoder import (
    Decoder,
    NodeDecoder,
    PointerDecoder,
    SetDecoder,
    StepValue,
    with_graph,
)
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.models.heads import Head
from edgewise.models.observation_inputs import ObservationInputs
from edgewise.models.policy_function import PolicyFunction, TensorInfo, Tensors
from edgewise.models.remaining import Remaining

EMBEDDINGS = "embeddings"
"""Name of the node embeddings in exported programs."""


class InstanceActor(OtherGraphs, TensorDictModuleBase):
    """A stochastic policy whose encoder runs once per instance: writes `action` and `action_log_prob`.

    It takes a root `[*B]` with `graph` and `step`, as any policy does, and then encodes every graph. Where
    many steps of the same instances follow, `on_instances` encodes them once, and `get_dist` takes a batch
    `[I]` of instances with their `steps`. All three give the same distributions.

    Args:
        encoder: maps graphs to node embeddings.
        decoder: maps node embeddings and steps to a distribution over actions.
        remaining: makes the graph of every step, which is then encoded instead; None to encode once.
    """

    log_prob_keys = ("action_log_prob",)
    dist_sample_keys = ("action",)
    memory = None

    def __init__(
        self, encoder: GraphEncoder, decoder: Decoder, *, remaining: Remaining | None = None
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.remaining = encoder, decoder, remaining
        self.in_keys = [GRAPH, STEP, MASK, CHOICES]
        self.out_keys = ["action", "action_log_prob"]

    def get_dist(self, tensordict: TensorDictBase) -> Distribution:
        """Return the distribution over actions of every step, `[*B]`, or `[I, Q]` for instances `[I]`."""
        graph, observation = graphs_and_steps(tensordict, self.remaining)
        return self.decoder(self.prepare(graph), observation)

    def prepare(self, graph: TensorDictBase) -> Any:
        """Encode graphs `[I]`: what the decoder reads of them at every step."""
        return self.decoder.prepare(self.encoder(graph), graph)

    def on_instances(self, roots: TensorDictBase) -> OnInstances | Self:
        """Return the policy for the worlds that start at `roots [I]`; encodes them now if that is once."""
        return OnInstances(self, roots.get(GRAPH)) if self.remaining is None else self

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Sample an action in every world, or take the mode if exploration is off."""
        return set_action(self.get_dist(tensordict), tensordict)

    def tensors(self, tensordict: TensorDictBase) -> dict[str, Tensor]:
        """Return the distribution of observations `[B]` as named tensors, for export."""
        graph, observation = graphs_and_steps(tensordict, self.remaining)
        return self.decoder.tensors(self.prepare(graph), observation)

    def as_function(self, env: Any) -> InstanceActorFunction:
        """Return the actor as a function of named tensors, for export."""
        return InstanceActorFunction(self, env=env)

    def set_graph(self, graph: GraphSpec) -> None:
        """Use another topology or edge rule from now on; features and node types must be the same."""
        self.encoder.graph = graph if self.remaining is None else self.remaining.shape(graph)
        if isinstance(self.decoder, NodeDecoder):
            self.decoder.head.set_graph(graph)


class InstanceActorFunction(PolicyFunction):
    """One step of every graph, and the graph itself, to the distribution over actions.

    Args:
        actor: the policy, which is copied.
        env: an environment of the policy.
    """

    def __init__(self, actor: InstanceActor, *, env: Any) -> None:
        super().__init__()
        self.actor = copy.deepcopy(actor)
        self.observed = ObservationInputs(env, actor.in_keys, any_size=actor.encoder.any_size)
        self.actor.set_graph(self.observed.graph)
        head = getattr(actor.decoder, "head", None) or Head
        self.inputs, self.outputs = self.observed.infos, dict(head.outputs)
        self.sizes, self.decoding, self.decode = self.observed.sizes, head.decoding, head.decode

    def forward(self, inputs: Tensors) -> Tensors:
        """Return the tensors of the distribution."""
        return self.actor.tensors(self.observed.root(inputs))

    def parts(self) -> Mapping[str, PolicyFunction]:
        """Return the encoder, to be called once per instance, and the decoder, to be called in every step."""
        if self.actor.remaining is not None:
            return {}
        return {"encoder": EncoderFunction(self), "decoder": DecoderFunction(self)}

    def inputs_of(self, root: TensorDictBase) -> Tensors:
        """Return the inputs for an observation of the environment, `[B]`."""
        return self.observed.of(root)

    def fit(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes that are possible together, near to `sizes`."""
        return self.observed.fit(sizes)

    def sample(self, sizes: Mapping[str, int], generator: Generator) -> Tensors:
        """Sample random inputs of the given sizes."""
        return self.observed.sample(sizes, generator)


class _Part(PolicyFunction):
    """A part of an exported actor.

    Args:
        whole: the actor as a function.
    """

    def __init__(self, whole: InstanceActorFunction) -> None:
        super().__init__()
        self.actor, self.observed, self.sizes = whole.actor, whole.observed, whole.sizes
        self.decoding, self.decode = whole.decoding, whole.decode

    def inputs_of(self, root: TensorDictBase) -> Tensors:
        """Return those inputs that an observation of the environment has, `[B]`."""
        found = self.observed.of(root)
        return {info.name: found[info.name] for info in self.inputs if info.name in found}


class EncoderFunction(_Part):
    """Graphs to node embeddings: the part of an `InstanceActor` that runs once per instance."""

    def __init__(self, whole: InstanceActorFunction) -> None:
        super().__init__(whole)
        self.inputs = self.observed.infos_of_graph()
        self.outputs = {EMBEDDINGS: "node embeddings, an input of the decoder in every step of an instance"}

    def forward(self, inputs: Tensors) -> Tensors:
        """Return the node embeddings."""
        return {EMBEDDINGS: self.actor.encoder(self.observed.root(inputs).get(GRAPH))}


class DecoderFunction(_Part):
    """Node embeddings and a step to the distribution over actions: the part that runs in every step."""

    def __init__(self, whole: InstanceActorFunction) -> None:
        super().__init__(whole)
        graph = self.observed.infos_of_graph()
        steps = tuple(info for info in self.observed.infos if info not in graph)
        (mask,) = self.observed.infos_of_graph(["node_mask"])
        shape = (*mask.shape, self.actor.encoder.hidden)
        embeddings = TensorInfo(EMBEDDINGS, torch.float32, shape, "what the encoder gives for the instances")
        self.inputs = (embeddings, *self.observed.infos_of_graph(self.actor.decoder.graph_entries), *steps)
        self.outputs = whole.outputs

    def forward(self, inputs: Tensors) -> Tensors:
        """Return the tensors of the distribution."""
        root, decoder = self.observed.root(inputs), self.actor.decoder
        return decoder.tensors(decoder.prepare(inputs[EMBEDDINGS], root.get(GRAPH)), root)


class OnInstances:
    """The policy of an `InstanceActor` for fixed instances, each in the same number of worlds.

    Args:
        actor: the policy.
        graph: of the instances, `[I]`.
    """

    def __init__(self, actor: InstanceActor, graph: TensorDictBase) -> None:
        self._actor, self._prepared = actor, actor.prepare(graph)

    def get_dist(self, tensordict: TensorDictBase) -> Distribution:
        """Return the distribution of worlds `[I * K]`, those of an instance next to each other."""
        distribution: Distribution = self._actor.decoder(self._prepared, tensordict)
        return distribution

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Sample an action in every world, or take the mode if exploration is off."""
        return set_action(self.get_dist(tensordict), tensordict)

    @property
    def embeddings(self) -> Tensor:
        """The embeddings that actions are scored by, of all instances; others may be set."""
        return self._actor.decoder.embeddings(self._prepared)

    @embeddings.setter
    def embeddings(self, embeddings: Tensor) -> None:
        self._prepared = self._actor.decoder.with_embeddings(self._prepared, embeddings)


class InstanceCritic(TensorDictModuleBase):
    """A value function whose encoder runs once per instance: writes `state_value`, `[*B, 1]`.

    Args:
        encoder: maps graphs to node embeddings.
        step_value: maps node embeddings and steps to values.
        remaining: see `InstanceActor`.
    """

    memory = None

    def __init__(
        self, encoder: GraphEncoder, step_value: StepValue, *, remaining: Remaining | None = None
    ) -> None:
        super().__init__()
        self.encoder, self.step_value, self.remaining = encoder, step_value, remaining
        self.in_keys, self.out_keys = [GRAPH, STEP, MASK, CHOICES], ["state_value"]

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Compute the values of every step; of instances `[I]`, those of their `steps`, `[I, Q, 1]`."""
        graph, observation = graphs_and_steps(tensordict, self.remaining)
        return tensordict.set("state_value", self.step_value(self.encoder(graph), graph, observation))


class InstanceActorCritic(nn.Module):
    """An actor and a critic for environments that describe an instance once; they may share an encoder.

    Args:
        actor: writes `action` and `action_log_prob`.
        critic: writes `state_value`.
    """

    recurrent = False

    def __init__(self, actor: InstanceActor, critic: InstanceCritic) -> None:
        super().__init__()
        self.actor, self.critic = actor, critic

    @property
    def shared(self) -> bool:
        """Whether actor and critic share one encoder."""
        return self.actor.encoder is self.critic.encoder

    def evaluate(self, tensordict: TensorDictBase) -> tuple[Distribution, Tensor]:
        """Return the actor's distribution and the critic's values, with one pass through a shared encoder.

        Both are those of the `steps`, `[I, Q]`, if `tensordict` is a batch `[I]` of instances.
        """
        graph, observation = graphs_and_steps(tensordict, self.actor.remaining)
        return self._evaluator(graph)(observation)

    def on_instances(self, graph: TensorDictBase) -> Callable[[TensorDictBase], tuple[Distribution, Tensor]]:
        """Encode the graphs of instances `[I]`, and return what evaluates any observations of them.

        Those of an instance are next to each other, and each instance has the same number.
        """
        if self.actor.remaining is not None:
            return lambda observation: self.evaluate(with_graph(observation, graph))
        return self._evaluator(graph)

    def _evaluator(self, graph: TensorDictBase) -> Callable[[TensorDictBase], tuple[Distribution, Tensor]]:
        """Encode graphs now, and return what evaluates observations of them."""
        h = self.actor.encoder(graph)
        critic_h = h if self.shared else self.critic.encoder(graph)
        prepared = self.actor.decoder.prepare(h, graph)

        def evaluate(observation: TensorDictBase) -> tuple[Distribution, Tensor]:
            distribution: Distribution = self.actor.decoder(prepared, observation)
            return distribution, self.critic.step_value(critic_h, graph, observation)

        return evaluate

    def set_graph(self, graph: GraphSpec) -> None:
        """Use another topology or edge rule from now on; features and node types must be the same."""
        self.actor.set_graph(graph)
        self.critic.encoder.graph = self.actor.encoder.graph


def graphs_and_steps(
    tensordict: TensorDictBase, remaining: Remaining | None
) -> tuple[TensorDictBase, TensorDictBase]:
    """Return the graphs to encode, one after another, and the observations to decode."""
    if remaining is not None:
        return remaining.of(tensordict)
    if STEPS in tensordict:
        return tensordict.get(GRAPH), tensordict.get(STEPS)
    graph = tensordict.get(GRAPH)
    # A TensorDict that is reshaped fixes its size in exports.
    return graph if graph.batch_dims == 1 else graph.reshape(-1), tensordict


def make_instance_actor_critic(
    graph: GraphSpec, actions: ActionLayout, config: ModelConfig
) -> InstanceActorCritic:
    """Build an actor and a critic for an environment that has `describe`.

    Args:
        graph: an environment's `graph`, whose `step` is set.
        actions: an environment's `actions`.
        config: see `ModelConfig`.

    Raises:
        ConfigError: the model is recurrent, or its critic values agents.
    """
    if config.recurrent or config.critic not in ("auto", "graph"):
        raise ConfigError(
            f"model: got recurrent {config.recurrent} and critic {config.critic}, but this environment "
            "describes an instance once (`describe`): its critic values the graph, and nothing is recurrent",
            hint="leave model.recurrent and model.critic out",
        )
    spec = graph.step or StepSpec()
    chooses = isinstance(actions, ChooseNode)
    remaining = Remaining(spec, nodes_are_chosen=chooses) if config.reencode else None
    shape = graph if remaining is None else remaining.shape(graph)
    encoder = make_encoder(shape, config.encoder)
    decoder = _decoder(graph, actions, spec, config)
    trunk = encoder if config.shared_trunk else make_encoder(shape, config.encoder, of="critic")
    value = StepValue(config, spec, nodes_are_chosen=chooses)
    return InstanceActorCritic(
        InstanceActor(encoder, decoder, remaining=remaining),
        InstanceCritic(trunk, value, remaining=remaining),
    )


def _decoder(graph: GraphSpec, actions: ActionLayout, spec: StepSpec, config: ModelConfig) -> Decoder:
    """Build the decoder: a pointer where nodes are chosen, otherwise one in front of the policy head."""
    if config.head == "auto" and config.prior is None:
        if isinstance(actions, ChooseNode):
            return PointerDecoder(config, spec, has_positions=graph.position_dim > 0)
        if isinstance(actions, ChooseFromSet) and actions.members == "nodes":
            return SetDecoder(config, spec)
    return NodeDecoder(config, spec, make_head(graph, actions, config))
