"""Who decides, on what they observe, between which choices: an environment as value networks see it."""

from __future__ import annotations

from typing import Any, Literal

import torch
from tensordict import NestedKey, TensorDictBase
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.data.instance_transitions import InstanceTransitions
from edgewise.data.sequences import Sequences
from edgewise.data.transitions import AGENTS_OBSERVE, Transitions, agents_view
from edgewise.envs.base import GraphEnv
from edgewise.graphs.actions import (
    ActionLayout,
    AgentsContinuous,
    AgentsDiscrete,
    ChooseFromSet,
    ComposedLayout,
    DiscreteLayout,
)
from edgewise.graphs.actions.discrete import sample_allowed
from edgewise.graphs.keys import ACTIVE, CHOICES, EGO, GRAPH, MASK, STEP
from edgewise.graphs.spec import GraphSpec
from edgewise.models.agents.actions import num_choices
from edgewise.models.agents.ego import EgoSpec, make_ego_encoder, nearest_gap
from edgewise.models.config import EgoConfig, ValueConfig
from edgewise.models.features import Features
from edgewise.models.graph_features import BothFeatures, EgoFeatures, make_graph_features
from edgewise.models.heads import acting_agents
from edgewise.models.mixers import Mixer, MonotoneMixer, SumMixer

Role = Literal["actor", "critic"]
Mixing = Literal["auto", "none", "sum", "monotone"]


class Deciders:
    """The deciders of an environment: its world, its agents, its edges, or its groups of edges.

    They share the observation of their world, and every row of the replay buffer is a step of one world. Or,
    with `per_agent`, each agent decides by `agents.ego` alone, and every row is a step of one active agent.
    D stands for the dimensions of an action: `[M]`, or `[M, A]` for A deciders in each of M worlds.

    Args:
        actions: the action layout.
        model: config of the networks.
        graph: shape and edge source of the observed graphs; None for `per_agent`.
        ego: sizes of `agents.ego`, if the networks read it.
        reads_graph: whether the networks read the graph.
        per_agent: whether each agent decides by `agents.ego` alone.
        stored: entries of the root that the networks read; all others follow from these.
        num_edges: number of edge slots.
        mixing: how the values of a team become one, see `DQNConfig`; not `auto`.

    Example:
        >>> deciders = Deciders(AgentsDiscrete(8, 25), EgoConfig(), ego=EgoSpec(), per_agent=True)
    """

    def __init__(
        self,
        actions: ActionLayout,
        model: EgoConfig | ValueConfig,
        *,
        graph: GraphSpec | None = None,
        ego: EgoSpec | None = None,
        reads_graph: bool = False,
        per_agent: bool = False,
        stored: tuple[NestedKey, ...] = AGENTS_OBSERVE,
        num_edges: int = 0,
        mixing: Mixing = "none",
    ) -> None:
        self.actions, self.model, self.graph, self.ego = actions, model, graph, ego
        self.reads_graph, self.per_agent, self.mixing = reads_graph, per_agent, mixing
        self.stored, self.num_edges = stored, num_edges

    @property
    def ego_config(self) -> EgoConfig:
        """The config of the encoder of `agents.ego`."""
        return self.model if isinstance(self.model, EgoConfig) else self.model.ego

    def features(self, role: Role) -> Features:
        """Build the module that embeds observations for an actor or a critic."""
        found: list[Any] = []
        if self.reads_graph:
            assert self.graph is not None
            assert isinstance(self.model, ValueConfig)
            found.append(make_graph_features(self.graph, self.actions, self.model, role=role))
        if self.ego is not None:
            encoder = make_ego_encoder(self.ego, self.ego_config)
            found.append(encoder if self.per_agent else EgoFeatures(encoder))
        return BothFeatures(*found) if len(found) > 1 else found[0]

    def mixer(self) -> Mixer | None:
        """Build the mixer of the team's values; None if each decider has a value of its own."""
        if self.mixing == "monotone":
            return MonotoneMixer(self.features("critic"), counted=self.counted)
        return SumMixer(self.counted) if self.mixing == "sum" else None

    def transitions(self, *, steps: int, discount: float, paths: bool = False) -> Transitions:
        """Build what makes n-step transitions; with `paths`, all steps of each are stored.

        Raises:
            ConfigError: rows of single agents do not have all steps.
        """
        if paths and self.per_agent:
            raise ConfigError(
                "algorithm.retrace: it needs the steps of whole worlds, and this model reads single agents",
                hint="use a model of ValueConfig, or leave algorithm.retrace out",
            )
        if self.has_instances and not paths:
            return InstanceTransitions(
                self.stored,
                bounds=self._bounds(),
                steps=steps,
                discount=discount,
                team_reward=self.mixing != "none",
            )
        return Transitions(
            self.stored,
            per_agent=self.per_agent,
            bounds=self._bounds(),
            steps=steps,
            discount=discount,
            team_reward=self.mixing != "none",
            paths=paths,
        )

    def sequences(self, *, length: int, burn_in: int, discount: float) -> Sequences:
        """Build what makes sequences of steps, for recurrent networks."""
        return Sequences(
            self.stored,
            length=length,
            burn_in=burn_in,
            bounds=self._bounds(),
            discount=discount,
            team_reward=self.mixing in ("sum", "monotone"),
        )

    @property
    def recurrent(self) -> bool:
        """Whether agents have a memory."""
        return isinstance(self.model, ValueConfig) and self.model.recurrent

    @property
    def has_instances(self) -> bool:
        """Whether the environment describes an instance once, and its graph is all that networks encode."""
        described = self.graph is not None and self.graph.step is not None
        return described and self.ego is None and not isinstance(self.actions, ComposedLayout)

    def _bounds(self) -> dict[NestedKey, int]:
        """Return exclusive upper bounds of the integers in rows of worlds."""
        if self.graph is None:
            return {}
        nodes = self.graph.num_nodes
        members = max(nodes, self.num_edges) if isinstance(self.actions, ChooseFromSet) else nodes
        bounds: dict[NestedKey, int] = {
            (GRAPH, "edge_index"): nodes,
            (GRAPH, "node_type"): max(self.graph.node_types, 1),
            (GRAPH, "topology"): 1 << 31,
            CHOICES: members,
        }
        if isinstance(self.actions, DiscreteLayout):
            bounds["action"] = self.actions.mask_shape(self.graph, num_edges=self.num_edges)[-1]
        return bounds

    def observe(self, root: TensorDictBase) -> TensorDictBase:
        """Return what the networks read in worlds `[B]`: `[B]`, or `[B, A]` for `per_agent`."""
        if not self.per_agent:
            return root
        seen = agents_view(root)
        seen.batch_size = root[ACTIVE].shape
        return seen

    def legal(self, observation: TensorDictBase) -> Tensor | None:
        """Return the legal choices, `[*D, K]` bool; None if all are legal or actions are continuous."""
        if self.per_agent:
            mask: Tensor | None = observation.get(MASK, None)
            return mask
        assert self.graph is not None
        choices = self.actions.choices(observation, self.graph)
        return None if choices is None else choices.legal

    def counted(self, observation: TensorDictBase) -> Tensor | None:
        """Return the deciders that exist and act, `[*D]` bool; None if all do."""
        if self.per_agent:
            return None
        if self.actions.num_agents:
            return acting_agents(observation, self.actions.num_agents)
        assert self.graph is not None
        choices = self.actions.choices(observation, self.graph)
        return None if choices is None else choices.counted

    def full(self, observation: TensorDictBase, value: float) -> Tensor:
        """Return `value` for every decision on an observation, `[*D]`."""
        choices = self._ego_of(observation)["mask"] if self.ego is not None else self.legal(observation)
        if choices is None:
            choices = observation[GRAPH, "node_mask"][..., : self.actions.num_agents].unsqueeze(-1)
        return torch.full(choices.shape[:-1], value, device=choices.device)

    def nearest_gap(self, observation: TensorDictBase) -> Tensor:
        """Return the clearance between every decider and its nearest object, `[*D]`, from `agents.ego`."""
        config = self.ego_config
        return nearest_gap(self._ego_of(observation), radius=config.radius, units=config.units)

    def _ego_of(self, observation: TensorDictBase) -> TensorDictBase:
        return observation if self.per_agent else observation.get(EGO)

    @property
    def num_choices(self) -> int:
        """Choices of a decider, where all deciders have the same number.

        Raises:
            ConfigError: actions are not discrete.
        """
        return num_choices(self.actions)

    def random_like(self, action: Tensor, observation: TensorDictBase) -> Tensor:
        """Sample random legal actions in the shape of `action`."""
        if isinstance(self.actions, ComposedLayout):
            assert self.graph is not None
            return self.actions.sample(observation, self.graph)
        legal = self.legal(observation)
        match self.actions:
            case AgentsContinuous(low=low, high=high):
                return low + (high - low) * torch.rand_like(action)
            case AgentsDiscrete(num_actions=count) if legal is None:
                return torch.randint_like(action, count)
        assert legal is not None
        return sample_allowed(legal | ~legal.any(-1, keepdim=True), None)


def deciders_of(
    env: GraphEnv[Any], model: EgoConfig | ValueConfig, *, mixing: Mixing = "none", paths: bool = False
) -> Deciders:
    """Return the deciders of an environment, as the config of the networks wants them.

    Args:
        env: the training environment.
        model: `EgoConfig` for agents that decide by `agents.ego` alone, or `ValueConfig`.
        mixing: see `DQNConfig`.
        paths: whether transitions must have all their steps, which rows of single agents do not have.

    Raises:
        ConfigError: the environment does not have what the networks should read, or action values cannot be
            learnt for its action layout.
    """
    if not isinstance(model, EgoConfig | ValueConfig):
        raise ConfigError(
            f"model: off-policy algorithms take ValueConfig or EgoConfig, not {type(model).__name__}",
            hint="leave the model out for the default, or give the recipe a ValueConfig",
        )
    ego = ego_spec(env)
    reads = "ego" if isinstance(model, EgoConfig) else model.observe
    if reads == "auto":
        recurrent = isinstance(model, ValueConfig) and model.recurrent
        reads = "graph" if ego is None or recurrent else "ego"
    if reads != "graph" and ego is None:
        raise ConfigError(
            f"{env.name} has no observation per agent",
            hint="use an environment with `agents.ego`, or set model.observe to graph",
        )
    if isinstance(model, ValueConfig) and model.recurrent and (reads != "graph" or mixing == "monotone"):
        raise ConfigError(
            "model.recurrent: agents with a memory read the graph, and their values are separate or a sum",
            hint="set model.observe to graph, and algorithm.mixing to none or sum",
        )
    if reads == "ego" and mixing in ("auto", "none") and not (paths and isinstance(model, ValueConfig)):
        return Deciders(env.actions, model, ego=ego, per_agent=True)
    if isinstance(model, EgoConfig):
        raise ConfigError(
            f"algorithm.mixing: {mixing} needs whole teams, and this model reads single agents",
            hint="set algorithm.mixing to none",
        )
    num_edges = env.graph.edges_of(env.observation_spec[GRAPH].zero()).mask.shape[-1]
    return Deciders(
        env.actions,
        model,
        graph=env.graph,
        ego=None if reads == "graph" else ego,
        reads_graph=reads != "ego",
        stored=_stored_entries(env, reads),
        num_edges=num_edges,
        mixing=_mixing_of(env, mixing, num_edges=num_edges),
    )


def ego_spec(env: GraphEnv[Any]) -> EgoSpec | None:
    """Return the sizes of each agent's own observation in `env`; None if it has none of that form."""
    observed = env.observation_spec.get(EGO, None)
    if observed is None or not {"self", "objects", "mask"} <= set(observed.keys()):
        return None
    return EgoSpec.of(observed.zero())


def _mixing_of(env: GraphEnv[Any], mixing: Mixing, *, num_edges: int) -> Mixing:
    """Return how values are mixed: `auto` is `sum` where edges or groups of edges decide, else `none`."""
    actions = env.actions
    several = len(actions.mask_shape(env.graph, num_edges=num_edges)) > 1
    if mixing == "auto":
        mixing = "sum" if several and not actions.num_agents else "none"
    if mixing != "none" and not several:
        raise ConfigError(
            f"algorithm.mixing: {mixing} is for several deciders, and {type(actions).__name__} has one",
            hint="set it to none",
        )
    return mixing


def _stored_entries(env: GraphEnv[Any], reads: str) -> tuple[NestedKey, ...]:
    """Return the entries of the root that networks read and that do not follow from others."""
    wanted: list[NestedKey] = [GRAPH] if reads != "ego" else [(GRAPH, "node_mask")]
    wanted += [ACTIVE, CHOICES, STEP] + ([EGO] if reads != "graph" else [])
    # Without a mask of its own, the mask of an environment is that of the layout, which the graph determines.
    if (
        type(env).mask is not GraphEnv.mask
        or env.actions.default_mask(env.observation_spec[GRAPH].zero()) is None
    ):
        wanted.append(MASK)
    return tuple(name for name in wanted if env.observation_spec.get(name, None) is not None)
