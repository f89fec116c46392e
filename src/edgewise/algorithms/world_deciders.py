"""Deciders that share an observation: every row of the replay buffer is a step of one whole world."""

from __future__ import annotations

from typing import Any

from tensordict import NestedKey, TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor

from edgewise.algorithms.deciders import Deciders, EgoDeciders, Mixing, Role
from edgewise.config.errors import ConfigError
from edgewise.data.world_transitions import WorldTransitions
from edgewise.envs.base import GraphEnv
from edgewise.graphs.actions import ActionLayout, ChooseFromSet, DiscreteLayout
from edgewise.graphs.keys import ACTIVE, CHOICES, EGO, GRAPH, MASK
from edgewise.graphs.spec import GraphSpec
from edgewise.models.agents.ego import EgoSpec
from edgewise.models.config import EgoConfig, ValueConfig
from edgewise.models.features import Features
from edgewise.models.graph_features import BothFeatures, EgoFeatures, make_graph_features
from edgewise.models.heads import acting_agents
from edgewise.models.mixers import Mixer, MonotoneMixer, SumMixer


class WorldDeciders(Deciders):
    """The deciders of a world, which decide by its graph, by `agents.ego`, or by both.

    Args:
        graph: shape and edge source of the observed graphs.
        actions: the action layout.
        model: config of the networks; `observe` is not `auto`.
        ego: sizes of `agents.ego`, if the networks read it.
        stored: entries of the root to store; all others follow from these.
        num_edges: number of edge slots.
        mixing: how the values of a team become one; see `DQNConfig`.
    """

    model: ValueConfig

    def __init__(
        self,
        graph: GraphSpec,
        actions: ActionLayout,
        model: ValueConfig,
        *,
        ego: EgoSpec | None = None,
        stored: tuple[NestedKey, ...] = (GRAPH, MASK, ACTIVE),
        num_edges: int = 0,
        mixing: Mixing = "auto",
    ) -> None:
        several = len(actions.mask_shape(graph, num_edges=num_edges)) > 1
        if mixing == "auto":
            mixing = "sum" if several and not actions.num_agents else "none"
        if mixing != "none" and not several:
            raise ConfigError(
                f"algorithm.mixing: {mixing} is for several deciders, and {type(actions).__name__} has one",
                hint="set it to none",
            )
        super().__init__(actions, model, mixing=mixing)
        self.graph, self.ego, self.stored, self.num_edges = graph, ego, stored, num_edges

    def features(self, role: Role) -> Features:
        """Build the encoder of what the networks read."""
        if self.model.observe == "ego":
            return self._ego_features()
        found = make_graph_features(self.graph, self.actions, self.model, role=role)
        return found if self.model.observe == "graph" else BothFeatures(found, self._ego_features())

    def _ego_features(self) -> EgoFeatures:
        assert self.ego is not None
        return EgoFeatures(self.ego, self.actions, self.model)

    def mixer(self) -> Mixer | None:
        """Build the mixer that `mixing` names."""
        if self.mixing == "monotone":
            return MonotoneMixer(self.features("critic"), counted=self.counted)
        return SumMixer(self.counted) if self.mixing == "sum" else None

    def transitions(self, *, steps: int, discount: float, paths: bool = False) -> WorldTransitions:
        """Build what makes transitions of worlds."""
        nodes = self.graph.num_nodes
        members = max(nodes, self.num_edges) if isinstance(self.actions, ChooseFromSet) else nodes
        bounds: dict[NestedKey, int] = {
            (GRAPH, "edge_index"): nodes,
            (GRAPH, "node_type"): max(self.graph.node_types, 1),
            (GRAPH, "topology"): 1 << 31,
            CHOICES: members,
        }
        shape = self.actions.mask_shape(self.graph, num_edges=self.num_edges)
        if isinstance(self.actions, DiscreteLayout):
            bounds["action"] = shape[-1]
        return WorldTransitions(
            self.stored,
            bounds=bounds,
            steps=steps,
            discount=discount,
            team_reward=self.mixing != "none",
            paths=paths,
        )

    def policy(self, learner: Any) -> TensorDictModuleBase:
        """Build the policy on whole observations."""
        from edgewise.algorithms.world_policy import WorldPolicy

        return WorldPolicy(learner)

    def legal(self, observation: TensorDictBase) -> Tensor | None:
        """Return the legal choices, `[*D, K]` bool; None if actions are continuous."""
        choices = self.actions.choices(observation, self.graph)
        return None if choices is None else choices.legal

    def counted(self, observation: TensorDictBase) -> Tensor | None:
        """Return the deciders that exist and act, `[*D]` bool; None if all do."""
        if self.actions.num_agents:
            return acting_agents(observation, self.actions.num_agents)
        choices = self.actions.choices(observation, self.graph)
        return None if choices is None else choices.counted


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
        reads = "graph" if ego is None else "ego"
    if reads != "graph" and ego is None:
        raise ConfigError(
            f"{env.name} has no observation per agent",
            hint="use an environment with `agents.ego`, or set model.observe to graph",
        )
    if reads == "ego" and mixing in ("auto", "none") and not (paths and isinstance(model, ValueConfig)):
        assert ego is not None
        return EgoDeciders(ego, env.actions, model)
    if isinstance(model, EgoConfig):
        raise ConfigError(
            f"algorithm.mixing: {mixing} needs whole teams, and this model reads single agents",
            hint="set algorithm.mixing to none",
        )
    return WorldDeciders(
        env.graph,
        env.actions,
        model.model_copy(update={"observe": reads}),
        ego=None if reads == "graph" else ego,
        stored=_stored_entries(env, reads),
        num_edges=env.graph.edges_of(env.observation_spec[GRAPH].zero()).mask.shape[-1],
        mixing=mixing,
    )


def ego_spec(env: GraphEnv[Any]) -> EgoSpec | None:
    """Return the sizes of each agent's own observation in `env`; None if it has none of that form."""
    observed = env.observation_spec.get(EGO, None)
    if observed is None or not {"self", "objects", "mask"} <= set(observed.keys()):
        return None
    return EgoSpec.of(observed.zero())


def _stored_entries(env: GraphEnv[Any], reads: str) -> tuple[NestedKey, ...]:
    """Return the entries of the root that networks read and that do not follow from others."""
    wanted: list[NestedKey] = [GRAPH] if reads != "ego" else [(GRAPH, "node_mask")]
    wanted += [ACTIVE, CHOICES] + ([EGO] if reads != "graph" else [])
    # Without a mask of its own, the mask of an environment is that of the layout, which the graph determines.
    if (
        type(env).mask is not GraphEnv.mask
        or env.actions.default_mask(env.observation_spec[GRAPH].zero()) is None
    ):
        wanted.append(MASK)
    return tuple(name for name in wanted if env.observation_spec.get(name, None) is not None)
