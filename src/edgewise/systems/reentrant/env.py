"""The re-entrant environments: what servers work on, at every event or by potentials that a rule reads."""

from __future__ import annotations

from typing import TypeVar

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.symlog import symlog
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import Amount, ChooseEdgePerGroup, PerNode
from edgewise.graphs.keys import PRIOR
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology
from edgewise.systems.reentrant import dynamics, observe, rules, scenario
from edgewise.systems.reentrant.config import PotentialsConfig, ReentrantConfig, ReentrantSettings
from edgewise.systems.reentrant.network import load_networks
from edgewise.systems.reentrant.tables import Tables

SettingsT = TypeVar("SettingsT", bound=ReentrantSettings)


class QueueingNetworkEnv(GraphEnv[SettingsT]):
    """Base of both: the networks, and what an event changes."""

    tables: Tables

    def load_tables(self) -> None:
        """Load the networks; each world refers to one by its index."""
        self.queueing_networks = load_networks(self.config.networks, seed=self.config.network_seed)
        self.tables = Tables(self.queueing_networks)

    def spawn(self, count: int) -> Entries:
        """Sample new worlds, each on one of the networks, with geometric numbers of jobs."""
        return scenario.sample_worlds(
            count, self.tables, initial_jobs=self.config.initial_jobs, generator=self.generator
        )

    def load(self, state: TensorDict) -> Tensor:
        """Return the number of jobs, `[B]`."""
        jobs: Tensor = state["jobs"].sum(-1)
        return jobs

    def after(
        self, state: TensorDict, jobs: Tensor, cost: Tensor, time: Tensor, *, events: int
    ) -> Transition:
        """Return the transition of some events, with the integral of costs over their mean times.

        The reward is minus the cost of waiting jobs; a unit is as long as so many events take on average.
        """
        after = {"jobs": jobs, "cost_sum": state["cost_sum"] + cost, "time": state["time"] + time}
        per_unit = self.tables.of(self.tables.event_rate, state["network"]) / events
        return Transition(after, reward=-cost.float() * per_unit / self.config.reward_scale)


class ReentrantEnv(QueueingNetworkEnv[ReentrantConfig]):
    """Choose which queue each server works on until the next event. README.md is the card.

    Example:
        >>> env = ReentrantEnv(ReentrantConfig(networks=("reentrant2", "re-reentrant3")), num_envs=8, seed=0)
        >>> env.rollout(3, break_when_any_done=False)["next", "reward"].shape
        torch.Size([8, 3, 1])
    """

    features: Tensor

    def setup(self) -> None:
        """Build the graph over queues and servers, which begins with the edges from servers to queues."""
        self.load_tables()
        queues, servers = self.tables.num_queues, self.tables.num_servers
        own = observe.queue_features(self.tables)
        features = torch.zeros(len(self.tables), queues + servers, own.shape[-1] + 1)
        features[:, :queues, :-1], features[:, queues:, -1] = own, 1.0
        bank = observe.server_bank(self.queueing_networks, self.tables)
        self.graph = GraphSpec(queues + servers, features.shape[-1] + 1, edges=Topology(bank))
        self.actions = ChooseEdgePerGroup(servers, self.tables.most_queues)
        self.register_buffer("features", features)
        self.tables.to(self.device)

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Make one event, with every server at work on the queue that it chose."""
        chain = self.tables.chain(state["network"])
        place = (action - 1).clamp_min(0).unsqueeze(-1)
        serving = chain.queue_of.gather(-1, place).squeeze(-1)
        draw = torch.rand(len(action), generator=self.generator, device=self.device)
        jobs, time = dynamics.event(state["jobs"], serving, action > 0, draw, chain)
        cost = (state["jobs"] * self.tables.of(self.tables.cost, state["network"])).sum(-1) * time
        return self.after(state, jobs, cost.double(), time.double(), events=1)

    def mask(self, state: TensorDict) -> Tensor:
        """Return the queues with jobs of each server, `[B, S, 1 + K]` bool; none (0) only without any."""
        waiting = self._own(state["jobs"] > 0, state)
        return torch.cat((~waiting.any(-1, keepdim=True), waiting), -1)

    def observe(self, state: TensorDict) -> Entries:
        """Return the graph, the metrics and, if the config asks, a prior."""
        network, tables = state["network"], self.tables
        jobs = torch.nn.functional.pad(symlog(state["jobs"]), (0, tables.num_servers)).unsqueeze(-1)
        servers = (tables.queue_of < tables.num_queues).any(-1)
        seen = {
            "graph": {
                "x": torch.cat((jobs, tables.of(self.features, network)), -1),
                "node_mask": tables.of(torch.cat((tables.queue_mask, servers), -1), network),
                "topology": network,
            },
            "metrics": observe.metrics(state),
        }
        if self.config.prior == "none":
            return seen
        index = rules.RULES[self.config.prior](tables, state["jobs"], network)
        own = self._own(index, state)
        exists = tables.of(tables.queue_of, network) < tables.num_queues
        scale = own.masked_fill(~exists, 0.0).abs().amax(-1, keepdim=True).clamp_min(1e-9)
        return {**seen, PRIOR: torch.nn.functional.pad((own / scale).masked_fill(~exists, 0.0), (1, 0))}

    def _own(self, values: Tensor, state: TensorDict) -> Tensor:
        """Return the values of the queues of each server, `[B, S, K]`; zero where it has fewer."""
        queue_of = self.tables.of(self.tables.queue_of, state["network"])
        outside = values.new_zeros(len(values), 1)
        return torch.cat((values, outside), 1).gather(1, queue_of.flatten(1)).view_as(queue_of)


class ReentrantPotentialsEnv(QueueingNetworkEnv[PotentialsConfig]):
    """Give queues potentials, by which servers choose until the next decision. README.md is the card.

    Example:
        >>> env = ReentrantPotentialsEnv(PotentialsConfig(max_steps=4), num_envs=4, seed=0)
        >>> env.rollout(1)["next", "done"].all()
        tensor(True)
    """

    features: Tensor

    def setup(self) -> None:
        """Build the graph over queues."""
        self.load_tables()
        features = observe.queue_features(self.tables)
        bank = observe.queue_bank(self.queueing_networks)
        self.sees_jobs = self.config.hold != "episode"
        width = features.shape[-1] + int(self.sees_jobs)
        self.graph = GraphSpec(self.tables.num_queues, width, edges=Topology(bank))
        self.actions = PerNode(Amount(-1.0, 1.0, dim=4))
        self.register_buffer("features", features)
        self.tables.to(self.device)

    def decide(self, state: TensorDict, action: Tensor) -> rules.Potential:  # noqa: ARG002
        """Return the potentials that actions stand for."""
        return rules.Potential.of(action)

    def advance(self, state: TensorDict, action: rules.Potential) -> Transition:
        """Make some events, with servers that follow the potentials."""
        network, jobs, tables = state["network"], state["jobs"], self.tables
        chain, price = tables.chain(network), tables.of(tables.cost, network)
        events = self.config.events_per_step
        draws = torch.rand(len(jobs), events, generator=self.generator, device=self.device)
        cost, time = torch.zeros(2, len(jobs), dtype=torch.float64, device=self.device).unbind()
        for draw in draws.unbind(1):
            index = rules.potential_index(tables, jobs, network, action)
            following, took = dynamics.event(jobs, *dynamics.queue_to_serve(index, jobs, chain), draw, chain)
            cost, time, jobs = cost + (jobs * price).sum(-1) * took, time + took, following
        return self.after(state, jobs, cost, time, events=events)

    def observe(self, state: TensorDict) -> Entries:
        """Return the graph over queues, and the metrics."""
        network = state["network"]
        x = self.tables.of(self.features, network)
        if self.sees_jobs:
            x = torch.cat((x, symlog(state["jobs"]).unsqueeze(-1)), -1)
        exists = self.tables.of(self.tables.queue_mask, network)
        graph = {"x": x, "node_mask": exists, "topology": network}
        return {"graph": graph, "metrics": observe.metrics(state)}
