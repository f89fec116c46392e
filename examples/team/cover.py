"""A team of agents in the plane spreads out over landmarks. `edgewise train cover.py` trains it by MAPPO."""

import torch

import edgewise as ew

AGENT, LANDMARK = 0, 1


class CoverConfig(ew.Config):
    """Settings of the team."""

    num_agents: ew.WholeRange = 4
    """Agents, and as many landmarks, or the range that their number is drawn from."""
    speed: float = 0.15
    """Largest distance along each axis that an agent moves in a step."""
    reach: float = 0.1
    """Distance from which a landmark counts as covered."""
    max_steps: int = 25
    """Steps after which an episode is truncated."""


class CoverEnv(ew.GraphEnv[CoverConfig]):
    """Each agent chooses its velocity; the reward is minus the mean distance from landmarks to agents."""

    def setup(self):
        agents = ew.upper_bound(self.config.num_agents)
        edges = ew.Radius(float("inf"), receivers=(AGENT,))
        self.graph = ew.GraphSpec(2 * agents, node_features=2, edges=edges, position_dim=2, node_types=2)
        self.actions = ew.AgentsContinuous(agents, dim=2)

    def spawn(self, count):
        slots = torch.arange(self.num_agents, device=self.device)
        active = slots < self.sample_int(self.config.num_agents, count).unsqueeze(-1)
        place = torch.rand(2, *active.shape, 2, generator=self.generator, device=self.device) * 2 - 1
        velocity = torch.zeros_like(place[0])
        return {"place": place[0], "landmark": place[1], "velocity": velocity, "active": active}

    def advance(self, state, action):
        velocity = self.config.speed * action * state["active"].unsqueeze(-1)
        place = (state["place"] + velocity).clamp(-1.5, 1.5)
        distance = uncovered(place, state["landmark"], state["active"])
        reward = -mean_of(distance, state["active"]).unsqueeze(-1).expand(-1, self.num_agents)
        return ew.Transition({"place": place, "velocity": velocity}, reward=reward)

    def observe(self, state):
        still = torch.zeros_like(state["velocity"])
        kind = torch.tensor([AGENT, LANDMARK], device=state.device).repeat_interleave(self.num_agents)
        graph = {
            "x": torch.cat((state["velocity"], still), 1),
            "pos": torch.cat((state["place"], state["landmark"]), 1),
            "node_type": kind.expand(len(still), -1),
            "node_mask": torch.cat((state["active"], state["active"]), 1),
        }
        distance = uncovered(state["place"], state["landmark"], state["active"])
        covered = mean_of((distance < self.config.reach).float(), state["active"])
        metrics = {"covered": covered, "distance": mean_of(distance, state["active"])}
        return {"graph": graph, "metrics": metrics}


def apart(place, landmark, active):
    """Return distances `[B, A, L]` from agents to landmarks; infinite where one of them is absent."""
    both = active.unsqueeze(-1) & active.unsqueeze(-2)
    distance = torch.linalg.vector_norm(place.unsqueeze(2) - landmark.unsqueeze(1), dim=-1)
    return distance.masked_fill(~both, torch.inf)


def uncovered(place, landmark, active):
    """Return the distance from each landmark to its nearest agent, `[B, L]`; zero for absent ones."""
    return apart(place, landmark, active).amin(1).masked_fill(~active, 0.0)


def mean_of(values, mask):
    """Return the mean `[B]` of the values `[B, A]` where a mask is true."""
    return (values * mask).sum(-1) / mask.sum(-1).clamp(min=1)


def towards(env, state, chosen):
    """Return the action that moves each agent straight towards the landmark `chosen [B, A]`."""
    goal = state["landmark"].gather(1, chosen.unsqueeze(-1).expand(-1, -1, 2))
    offset = (goal - state["place"]) / env.config.speed
    return offset / offset.abs().amax(-1, keepdim=True).clamp(min=1.0)


def nearest(env):
    """Return the policy in which each agent heads for its nearest landmark, whatever the others do."""

    def policy(root):
        state = root["state"]
        chosen = apart(state["place"], state["landmark"], state["active"]).argmin(-1)
        return root.set("action", towards(env, state, chosen))

    return policy


def paired(env):
    """Return the policy that pairs agents and landmarks greedily, closest pair first."""

    def policy(root):
        state = root["state"]
        distance = apart(state["place"], state["landmark"], state["active"])
        chosen = torch.zeros_like(state["active"], dtype=torch.int64)
        worlds = torch.arange(len(distance), device=distance.device)
        for _ in range(env.num_agents):
            closest, pair = distance.flatten(1).min(-1)
            agent, landmark = pair // distance.shape[-1], pair % distance.shape[-1]
            is_pair = closest.isfinite()
            chosen[worlds[is_pair], agent[is_pair]] = landmark[is_pair]
            distance[worlds, agent, :] = torch.inf
            distance[worlds, :, landmark] = torch.inf
        return root.set("action", towards(env, state, chosen))

    return policy


BASELINES = {"nearest": nearest, "paired": paired}


def replay(states):
    """Draw the agents as they move, and the landmarks, which turn green when they are covered."""
    active = states["active"][0]
    place, landmark = states["place"][:, active], states["landmark"][0, active]
    apart_now = torch.linalg.vector_norm(place.unsqueeze(2) - landmark, dim=-1).amin(1)
    colours = [["good" if each < 0.1 else "warn" for each in row] for row in apart_now.tolist()]

    def nodes(name, at, colour):
        return {
            "name": name,
            "kind": "nodes",
            "x": at[:, 0].tolist(),
            "y": at[:, 1].tolist(),
            "color": colour,
        }

    layers = [
        nodes("landmarks", landmark, colours[0]),
        nodes("agents", place[0], ["blue"] * int(active.sum())),
    ]
    frames = [
        {"agents": {"x": at[:, 0].tolist(), "y": at[:, 1].tolist()}, "landmarks": {"color": colour}}
        for at, colour in zip(place, colours, strict=True)
    ]
    distance = [{"name": "distance", "values": apart_now.mean(-1).tolist()}]
    return {
        "format": "edgewise-replay/1",
        "title": "team",
        "layers": layers,
        "frames": frames,
        "series": distance,
        "fps": 8,
    }
