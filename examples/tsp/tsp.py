"""The travelling salesman: visit every city once by a short round trip. `edgewise train tsp.py` trains it."""

import torch

import edgewise as ew


class TSPConfig(ew.Config):
    """Settings of the travelling salesman."""

    num_cities: ew.WholeRange = (10, 20)
    """Cities in the unit square, two or more, or the range that their number is drawn from."""
    neighbours: int = 8
    """Nearest unvisited cities from which each city receives messages."""
    choose_first: bool = False
    """Whether the first action chooses the first city; otherwise every tour begins at city 0."""


class TSPEnv(ew.GraphEnv[TSPConfig]):
    """Choose the next city until all are visited; the reward is minus the distance, the way back included."""

    def setup(self):
        if ew.lower_bound(self.config.num_cities) < 2:
            raise ew.ConfigError(f"num_cities: got {self.config.num_cities}, expected 2 or more")
        edges = ew.Nearest(self.config.neighbours, senders=(0,), receivers=(0,))
        capacity = ew.upper_bound(self.config.num_cities)
        self.graph = ew.GraphSpec(capacity, node_features=5, edges=edges, position_dim=2, node_types=2)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        slots = torch.arange(self.graph.num_nodes, device=self.device)
        exists = slots < self.sample_int(self.config.num_cities, count).unsqueeze(-1)
        place = torch.rand(*exists.shape, 2, generator=self.generator, device=self.device)
        first = torch.zeros(count, dtype=torch.int64, device=self.device)
        return {
            "place": place,
            "exists": exists,
            "visited": (slots == first.unsqueeze(-1)) & (not self.config.choose_first),
            "first": first,
            "current": first.clone(),
            "length": torch.zeros(count, device=self.device),
        }

    def advance(self, state, action):
        visited = state["visited"].scatter(-1, action.unsqueeze(-1), True)
        is_last = (visited | ~state["exists"]).all(-1)
        has_begun = state["visited"].any(-1)
        current, first = (torch.where(has_begun, state[name], action) for name in ("current", "first"))
        way = distances_to(state["place"], current).gather(-1, action.unsqueeze(-1))
        back = distances_to(state["place"], first).gather(-1, action.unsqueeze(-1))
        way = (way + torch.where(is_last.unsqueeze(-1), back, 0.0)).squeeze(-1)
        changes = {"visited": visited, "first": first, "current": action, "length": state["length"] + way}
        return ew.Transition(changes, reward=-way, terminated=is_last)

    def observe(self, state):
        """Measure distances in units of the usual distance between neighbours, so that sizes look alike."""
        slots = torch.arange(self.graph.num_nodes, device=state.device)
        has_begun = state["visited"].any(-1, keepdim=True)
        ends = ("current", "first")
        here, start = (has_begun & (slots == state[name].unsqueeze(-1)) for name in ends)
        unit = state["exists"].sum(-1).rsqrt().unsqueeze(-1)
        near = [has_begun / (1 + distances_to(state["place"], state[name]) / unit) for name in ends]
        x = torch.stack((state["visited"], here, start, *near), -1)
        is_behind = state["visited"] & ~here & ~start
        graph = {
            "x": x,
            "pos": state["place"] / unit.unsqueeze(-1),
            "node_type": is_behind.long(),
            "node_mask": state["exists"],
        }
        return {"graph": graph, "metrics": {"tour": state["length"]}}

    def mask(self, state):
        return state["exists"] & ~state["visited"]


def distances_to(place, city):
    """Distances `[B, N]` of all cities `place [B, N, 2]` from one `city [B]` of each world."""
    return torch.linalg.vector_norm(place - place.gather(1, city.view(-1, 1, 1).expand(-1, 1, 2)), dim=-1)


def nearest(env):
    """Return the policy that visits the nearest city that is left."""

    def policy(root):
        state = root["state"]
        distance = distances_to(state["place"], state["current"])
        return root.set("action", distance.masked_fill(~env.mask(state), torch.inf).argmin(-1))

    return policy


def two_opt(env):
    """Return the policy that plans a tour by 2-opt when a world begins, and then follows it."""
    planned_for, rank = None, None

    def policy(root):
        nonlocal planned_for, rank
        state = root["state"]
        if planned_for is None or planned_for.shape != state["place"].shape:
            planned_for, rank = (
                torch.full_like(state["place"], torch.nan),
                torch.zeros_like(state["visited"]).long(),
            )
        is_new = (planned_for != state["place"]).flatten(1).any(-1)
        if is_new.any():
            planned_for = state["place"].clone()
            rank = rank.clone()
            rank[is_new] = plan_tours(state["place"][is_new], state["exists"][is_new]).argsort(-1)
        ahead = (rank - rank.gather(1, state["current"].unsqueeze(-1))) % rank.shape[-1]
        return root.set("action", ahead.masked_fill(~env.mask(state), rank.shape[-1]).argmin(-1))

    return policy


def plan_tours(place, exists):
    """Return tours `[B, N]` that no exchange of two edges shortens; absent cities lie at the first one."""
    place = torch.where(exists.unsqueeze(-1), place, place[:, :1])
    distance = torch.cdist(place, place, compute_mode="donot_use_mm_for_euclid_dist")
    tour = nearest_neighbour_tours(distance)
    slots = torch.arange(tour.shape[-1], device=tour.device)
    for _ in range(tour.shape[-1] ** 2):
        along = distance.gather(1, tour.unsqueeze(-1).expand_as(distance))
        pairs = along.gather(2, tour.unsqueeze(1).expand_as(distance))
        after = pairs.roll((-1, -1), (1, 2))
        edge = pairs.diagonal(1, 1, 2)
        edge = torch.cat((edge, pairs[:, -1:, 0]), 1)
        gain = (edge.unsqueeze(-1) + edge.unsqueeze(-2) - pairs - after).triu(1)
        best, pair = gain.flatten(1).max(-1)
        if not (best > 1e-6).any():
            break
        start, end = (pair // len(slots) + 1).unsqueeze(-1), (pair % len(slots)).unsqueeze(-1)
        is_turned = (slots >= start) & (slots <= end) & (best > 1e-6).unsqueeze(-1)
        tour = tour.gather(1, torch.where(is_turned, start + end - slots, slots))
    return tour


def nearest_neighbour_tours(distance):
    """Return the tours `[B, N]` that go to the nearest city left, from city 0."""
    worlds = torch.arange(len(distance), device=distance.device)
    left = torch.ones(distance.shape[:2], dtype=torch.bool, device=distance.device)
    tour = [torch.zeros_like(worlds)]
    for _ in range(distance.shape[-1] - 1):
        left[worlds, tour[-1]] = False
        tour.append(distance[worlds, tour[-1]].masked_fill(~left, torch.inf).argmin(-1))
    return torch.stack(tour, -1)


BASELINES = {"nearest": nearest, "two_opt": two_opt}
