"""Choose a person and a dose to contain an outbreak: `edgewise train outbreak.py`, or `--algorithm sac`."""

from typing import Literal

import torch

import edgewise as ew


class OutbreakConfig(ew.Config):
    """Settings of the outbreak."""

    num_people: ew.WholeRange = (8, 14)
    """People; about three contacts each."""
    spread: float = 0.25
    """Chance per step that an infected contact infects."""
    price: float = 0.15
    """Cost of a whole dose, in infected people."""
    decisions: int = 8
    """Decisions of an episode."""
    fix: Literal["nothing", "person", "dose"] = "nothing"
    """Part of the action that is not used: the person is random, or every dose a half."""


class OutbreakEnv(ew.GraphEnv[OutbreakConfig]):
    """Treat one person per step. The state holds chances of infection, so that nothing is random."""

    def setup(self):
        people = ew.upper_bound(self.config.num_people)
        self.graph = ew.GraphSpec(people, 2, edges=ew.Explicit(4 * people), graph_features=1)
        self.actions = ew.Then(person=ew.ChooseNode(), dose=ew.Amount(low=0, high=1))

    def spawn(self, count):
        slots = torch.arange(self.graph.num_nodes, device=self.device)
        size = self.sample_int(self.config.num_people, count).unsqueeze(-1)
        draw = torch.rand(count, 2, len(slots), generator=self.generator, device=self.device)
        others = (slots + 1 + draw * (size.unsqueeze(-1) - 1)).long() % size.unsqueeze(-1)
        ends = torch.cat((slots.expand(count, -1), slots.expand(count, -1)), -1), others.flatten(1)
        return {
            "ends": torch.stack((torch.cat(ends, -1), torch.cat(ends[::-1], -1)), 1),
            "exists": slots < size,
            "infected": 0.9 * (slots < 2).expand(count, -1).float(),
            "immune": torch.zeros(count, len(slots), device=self.device),
        }

    def links(self, state):
        return state["exists"].gather(-1, state["ends"][:, 0]) & state["exists"].gather(
            -1, state["ends"][:, 1]
        )

    def advance(self, state, action):
        person, dose = action["person"], action["dose"]
        if self.config.fix == "dose":
            dose = torch.full_like(dose, 0.5)
        if self.config.fix == "person":
            draw = torch.rand(state["exists"].shape, generator=self.generator, device=self.device)
            person = draw.masked_fill(~state["exists"], -1.0).argmax(-1)
        taken = torch.zeros_like(state["immune"]).scatter(-1, person.unsqueeze(-1), dose.unsqueeze(-1))
        immune = 1 - (1 - state["immune"]) * (-3 * taken).exp()
        infected = state["infected"] * (-3 * taken).exp()
        source, target = state["ends"].unbind(1)
        contact = self.config.spread * infected.gather(-1, source) * self.links(state)
        pressure = torch.zeros_like(infected).scatter_add(-1, target, contact)
        caught = (1 - infected) * (1 - immune) * (1 - (-pressure).exp())
        infected = (0.9 * infected + caught) * state["exists"]
        cost = infected.sum(-1) / state["exists"].sum(-1) + self.config.price * dose
        last = state["step"] + 1 == self.config.decisions
        return ew.Transition({"infected": infected, "immune": immune}, reward=-cost, terminated=last)

    def observe(self, state):
        x = torch.stack((state["infected"], state["immune"]), -1)
        graph = {"x": x, "node_mask": state["exists"], "edge_index": state["ends"]}
        graph |= {"edge_mask": self.links(state), "u": (state["step"] / self.config.decisions).unsqueeze(-1)}
        share = state["infected"].sum(-1) / state["exists"].sum(-1)
        return {"graph": graph, "metrics": {"infected": share}}


def most_infected(env):
    """Return the rule that gives a whole dose to whoever is infected most."""

    def policy(root):
        person = root["state", "infected"].argmax(-1)
        dose = torch.ones_like(person, dtype=torch.float32)
        return root.set("action", env.actions.pack(person=person, dose=dose))

    return policy


BASELINES = {"most_infected": most_infected}
