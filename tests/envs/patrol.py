"""A small environment with agents, right in every way: up to four of them on a line."""

import torch

from edgewise.config.model import Config
from edgewise.envs.base import GraphEnv, Transition
from edgewise.graphs.actions import AgentsDiscrete
from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec


class PatrolConfig(Config):
    max_steps: int = 9
    agents: int = 4
    drift: float = 0.0


class PatrolEnv(GraphEnv[PatrolConfig]):
    """Agents go left, stay or go right until they are more than two from the middle; paid by distance."""

    stage_settings = ("drift",)

    def setup(self):
        self.graph = GraphSpec(self.config.agents, 2, edges=Explicit(0))
        self.actions = AgentsDiscrete(self.config.agents, 3)

    def spawn(self, count):
        agents = torch.randint(1, self.config.agents + 1, (count, 1), generator=self.generator)
        place = torch.randint(-2, 3, (count, self.config.agents), generator=self.generator)
        drift = torch.full((count, 1), self.config.drift)
        return {"place": place, "active": torch.arange(self.config.agents) < agents, "drift": drift}

    def advance(self, state, action):
        active = state["active"]
        place = state["place"] + torch.where(active, action - 1, 0)
        reward = place.float().abs() + state["drift"]
        return Transition({"place": place}, reward=reward, agents_terminated=place.abs() > 2)

    def observe(self, state):
        exists = state["active"] | state["terminated"]
        x = torch.stack((state["place"].float(), state["active"].float()), -1)
        none = torch.zeros(len(x), 2, 0, dtype=torch.int64)
        graph = {"x": x, "node_mask": exists, "edge_index": none, "edge_mask": none[:, 0].bool()}
        return {"graph": graph, "metrics": {"reached": state["place"].float().abs().amax(-1)}}

    def mask(self, state):
        legal = torch.ones(*state["place"].shape, 3, dtype=torch.bool)
        legal[..., 1] = state["step"].unsqueeze(-1) % 2 == 0
        return legal
