"""Place traffic sensors on a road network of 10,000 junctions. `edgewise train sensors.py` trains it."""

import torch
from scipy.spatial import cKDTree

import edgewise as ew
from edgewise.graphs.topology import TopologyBank

TYPICAL_REACH = 10.0
"""Junctions within two roads of one; the unit of rewards."""


class SensorsConfig(ew.Config):
    """Settings of sensor placement."""

    num_junctions: int = 10_000
    """Junctions of a road network, four or more."""
    num_sensors: int = 32
    """Sensors to place in an episode, at most as many as there are junctions."""
    num_networks: int = 4
    """Number of different road networks; each world uses one of them."""
    network_seed: int = 0
    """Random seed of the road networks."""
    junctions_per_town: int = 500
    """Junctions per centre of traffic; traffic decreases with the distance from the nearest centres."""


class SensorsEnv(ew.GraphEnv[SensorsConfig]):
    """Choose a junction for each sensor; the reward is the traffic within two roads that no other covers."""

    def setup(self):
        config = self.config
        if config.num_junctions < 4:
            raise ew.ConfigError(f"num_junctions: got {config.num_junctions}, expected 4 or more")
        if not 1 <= config.num_sensors <= config.num_junctions:
            raise ew.ConfigError(f"num_sensors: got {config.num_sensors}, expected 1 to num_junctions")
        seeds = range(config.network_seed, config.network_seed + config.num_networks)
        places = [sample_places(config.num_junctions, seed) for seed in seeds]
        roads = [build_roads(place) for place in places]
        reach = [reachable(road, config.num_junctions) for road in roads]
        widest = max(table.shape[1] for table in reach)
        self.register_buffer("place", torch.stack(places).to(self.device))
        self.register_buffer("reach", torch.stack([widen(table, widest) for table in reach]).to(self.device))
        sees = (self.reach < config.num_junctions).sum(-1) / TYPICAL_REACH
        self.register_buffer("sees", sees)
        edges = ew.Topology(TopologyBank.from_edge_lists(roads))
        self.graph = ew.GraphSpec(config.num_junctions, node_features=4, edges=edges, position_dim=2)
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        network = torch.randint(len(self.place), (count,), generator=self.generator, device=self.device)
        traffic = self.sample_traffic(network)
        return {
            "network": network,
            "traffic": traffic,
            "is_covered": torch.zeros_like(traffic, dtype=torch.bool),
            "has_sensor": torch.zeros_like(traffic, dtype=torch.bool),
            "total": torch.zeros(count, device=self.device),
        }

    def sample_traffic(self, network):
        """Sample traffic `[B, N]` with mean 1: high near town centres, and different at every junction."""
        place = self.place[network]
        count, nodes = place.shape[:2]
        towns = max(nodes // self.config.junctions_per_town, 1)
        which = torch.randint(nodes, (count, towns), generator=self.generator, device=self.device)
        centre = place.gather(1, which.unsqueeze(-1).expand(-1, -1, 2))
        size = 0.3 * (self.config.junctions_per_town / nodes) ** 0.5
        near = (-(torch.cdist(place, centre) / size).square()).exp().sum(-1)
        noise = torch.randn(count, nodes, generator=self.generator, device=self.device)
        traffic = (0.1 + near) * (0.5 * noise).exp()
        return traffic / traffic.mean(-1, keepdim=True)

    def advance(self, state, action):
        chosen = action.unsqueeze(-1)
        covers = self.reach[state["network"], action]
        left = state["traffic"].masked_fill(state["is_covered"], 0.0)
        gain = torch.nn.functional.pad(left, (0, 1)).gather(1, covers).sum(-1)
        covered = torch.nn.functional.pad(state["is_covered"], (0, 1)).scatter(1, covers, True)[:, :-1]
        has_sensor = state["has_sensor"].scatter(1, chosen, True)
        reward = gain / TYPICAL_REACH
        changes = {"is_covered": covered, "has_sensor": has_sensor, "total": state["total"] + reward}
        return ew.Transition(changes, reward=reward, terminated=has_sensor.sum(-1) >= self.config.num_sensors)

    def observe(self, state):
        left = state["traffic"].masked_fill(state["is_covered"], 0.0)
        x = torch.stack((left, left.log1p(), state["is_covered"].float(), self.sees[state["network"]]), -1)
        graph = {
            "x": x,
            "pos": self.place[state["network"]],
            "topology": state["network"],
            "node_mask": torch.ones_like(state["is_covered"]),
        }
        return {"graph": graph, "metrics": {"covered": state["total"]}}

    def mask(self, state):
        return ~state["has_sensor"]


def sample_places(nodes, seed):
    """Sample junctions `[N, 2]` in the unit square, three quarters of them in dense districts."""
    generator = torch.Generator().manual_seed(seed)
    place = torch.rand(nodes, 2, generator=generator)
    districts = place[torch.randint(nodes, (max(nodes // 100, 1),), generator=generator)]
    home = districts[torch.randint(len(districts), (nodes,), generator=generator)]
    offset = torch.randn(nodes, 2, generator=generator) * 3 / nodes**0.5
    is_dense = torch.rand(nodes, 1, generator=generator) < 0.75
    return torch.where(is_dense, home + offset, place)


def build_roads(place):
    """Connect every junction with the three nearest, both ways: edges `[2, E]`."""
    near = torch.from_numpy(cKDTree(place.numpy()).query(place.numpy(), 4)[1])
    own = torch.arange(len(near)).unsqueeze(-1).expand_as(near)
    ends = torch.stack((near.flatten(), own.flatten()))
    ends = torch.cat((ends, ends.flip(0)), 1)
    return torch.unique(ends[:, ends[0] != ends[1]], dim=1)


def reachable(roads, nodes):
    """Return the junctions within two roads of each one, itself included, `[N, R]`; N fills the rows."""
    own = torch.arange(nodes)
    source, target = torch.cat((roads, torch.stack((own, own))), 1)
    order = source.argsort(stable=True)
    near = as_table(source[order], target[order], nodes)
    both = torch.nn.functional.pad(near, (0, 0, 0, 1), value=nodes)[near].flatten(1)
    key = torch.unique(own.unsqueeze(-1) * (nodes + 1) + both)
    key = key[key % (nodes + 1) < nodes]
    return as_table(key // (nodes + 1), key % (nodes + 1), nodes)


def as_table(row, value, nodes):
    """Return the values of each row, `[N, R]`, given sorted rows; N fills the table."""
    count = torch.bincount(row, minlength=nodes)
    rank = torch.arange(len(row)) - (count.cumsum(0) - count)[row]
    table = torch.full((nodes, int(count.max())), nodes)
    table[row, rank] = value
    return table


def widen(table, width):
    """Return a table `[N, R]` with `width` columns, the new ones full of N."""
    return torch.nn.functional.pad(table, (0, width - table.shape[1]), value=len(table))


def uncovered_within_reach(env, state, traffic):
    """Return the sum of `traffic [B, N]` within two roads of every junction, `[B, N]`."""
    padded = torch.nn.functional.pad(traffic, (0, 1))
    found = [
        values[env.reach[network]].sum(-1) for values, network in zip(padded, state["network"], strict=True)
    ]
    return torch.stack(found)


def busiest(env):  # noqa: ARG001
    """Return the policy that chooses the junction with the most uncovered traffic of its own."""

    def policy(root):
        left = root["state", "traffic"].masked_fill(root["state", "is_covered"], 0.0)
        return root.set("action", left.masked_fill(root["state", "has_sensor"], -1.0).argmax(-1))

    return policy


def greedy(env):
    """Return the policy that adds most covered traffic; it is within 1 - 1/e of the optimum."""

    def policy(root):
        state = root["state"]
        left = state["traffic"].masked_fill(state["is_covered"], 0.0)
        gain = uncovered_within_reach(env, state, left)
        return root.set("action", gain.masked_fill(state["has_sensor"], -1.0).argmax(-1))

    return policy


BASELINES = {"busiest": busiest, "greedy": greedy}
