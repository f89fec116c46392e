"""Choose a link and how much capacity it gets: `edgewise train capacity.py`, or `--algorithm sac`."""

from typing import Literal

import torch

import edgewise as ew


class CapacityConfig(ew.Config):
    """Settings of the allocation."""

    num_nodes: ew.WholeRange = (5, 8)
    """Nodes of a ring with as many chords."""
    most: float = 8.0
    """Most capacity that a decision can give."""
    price: ew.RealRange = (0.05, 1.0)
    """Cost of a unit of capacity, in units of delay, or the range that each network's is drawn from."""
    decisions: int = 5
    """Decisions of an episode."""
    fix: Literal["nothing", "link", "amount"] = "nothing"
    """Part of the action that is not used: the link is random, or the amount half of the most."""


class CapacityEnv(ew.GraphEnv[CapacityConfig]):
    """Buy capacity for links, so that delays, load / (capacity - load), become small."""

    def setup(self):
        nodes = ew.upper_bound(self.config.num_nodes)
        self.graph = ew.GraphSpec(nodes, 1, edges=ew.Explicit(2 * nodes, 2), graph_features=2)
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
            "load": (0.02 + draw**2 * 4) * exists.repeat(1, 2),
            "extra": torch.full_like(draw, 0.5),
            "price": self.sample_float(self.config.price, count),
        }

    def advance(self, state, action):
        link, share, links = action["link"], action["amount"], state["exists"].repeat(1, 2)
        if self.config.fix == "amount":
            share = torch.full_like(share, 0.5)
        if self.config.fix == "link":
            draw = torch.rand(links.shape, generator=self.generator, device=self.device)
            link = draw.masked_fill(~links, -1.0).argmax(-1)
        given = share * self.config.most
        extra = state["extra"].scatter_add(-1, link.unsqueeze(-1), given.unsqueeze(-1))
        saved = delay(state["load"], state["extra"]) - delay(state["load"], extra)
        last = state["step"] + 1 == self.config.decisions
        return ew.Transition({"extra": extra}, 0.1 * (saved - state["price"] * given), terminated=last)

    def observe(self, state):
        links = state["exists"].repeat(1, 2)
        features = torch.stack((state["load"], state["extra"].log()), -1)
        u = torch.stack((state["price"], state["step"] / self.config.decisions), -1)
        x = torch.ones_like(state["exists"], dtype=torch.float32).unsqueeze(-1)
        graph = {"x": x, "node_mask": state["exists"], "edge_index": state["ends"], "edge_mask": links}
        graph |= {"edge_attr": features, "u": u}
        return {"graph": graph, "metrics": {"delay": delay(state["load"], state["extra"])}}


def delay(load, extra):
    """Return the sum of the delays of all links, by Kleinrock's formula, `[B]`."""
    return (load / extra).sum(-1)


def steepest(env):
    """Return the rule that buys where most is saved, as much as is best for that link alone."""

    def policy(root):
        load, extra, price = (root["state", name] for name in ("load", "extra", "price"))
        price = price.unsqueeze(-1)
        given = ((load / price).sqrt() - extra).clamp(0, env.config.most)
        link = (load / extra - load / (extra + given) - price * given).argmax(-1, keepdim=True)
        amount = given.gather(-1, link).squeeze(-1) / env.config.most
        return root.set("action", env.actions.pack(link=link.squeeze(-1), amount=amount))

    return policy


BASELINES = {"steepest": steepest}
