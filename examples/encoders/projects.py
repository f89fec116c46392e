"""Choose projects that skilled people want and nobody opposes: heterogeneous graphs. `python projects.py`."""

import sys

import torch
from torch_geometric.data import HeteroData

import edgewise as ew

SETTINGS = {
    "num_envs": 32,
    "rollout_length": 12,
    "total_frames": 20_000,
    "learning_rate": 0.002,
    "gamma": 1.0,
}
ENCODERS = {
    "SAGEConv, without edge types": "SAGEConv",
    "GATv2Conv": "GATv2Conv",
    "HeteroConv": "hetero.py:Hetero",
}


class ProjectsConfig(ew.GraphsConfig):
    """Settings of the projects."""

    decisions: int = 3
    """Projects to choose."""


class ProjectsEnv(ew.GraphEnv[ProjectsConfig]):
    """Choose a project after another; each pays the skills of who wants it, less those of who opposes it."""

    def setup(self):
        source, config = self.config.graphs, self.config
        self.instances = ew.load_graphs(
            source, split=config.split, seed=config.split_seed, device=self.device
        )
        self.graph, names = self.instances.spec, self.instances.names
        self.actions = ew.ChooseNode()
        self.project = names.node_types.index("project")
        signs = [{"wants": 1.0, "opposes": -1.0}[name.split("__")[1]] for name in names.edge_features]
        self.signs = torch.tensor(signs, device=self.device)

    def spawn(self, count):
        which = self.instances.sample(count, self.generator)
        return {"which": which, "chosen": torch.zeros(count, self.graph.num_nodes, dtype=torch.bool)}

    def advance(self, state, action):
        graph, project = self.instances[state["which"]], action.unsqueeze(-1)
        source, target = graph["edge_index"].unbind(1)
        skill = graph["x"][..., 0].gather(-1, source) * (graph["edge_attr"] @ self.signs) * graph["edge_mask"]
        reward = (skill * (target == project)).sum(-1)
        last = state["step"] + 1 == self.config.decisions
        return ew.Transition({"chosen": state["chosen"].scatter(-1, project, True)}, reward, terminated=last)

    def observe(self, state):
        return {"graph": self.instances[state["which"]]}

    def mask(self, state):
        graph = self.instances[state["which"]]
        return graph["node_mask"] & (graph["node_type"] == self.project) & ~state["chosen"]


def sample_graphs(count, generator):
    """Sample networks of people and projects, with an edge of either type for every second pair."""
    graphs = []
    for _ in range(count):
        people, projects = torch.randint(4, 9, (2,), generator=generator).tolist()
        graph, kind = HeteroData(), torch.randint(0, 4, (people, projects), generator=generator)
        graph["person"].x = torch.rand(people, 1, generator=generator)
        graph["project"].x = torch.zeros(projects, 1)
        graph["person", "wants", "project"].edge_index = (kind == 0).nonzero().T
        graph["person", "opposes", "project"].edge_index = (kind == 1).nonzero().T
        graphs.append(graph)
    return graphs


def best(env):
    """Return the rule that takes the project of the highest pay."""

    def policy(root):
        pay = torch.stack([env.advance(root["state"], at).reward for at in slots(root)], -1)
        return root.set("action", pay.masked_fill(~root["action_mask"], -torch.inf).argmax(-1))

    def slots(root):
        return torch.arange(env.graph.num_nodes).unsqueeze(-1).expand(-1, len(root))

    return policy


BASELINES = {"best": best}


if __name__ == "__main__":
    graphs = sample_graphs(400, torch.Generator().manual_seed(0))
    for name, conv in ENCODERS.items():
        encoder = {"kind": "gnn", "conv": conv, "hidden": 32, "layers": 2}
        run = ew.train(__file__, graphs=graphs, progress=False, **SETTINGS, **{"model.encoder": encoder})
        found = run.evaluate(split="test", episodes=200, baselines="all", checkpoint="latest")
        rules = ", ".join(f"{rule.policy} {rule.returns.mean():.2f}" for rule in found.others)
        sys.stdout.write(f"{name}: {found.returns.mean():.2f}; {rules}\n")
