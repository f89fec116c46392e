"""Graph colouring: no edge may join two nodes of one colour. `edgewise train coloring.py` trains it."""

import math

import torch

import edgewise as ew


class ColoringConfig(ew.Config):
    """Settings of graph colouring."""

    num_nodes: ew.WholeRange = (10, 20)
    """Nodes of a graph, or the range that their number is drawn from."""
    density: ew.RealRange = (0.2, 0.5)
    """Probability of an edge between two nodes, or the range that it is drawn from."""


class ColoringEnv(ew.GraphEnv[ColoringConfig]):
    """Choose the next node; it gets the smallest colour that fits, and each new colour costs 1."""

    def setup(self):
        capacity = ew.upper_bound(self.config.num_nodes)
        ends = torch.arange(capacity, device=self.device)
        pairs = torch.cartesian_prod(ends, ends)
        self.register_buffer("pairs", pairs[pairs[:, 0] != pairs[:, 1]].T.contiguous())
        self.graph = ew.GraphSpec(capacity, node_features=4, edges=ew.Explicit(self.pairs.shape[1]))
        self.actions = ew.ChooseNode()

    def spawn(self, count):
        slots = torch.arange(self.graph.num_nodes, device=self.device)
        exists = slots < self.sample_int(self.config.num_nodes, count).unsqueeze(-1)
        density = self.sample_float(self.config.density, count).view(-1, 1, 1)
        shape = (count, self.graph.num_nodes, self.graph.num_nodes)
        upper = (torch.rand(shape, generator=self.generator, device=self.device) < density).triu(1)
        both = exists.unsqueeze(-1) & exists.unsqueeze(-2)
        return {
            "exists": exists,
            "adjacent": (upper | upper.transpose(-1, -2)) & both,
            "colour": torch.full_like(exists, -1, dtype=torch.int64),
        }

    def advance(self, state, action):
        fitting = smallest_fitting(state).gather(-1, action.unsqueeze(-1))
        cost = (fitting >= num_colours(state).unsqueeze(-1)).squeeze(-1)
        colour = state["colour"].scatter(-1, action.unsqueeze(-1), fitting)
        is_done = ((colour >= 0) | ~state["exists"]).all(-1)
        return ew.Transition({"colour": colour}, reward=-cost.float(), terminated=is_done)

    def observe(self, state):
        is_open = self.mask(state)
        fitting = smallest_fitting(state)
        needs_new = is_open & (fitting >= num_colours(state).unsqueeze(-1))
        x = torch.stack(
            (is_open, needs_new, saturation(state).float().log1p(), open_degree(state).log1p()), -1
        ).float()
        source, target = self.pairs
        graph = {
            "x": x,
            "node_mask": state["exists"],
            "edge_index": self.pairs.expand(len(x), -1, -1),
            "edge_mask": state["adjacent"][:, source, target],
        }
        return {"graph": graph, "metrics": {"colours": num_colours(state).float()}}

    def mask(self, state):
        return state["exists"] & (state["colour"] < 0)


def used_colours(state):
    """Return which colours the neighbours of each node have, `[B, N, N]` bool, node first."""
    colour = torch.nn.functional.one_hot(state["colour"] + 1, state["colour"].shape[-1] + 1)[..., 1:]
    return state["adjacent"].float() @ colour.float() > 0


def smallest_fitting(state):
    """Return the smallest colour that no neighbour has, `[B, N]`; a node has fewer than N neighbours."""
    return used_colours(state).logical_not().float().argmax(-1)


def saturation(state):
    """Return the number of different colours among the neighbours of each node, `[B, N]`."""
    return used_colours(state).sum(-1)


def open_degree(state):
    """Return the number of neighbours without a colour, `[B, N]` float."""
    is_open = state["exists"] & (state["colour"] < 0)
    return (state["adjacent"] & is_open.unsqueeze(-2)).sum(-1).float()


def num_colours(state):
    """Return the number of colours in use, `[B]`."""
    return state["colour"].amax(-1) + 1


def largest_first(env):
    """Return the policy that colours nodes in the order of their degree, largest first."""

    def policy(root):
        degree = root["state", "adjacent"].sum(-1)
        return root.set("action", degree.masked_fill(~env.mask(root["state"]), -1).argmax(-1))

    return policy


def dsatur(env):
    """Return DSATUR (Brélaz 1979): most colours among its neighbours first, then most open neighbours."""

    def policy(root):
        state = root["state"]
        order = saturation(state) * env.graph.num_nodes + open_degree(state)
        return root.set("action", order.masked_fill(~env.mask(state), -1).argmax(-1))

    return policy


BASELINES = {"largest_first": largest_first, "dsatur": dsatur}

PALETTE = ("blue", "orange", "teal", "purple", "pink", "good", "bad", "warn", "accent", "ink")


def replay(states):
    """Draw the graph on a circle, each node in its colour."""
    exists = states["exists"][0]
    nodes = exists.nonzero().squeeze(-1).tolist()
    angles = [2 * math.pi * number / len(nodes) for number in range(len(nodes))]
    source, target = states["adjacent"][0].triu(1).nonzero().T.tolist()
    colours = [
        [PALETTE[each % len(PALETTE)] if each >= 0 else "faint" for each in row]
        for row in states["colour"][:, exists].tolist()
    ]
    return {
        "format": "edgewise-replay/1",
        "title": "graph colouring",
        "layers": [
            {
                "name": "nodes",
                "kind": "nodes",
                "x": [math.cos(angle) for angle in angles],
                "y": [math.sin(angle) for angle in angles],
                "size": 9,
                "color": colours[0],
            },
            {"name": "edges", "kind": "edges", "between": "nodes", "source": source, "target": target},
        ],
        "frames": [{"nodes": {"color": row}} for row in colours],
        "series": [{"name": "colours", "values": num_colours(states).tolist()}],
        "fps": 4,
        "smooth": False,
    }
