"""The travelling salesman: visit every city once by a short round trip. `edgewise train tsp.py` trains it."""

import torch

import edgewise as ew


class TSPConfig(ew.Config):
    """Settings of the travelling salesman."""

    num_cities: ew.WholeRange = (10, 20)
    """Cities in the unit square, or the range that their number is drawn from."""
    neighbours: int = 8
    """Nearest cities that each city hears in message passing."""


class TSPEnv(ew.GraphEnv[TSPConfig]):
    """Choose the next city until all are visited; the reward is minus the way, the last one back included."""

    def setup(self):
        capacity = ew.upper_bound(self.config.num_cities)
        self.graph = ew.GraphSpec(capacity, node_features=3, edges=ew.Nearest(self.config.neighbours), position_dim=2)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        slots = torch.arange(self.graph.num_nodes, device=self.device)
        exists = slots < self.sample_int(self.config.num_cities, count).unsqueeze(-1)
        place = torch.rand(*exists.shape, 2, generator=self.generator, device=self.device)
        first = torch.zeros(count, dtype=torch.int64, device=self.device)
        return {
            "place": place,
            "exists": exists,
            "visited": slots == first.unsqueeze(-1),
            "first": first,
            "current": first.clone(),
            "length": torch.zeros(count, device=self.device),
        }

    def advance(self, state, action):
        visited = state["visited"].scatter(-1, action.unsqueeze(-1), True)
        is_last = (visited | ~state["exists"]).all(-1)
        way = distance(state["place"], state["current"], action)
        way = way + torch.where(is_last, distance(state["place"], action, state["first"]), 0.0)
        changes = {"visited": visited, "current": action, "length": state["length"] + way}
        return ew.Transition(changes, reward=-way, terminated=is_last)

    def observe(self, state):
        slots = torch.arange(self.graph.num_nodes, device=state.device)
        here, start = (slots == state[name].unsqueeze(-1) for name in ("current", "first"))
        x = torch.stack((state["visited"], here, start), -1).float()
        graph = {"x": x, "pos": state["place"], "node_mask": state["exists"]}
        return {"graph": graph, "metrics": {"tour": state["length"]}}

    def mask(self, state):
        return state["exists"] & ~state["visited"]


def distance(place, one, other):
    """Distance `[B]` between two cities of each world."""
    ends = (place.gather(1, city.view(-1, 1, 1).expand(-1, 1, 2)) for city in (one, other))
    return torch.linalg.vector_norm(next(ends) - next(ends), dim=-1).squeeze(-1)


def nearest(env):
    """Return the policy that goes to the nearest city that is left."""

    def policy(root):
        state = root["state"]
        here = state["place"].gather(1, state["current"].view(-1, 1, 1).expand(-1, 1, 2))
        far = torch.linalg.vector_norm(state["place"] - here, dim=-1)
        return root.set("action", far.masked_fill(~env.mask(state), torch.inf).argmin(-1))

    return policy


BASELINES = {"nearest": nearest}
