"""Choose a link and how much capacity it gets: `edgewise train capacity.py`, or `--algorithm sac`."""

from typing import Literal

import torch

import edgewise as ew


class CapacityConfig(ew.Config):
    """Settings of the allocation."""

    num_nodes: ew.WholeRange = (5, 8)
    """Nodes of a ring with as many chords."""
    budget: float = 4.0
    """Capacity to give away, in units of the mean load of a link."""
    max_steps: int = 5
    """Decisions of an episode."""
    fix: Literal["nothing", "link", "amount"] = "nothing"
    """Part of the action that is not used: the link is random, or the amount is an even share of the rest."""


class CapacityEnv(ew.GraphEnv[CapacityConfig]):
    """Spend a budget on links so that delays, load / (capacity - load), become small."""

    def setup(self):
        nodes = ew.upper_bound(self.config.num_nodes)
        self.graph = ew.GraphSpec(nodes, 1, edges=ew.Explicit(2 * nodes, 3), graph_features=2)
        self.actions = ew.Then(link=ew.ChooseEdge(), amount=ew.Amount(low=0, high=1))

    def spawn(self, count):
        slots = torch.arange(self.graph.num_nodes, device=self.device)
        size = self.sample_int(self.config.num_nodes, count).unsqueeze(-1)
        hop = 2 + torch.rand(count, len(slots), generator=self.generator, device=self.device) * (size - 3)
        source, exists = slots.expand(count, -1), slots < size
        targets = torch.cat(((source + 1) % size, (source + hop.long()) % size), -1)
        draw = torch.rand(count, 2 * len(slots), generator=self.generator, device=self.device)
        return {
            "ends": torch.stack((source.repeat(1, 2), targets), 1),
            "exists": exists,
            "load": (0.2 + draw**3 * 3) * exists.repeat(1, 2),
            "extra": torch.full_like(draw, 0.2),
            "left": torch.full((count,), self.config.budget, device=self.device),
        }

    def advance(self, state, action):
        link, share, links = action["link"], action["amount"], state["exists"].repeat(1, 2)
        if self.config.fix == "amount":
            share = 1.0 / (self.config.max_steps - state["step"])
        if self.config.fix == "link":
            draw = torch.rand(links.shape, generator=self.generator, device=self.device)
            link = draw.masked_fill(~links, -1.0).argmax(-1)
        given = share * state["left"]
        extra = state["extra"].scatter_add(-1, link.unsqueeze(-1), given.unsqueeze(-1))
        reward = delay(state["load"], state["extra"]) - delay(state["load"], extra)
        return ew.Transition({"extra": extra, "left": state["left"] - given}, reward=reward)

    def observe(self, state):
        links = state["exists"].repeat(1, 2)
        features = torch.stack((state["load"], state["extra"], (state["load"] / state["extra"]).log1p()), -1)
        u = torch.stack((state["left"], state["step"] / self.config.max_steps), -1)
        x = torch.ones_like(state["exists"], dtype=torch.float32).unsqueeze(-1)
        graph = {"x": x, "node_mask": state["exists"], "edge_index": state["ends"], "edge_mask": links}
        graph |= {"edge_attr": features, "u": u}
        return {"graph": graph, "metrics": {"delay": delay(state["load"], state["extra"])}}


def delay(load, extra):
    """Return the mean delay of links with a load, by Kleinrock's formula, `[B]`."""
    return (load / extra).sum(-1) / (load > 0).sum(-1)


def steepest(env):
    """Return the rule that gives an even share to the link where it reduces the delay most."""

    def policy(root):
        state = root["state"]
        share = 1.0 / (env.config.max_steps - state["step"])
        given = (share * state["left"]).unsqueeze(-1)
        gain = state["load"] / state["extra"] - state["load"] / (state["extra"] + given)
        return root.set("action", env.actions.pack(link=gain.argmax(-1), amount=share))

    return policy


BASELINES = {"steepest": steepest}
