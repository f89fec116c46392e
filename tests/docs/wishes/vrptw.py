"""One vehicle serves customers in their time windows; it returns to the depot to load."""

import torch

import edgewise as ew


class Config(ew.Config):
    """Settings."""

    num_customers: ew.WholeRange = (6, 10)
    """Customers."""
    capacity: float = 3.0
    """Load of the vehicle, in units of the mean demand."""
    max_steps: int = 40
    """Most moves."""


class RoutingEnv(ew.GraphEnv[Config]):
    """Choose the next stop; driving costs its distance, and being late costs a point."""

    def setup(self):
        nodes = ew.upper_bound(self.config.num_customers) + 1
        self.graph = ew.GraphSpec(nodes, 6, edges=ew.Nearest(5), position_dim=2, graph_features=2)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        nodes = self.graph.num_nodes
        exists = (
            torch.arange(nodes, device=self.device)
            <= self.sample_int(self.config.num_customers, count)[:, None]
        )
        draw = torch.rand(count, nodes, 5, generator=self.generator, device=self.device)
        opens = 2 * draw[..., 2]
        open_ = exists.clone()
        open_[:, 0] = False
        return {
            "exists": exists,
            "place": draw[..., :2],
            "opens": opens,
            "closes": opens + 0.5 + draw[..., 3],
            "demand": 0.5 + draw[..., 4],
            "waiting": open_,
            "at": torch.zeros(count, dtype=torch.long, device=self.device),
            "load": torch.full((count,), self.config.capacity, device=self.device),
            "time": torch.zeros(count, device=self.device),
        }

    def advance(self, state, action):
        pick = action[:, None]
        here = state["place"].gather(1, state["at"][:, None, None].expand(-1, 1, 2)).squeeze(1)
        there = state["place"].gather(1, pick[..., None].expand(-1, 1, 2)).squeeze(1)
        distance = (here - there).norm(dim=-1)
        home = action == 0
        arrival = torch.maximum(state["time"] + distance, state["opens"].gather(1, pick).squeeze(1))
        time = torch.where(home, state["time"] + distance, arrival)
        late = (time > state["closes"].gather(1, pick).squeeze(1)) & ~home
        load = torch.where(
            home, self.config.capacity, state["load"] - state["demand"].gather(1, pick).squeeze(1)
        )
        waiting = state["waiting"].scatter(1, pick, False)
        done = ~waiting.any(-1) & home
        return ew.Transition(
            {"at": action, "time": time, "load": load, "waiting": waiting},
            reward=-distance - late.float(),
            terminated=done,
        )

    def observe(self, state):
        now = state["time"][:, None]
        at = torch.nn.functional.one_hot(state["at"], self.graph.num_nodes).bool()
        features = (at, state["waiting"], state["opens"] - now, state["closes"] - now, state["demand"])
        is_depot = torch.zeros_like(at)
        is_depot[:, 0] = True
        x = torch.stack([each.float() for each in (*features, is_depot)], -1)
        u = torch.stack((state["load"] / self.config.capacity, state["time"]), -1)
        graph = {"x": x, "pos": state["place"], "node_mask": state["exists"], "u": u}
        return {
            "graph": graph,
            "metrics": {"served": (state["exists"] & ~state["waiting"]).float().sum(-1) - 1},
        }

    def mask(self, state):
        fits = state["waiting"] & (state["demand"] <= state["load"][:, None])
        fits[:, 0] = (state["at"] != 0) | ~state["waiting"].any(-1)
        return fits


def earliest(env):
    """Return the rule that goes where the window closes first."""

    def policy(root):
        closes = root["state", "closes"].masked_fill(~root["action_mask"], torch.inf)
        closes[:, 0] = torch.where(root["action_mask"][:, 0], 1e6, torch.inf)
        return root.set("action", closes.argmin(-1))

    return policy


BASELINES = {"earliest": earliest}
