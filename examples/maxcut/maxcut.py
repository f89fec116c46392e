"""Max-cut: two sides with the most weight between them. `edgewise train maxcut.py` trains it."""

import math
from typing import Literal

import torch

import edgewise as ew


class MaxCutConfig(ew.Config):
    """Settings of max-cut."""

    num_nodes: ew.WholeRange = 40
    """Nodes of a graph, six or more, or the range that their number is drawn from."""
    family: Literal["er", "ba", "mixed"] = "mixed"
    """Graphs of Erdős and Rényi, of Barabási and Albert, or each with probability 1/2."""
    weights: Literal["unit", "signs", "mixed"] = "mixed"
    """Weights of edges: all 1, +1 or -1 with equal probability, or each of these in half of the graphs."""
    density: float = 0.15
    """Probability of an edge between two nodes, in graphs of Erdős and Rényi."""
    attachment: int = 4
    """Edges of each new node, in graphs of Barabási and Albert."""
    steps_per_node: float = 2.0
    """Flips after which an episode ends, as a multiple of the number of nodes."""


class MaxCutEnv(ew.GraphEnv[MaxCutConfig]):
    """Choose a node and move it to the other side; the reward is by how much the cut exceeds the best so far.

    Every flip can be taken back, so an episode is a local search, and its result is the best cut on the way.
    """

    def setup(self):
        config = self.config
        if ew.lower_bound(config.num_nodes) <= config.attachment + 1 or config.attachment < 1:
            raise ew.ConfigError(
                f"num_nodes: got {config.num_nodes}, expected {config.attachment + 2} or more: attachment + 2"
            )
        if not 0 < config.density <= 1:
            raise ew.ConfigError(f"density: got {config.density}, expected a probability above 0")
        nodes = ew.upper_bound(config.num_nodes)
        self.register_buffer("pairs", torch.triu_indices(nodes, nodes, 1, device=self.device))
        self.num_links = self.capacity(nodes)
        edges = ew.Explicit(2 * self.num_links, num_features=1)
        self.graph = ew.GraphSpec(nodes, node_features=10, edges=edges)
        self.actions = ew.ChooseNode()

    def capacity(self, nodes):
        """Return the largest number of links: six deviations above the mean; those beyond are left out."""
        grown = self.config.attachment * (nodes - self.config.attachment)
        pairs, density = nodes * (nodes - 1) / 2, self.config.density
        mean, deviation = pairs * density, math.sqrt(pairs * density * (1 - density))
        random = min(math.ceil(mean + 6 * deviation), int(pairs))
        return {"er": random, "ba": grown, "mixed": max(random, grown)}[self.config.family]

    def spawn(self, count):
        nodes = self.graph.num_nodes
        slots = torch.arange(nodes, device=self.device)
        exists = slots < self.sample_int(self.config.num_nodes, count).unsqueeze(-1)
        link = self.sample_links(count, exists)
        order = link.byte().argsort(dim=-1, descending=True, stable=True)[:, : self.num_links]
        link, ends = link.gather(1, order), self.pairs[:, order].transpose(0, 1)
        signs = 1.0 - 2.0 * self.coin(count, self.num_links)
        weight = torch.where(self.either(self.config.weights, "signs", count), signs, 1.0)
        weight = torch.where(link, weight, 0.0).repeat(1, 2)
        index = torch.cat((ends, ends.flip(1)), -1)
        degree = torch.zeros(count, nodes, device=self.device).scatter_add(1, index[:, 0], weight.abs())
        side = 1.0 - 2.0 * self.coin(count, nodes)
        state = {
            "exists": exists,
            "edge_index": index,
            "edge_mask": link.repeat(1, 2),
            "weight": weight,
            "degree": degree,
            "scale": (degree.sum(-1) / exists.sum(-1)).clamp(min=1.0).sqrt(),
            "side": side,
            "age": torch.full_like(slots, nodes).expand(count, -1).clone(),
            "best_side": side.clone(),
        }
        state["gain"] = gains(state, side)
        state["cut"] = cut_of(state, state["gain"])
        state["best"] = state["cut"].clone()
        return state

    def sample_links(self, count, exists):
        """Sample which pairs of nodes are joined, `[count, P]` bool."""
        one, other = self.pairs
        is_random = (
            torch.rand(count, len(one), generator=self.generator, device=self.device) < self.config.density
        )
        if self.config.family == "er":
            link = is_random
        else:
            is_grown = self.grow(count)[:, one, other]
            link = torch.where(self.either(self.config.family, "ba", count), is_grown, is_random)
        return link & exists[:, one] & exists[:, other]

    def grow(self, count):
        """Sample graphs that grow by preferential attachment from a star, `[count, N, N]` bool.

        Their first n nodes are such a graph of n nodes.
        """
        nodes, links = self.graph.num_nodes, self.config.attachment
        adjacent = torch.zeros(count, nodes, nodes, device=self.device)
        adjacent[:, 0, 1 : links + 1] = adjacent[:, 1 : links + 1, 0] = 1.0
        degree = adjacent.sum(-1)
        for new in range(links + 1, nodes):
            chosen = torch.multinomial(degree[:, :new], links, generator=self.generator)
            adjacent[:, new].scatter_(1, chosen, 1.0)
            adjacent[:, :, new] = adjacent[:, new]
            degree = degree.scatter_add(1, chosen, torch.ones_like(chosen, dtype=degree.dtype))
            degree[:, new] = links
        return adjacent > 0

    def coin(self, *shape):
        """Sample zeros and ones."""
        return torch.randint(0, 2, shape, generator=self.generator, device=self.device)

    def either(self, setting, name, count):
        """Return which worlds have the option `name` of a setting, `[count, 1]` bool."""
        if setting == "mixed":
            return self.coin(count, 1).bool()
        return torch.full((count, 1), setting == name, device=self.device)

    def advance(self, state, action):
        chosen = action.unsqueeze(-1)
        cut = state["cut"] + state["gain"].gather(1, chosen).squeeze(-1)
        side = state["side"].scatter(1, chosen, -state["side"].gather(1, chosen))
        is_best = cut > state["best"]
        changes = {
            "side": side,
            "age": (state["age"] + 1).scatter(1, chosen, 0),
            "gain": gains(state, side),
            "cut": cut,
            "best": torch.maximum(cut, state["best"]),
            "best_side": torch.where(is_best.unsqueeze(-1), side, state["best_side"]),
        }
        reward = (changes["best"] - state["best"]) / state["scale"]
        is_last = state["step"] + 1 >= self.config.steps_per_node * state["exists"].sum(-1)
        return ew.Transition(changes, reward=reward, truncated=is_last)

    def observe(self, state):
        """Show gains in units of the root of the mean degree, so that graphs of all sizes look alike.

        Nothing depends on which of the two sides a node is on: exchanging the sides gives the same cut.
        """
        exists, age = state["exists"], state["age"]
        count = exists.sum(-1, keepdim=True)
        gain = state["gain"] / state["scale"].unsqueeze(-1)
        differs = exists & (state["side"] != state["best_side"])
        behind = ((state["best"] - state["cut"]) / state["scale"]).log1p().unsqueeze(-1)
        of_graph = (behind, (gain > 0).sum(-1, keepdim=True) / count, differs.sum(-1, keepdim=True) / count)
        x = torch.stack(
            (
                gain,
                (gain > 0).float(),
                (gain == 0).float(),
                torch.exp(-age / 4.0),
                torch.exp(-age / 20.0),
                differs.float(),
                (state["degree"] / state["scale"].square().unsqueeze(-1)).log1p(),
                *(value.expand_as(gain) for value in of_graph),
            ),
            -1,
        )
        source, target = (state["side"].gather(1, ends) for ends in state["edge_index"].unbind(1))
        graph = {
            "x": x,
            "node_mask": exists,
            "edge_index": state["edge_index"],
            "edge_mask": state["edge_mask"],
            "edge_attr": (state["weight"] * source * target).unsqueeze(-1),
        }
        return {"graph": graph, "metrics": {"cut": state["best"]}}


def gains(state, side):
    """Return by how much the cut grows if a node changes its `side [B, N]`, `[B, N]`."""
    source, target = state["edge_index"].unbind(1)
    inside = state["weight"] * side.gather(1, source) * side.gather(1, target)
    return torch.zeros_like(side).scatter_add(1, target, inside)


def cut_of(state, gain):
    """Return the weight between the sides, `[B]`: half of all weight that no gain counts as inside."""
    return (state["weight"].sum(-1) - gain.sum(-1)) / 4


def greedy(env):  # noqa: ARG001
    """Return the policy that makes the best flip."""

    def policy(root):
        gain = root["state", "gain"].masked_fill(~root["state", "exists"], -torch.inf)
        return root.set("action", gain.argmax(-1))

    return policy


def tabu(env, tenure=10):  # noqa: ARG001
    """Return tabu search: the best flip of nodes that were not flipped in the last `tenure` steps.

    A node may be flipped again earlier if that gives a new best cut. Of equal flips a random one is made.
    """

    def policy(root):
        state = root["state"]
        gain = state["gain"] + 0.5 * torch.rand(state["gain"].shape, device=state["gain"].device)
        is_new_best = state["cut"].unsqueeze(-1) + state["gain"] > state["best"].unsqueeze(-1)
        is_free = (state["age"] >= tenure) | is_new_best
        gain = torch.where(is_free, gain, gain - 1e6).masked_fill(~state["exists"], -torch.inf)
        return root.set("action", gain.argmax(-1))

    return policy


BASELINES = {"greedy": greedy, "tabu": tabu}
