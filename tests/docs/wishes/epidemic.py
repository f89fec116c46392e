"""Vaccinate people of given villages, one and a dose per step; vaccinated ones leave the graph."""

import torch

import edgewise as ew


class Config(ew.GraphsConfig):
    """Settings."""

    days: int = 8
    """Decisions."""


class EpidemicEnv(ew.GraphEnv[Config]):
    """Infection spreads along contacts; a dose protects the person and takes supplies."""

    def setup(self):
        given = self.config
        self.villages = ew.load_graphs(
            given.graphs, split=given.split, seed=given.split_seed, device=self.device
        )
        spec = self.villages.spec
        self.graph = ew.GraphSpec(
            spec.num_nodes, spec.node_features + 1, edges=spec.edges, graph_features=spec.graph_features + 1
        )
        self.actions = ew.Then(person=ew.ChooseNode(), dose=ew.Amount(low=0, high=1))

    def spawn(self, count):
        village = self.villages.sample(count, self.generator)
        exists = self.villages[village]["node_mask"]
        draw = torch.rand(exists.shape, generator=self.generator, device=self.device)
        sick = (draw.masked_fill(~exists, 2.0).argsort(-1).argsort(-1) < 2).float()
        return {"village": village, "sick": sick, "present": exists, "supply": torch.full((count,), 3.0)}

    def advance(self, state, action):
        graph, person, dose = self.villages[state["village"]], action["person"], action["dose"]
        dose = torch.minimum(dose, state["supply"])
        source, target = graph["edge_index"].unbind(1)
        linked = graph["edge_mask"] & state["present"].gather(1, source) & state["present"].gather(1, target)
        sick = state["sick"].scatter_reduce(1, person[:, None], 1 - dose[:, None], "prod")
        pressure = 0.5 * sick.gather(1, source) * graph["edge_attr"][..., 0] * linked
        force = torch.zeros_like(sick).scatter_add(1, target, pressure)
        sick = (sick + (1 - sick) * (1 - (-force).exp())) * state["present"]
        gone = torch.zeros_like(state["present"]).scatter(1, person[:, None], (dose > 0.9)[:, None])
        present = state["present"] & ~(gone & (sick < 0.2))
        last = state["step"] + 1 == self.config.days
        changed = {"sick": sick, "present": present, "supply": state["supply"] - dose}
        return ew.Transition(changed, reward=-sick.sum(-1) / 10, terminated=last)

    def observe(self, state):
        graph = self.villages[state["village"]].clone()
        graph["x"] = torch.cat((graph["x"], state["sick"].unsqueeze(-1)), -1)
        graph["u"] = torch.cat((graph["u"], state["supply"].unsqueeze(-1)), -1)
        graph["node_mask"] = state["present"]
        source, target = graph["edge_index"].unbind(1)
        graph["edge_mask"] &= state["present"].gather(1, source) & state["present"].gather(1, target)
        return {"graph": graph, "metrics": {"sick": state["sick"].sum(-1)}}

    def mask(self, state):
        return {"person": state["present"]}
