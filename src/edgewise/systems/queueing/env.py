"""The queueing environment: scheduling on conflict graphs."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.transition import Transition
from edgewise.graphs.keys import PRIOR
from edgewise.systems.queueing import dynamics, observe, scenario
from edgewise.systems.queueing.actions import ChooseIndependentSet
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.graphs import conflict_graphs


class QueueingEnv(GraphEnv[QueueingConfig]):
    """Activate nodes that do not conflict so that few packets wait. README.md is the card.

    Example:
        >>> env = QueueingEnv(QueueingConfig(graphs=("line3", "ring5")), num_envs=8, seed=0)
        >>> env.rollout(3, break_when_any_done=False)["next", "reward"].shape
        torch.Size([8, 3, 1])
    """

    stage_settings = ("graphs", "arrival_rate", "load", "initial_queue")

    node_mask: Tensor
    adjacency: Tensor
    neighbours: Tensor
    capacity: Tensor
    importance: Tensor

    def setup(self) -> None:
        """Build the conflict graphs; each world refers to one by its index."""
        graphs = conflict_graphs(self.config.graphs, seed=self.config.graph_seed)
        self.conflict_graphs = graphs
        self.graph = observe.graph_spec(graphs)
        self.actions = ChooseIndependentSet()
        self.laws = scenario.laws_of(self.config)
        self.register_buffer("node_mask", graphs.node_mask.to(self.device))
        self.register_buffer("adjacency", graphs.adjacency.to(self.device, torch.float32))
        self.register_buffer("neighbours", graphs.neighbours.to(self.device))
        self.register_buffer("importance", graphs.importance.to(self.device))
        self.register_buffer("capacity", scenario.capacities(self.config, graphs).to(self.device))

    def check_stage(self, stage: QueueingConfig) -> None:
        """Refuse a stage with other graphs or higher rates than the environment was built for."""
        foreign = [name for name in stage.graphs if name not in self.built_with.graphs]
        if foreign:
            raise ConfigError(
                f"graphs {', '.join(foreign)} are not among those the environment was built for",
                hint=f"build it with graphs={(*self.built_with.graphs, *foreign)}",
            )
        if stage.load is not None and self.built_with.load is None:
            raise ConfigError(
                "a stage gives a load but the environment has none", hint="build it with a load"
            )
        if stage.highest_arrival_rate > self.built_with.highest_arrival_rate:
            raise ConfigError(
                f"a stage's arrival rate of {stage.highest_arrival_rate} exceeds the environment's own",
                hint=f"build it with arrival_rate or load up to {stage.highest_arrival_rate}",
            )

    def spawn(self, count: int) -> Entries:
        """Sample new worlds, each on one of the stage's graphs."""
        numbers = self.conflict_graphs.numbers(self.config.graphs)
        drawn = torch.randint(len(numbers), (count,), generator=self.generator, device=self.device)
        graph = (
            drawn if len(numbers) == len(self.node_mask) else torch.tensor(numbers, device=self.device)[drawn]
        )
        return scenario.sample_worlds(
            graph,
            config=self.config,
            node_mask=self.node_mask[graph],
            neighbours=self.neighbours[graph],
            capacity=self.capacity[graph],
            laws=self.laws,
            generator=self.generator,
        )

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Serve the active nodes, admit arrivals and sample new channels."""
        config, exists = self.config, state["node_mask"]
        active = dynamics.resolve(action, state["neighbours"]) & exists
        arrivals = self.laws.arrival(state["arrival_rate"], self.generator)
        queues = dynamics.slot(
            state["queues"],
            state["service"],
            active=active,
            arrivals=arrivals,
            arrivals_servable=config.arrivals_servable,
        )
        backlog = dynamics.backlog(queues)
        overflow = backlog > config.max_backlog
        silenced = (action & ~active).sum(-1)
        cost = backlog + config.interference_penalty * silenced + config.max_backlog * overflow
        after = {
            "queues": queues,
            "service": self.laws.service(state["service_rate"], self.generator) * exists,
            "scheduled": active,
            "arrived": state["arrived"] + arrivals,
            "backlog_sum": state["backlog_sum"] + backlog,
            "overflow": overflow,
        }
        scale = exists.sum(-1) if config.reward_scale == "nodes" else config.reward_scale
        return Transition(after, reward=-cost / scale, truncated=overflow)

    def load(self, state: TensorDict) -> Tensor:
        """Return the number of waiting packets, `[B]`."""
        return dynamics.backlog(state["queues"])

    def observe(self, state: TensorDict) -> Entries:
        """Return the conflict graph, the metrics and, if the config asks for it, a prior."""
        seen = {"graph": observe.graph(state, adjacency=self.adjacency), "metrics": observe.metrics(state)}
        if self.config.prior == "none":
            return seen
        weight = state["queues"] * state["service"]
        if self.config.prior == "degree-weight":
            weight = weight * self.importance[state["conflict_graph"]]
        return {**seen, PRIOR: weight}

    def mask(self, state: TensorDict) -> Tensor:
        """Return which nodes have something to send, `[B, N]` bool."""
        queues, service = state["queues"], state["service"]
        sends = dynamics.servable(queues, service, arrivals_servable=self.config.arrivals_servable)
        return sends & state["node_mask"]
