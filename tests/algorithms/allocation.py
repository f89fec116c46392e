"""A tiny problem with a composed action: find the node that needs most, and give it just as much."""

import torch

import edgewise as ew


class AllocationConfig(ew.Config):
    """Settings."""

    num_nodes: ew.WholeRange = (3, 5)
    max_steps: int = 1


class AllocationEnv(ew.GraphEnv[AllocationConfig]):
    """Choose a node and an amount; pays the node's need minus twice the difference from it."""

    def setup(self):
        nodes = ew.upper_bound(self.config.num_nodes)
        self.graph = ew.GraphSpec(nodes, 1, edges=ew.Explicit(2 * nodes), graph_features=1)
        self.actions = ew.Then(node=ew.ChooseNode(), amount=ew.Amount(low=0, high=1))

    def spawn(self, count):
        slots = torch.arange(self.graph.num_nodes)
        exists = slots < self.sample_int(self.config.num_nodes, count).unsqueeze(-1)
        need = torch.rand(count, self.graph.num_nodes, generator=self.generator)
        return {"exists": exists, "need": need}

    def advance(self, state, action):
        need = state["need"].gather(-1, action["node"].unsqueeze(-1)).squeeze(-1)
        reward = need - 2 * (action["amount"] - need).abs()
        return ew.Transition({}, reward=reward, terminated=torch.ones_like(reward, dtype=torch.bool))

    def observe(self, state):
        count, nodes = state["need"].shape
        ring = torch.arange(nodes)
        ends = torch.stack((torch.cat((ring, ring)), torch.cat((ring.roll(1), ring.roll(-1)))))
        return {
            "graph": {
                "x": state["need"].unsqueeze(-1),
                "node_mask": state["exists"],
                "edge_index": ends.expand(count, -1, -1),
                "edge_mask": torch.ones(count, 2 * nodes, dtype=torch.bool)
                & state["exists"][:, ends[0]]
                & state["exists"][:, ends[1]],
                "u": torch.ones(count, 1),
            }
        }

    def mask(self, state):
        return {"node": state["exists"]}


class EdgeAllocationEnv(AllocationEnv):
    """The same with edges: choose one, whose need is that of its source."""

    def setup(self):
        super().setup()
        self.actions = ew.Then(edge=ew.ChooseEdge(), amount=ew.Amount(low=0, high=1))

    def advance(self, state, action):
        nodes = self.graph.num_nodes
        return super().advance(state, {"node": action["edge"] % nodes, "amount": action["amount"]})

    def mask(self, state):
        return None


class EveryNodeEnv(AllocationEnv):
    """Give every node its amount."""

    def setup(self):
        super().setup()
        self.actions = ew.PerNode(ew.Amount(low=0, high=1))

    def advance(self, state, action):
        error = (action - state["need"]).abs().masked_fill(~state["exists"], 0.0)
        reward = -error.sum(-1) / state["exists"].sum(-1)
        return ew.Transition({}, reward=reward, terminated=torch.ones_like(reward, dtype=torch.bool))

    def mask(self, state):
        return None


class OptionsEnv(AllocationEnv):
    """Two choices, of which the second depends on the first: a node, then one that is not the same."""

    def setup(self):
        super().setup()
        self.actions = ew.Then(first=ew.ChooseNode(), second=ew.ChooseNode(), kind=ew.Category(2))

    def advance(self, state, action):
        need = [
            state["need"].gather(-1, action[name].unsqueeze(-1)).squeeze(-1) for name in ("first", "second")
        ]
        reward = need[0] + need[1] + action["kind"]
        return ew.Transition({}, reward=reward, terminated=torch.ones_like(reward, dtype=torch.bool))

    def mask(self, state):
        exists = state["exists"]
        other = ~torch.eye(exists.shape[-1], dtype=torch.bool)
        return {"first": exists, "second": exists.unsqueeze(-2) & other}
