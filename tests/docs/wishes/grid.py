"""A power grid as a Gymnasium environment: redispatch generators and switch a line, DC power flow."""

import gymnasium
import numpy as np
from gymnasium import spaces

import edgewise as ew

BUSES, GENERATORS = 8, 3
LINES = np.array([[i, (i + 1) % BUSES] for i in range(BUSES)] + [[0, 3], [1, 5], [2, 6], [4, 7]])


class Grid(gymnasium.Env):
    """Keep flows below the limits for a day of 24 hours."""

    observation_space = spaces.Dict(
        {
            "bus": spaces.Box(-10, 10, (BUSES, 3), np.float32),
            "line": spaces.Box(-10, 10, (len(LINES), 2), np.float32),
            "hour": spaces.Box(0, 1, (1,), np.float32),
        }
    )
    action_space = spaces.Dict(
        {
            "switch": spaces.Discrete(len(LINES) + 1),
            "redispatch": spaces.Box(-0.3, 0.3, (GENERATORS,), np.float32),
        }
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.hour, self.on = 0, np.ones(len(LINES), bool)
        self.plan = np.zeros(GENERATORS)
        self.base = self.np_random.uniform(0.3, 1.0, BUSES)
        return self._seen(), {}

    def _flows(self):
        load = self.base * (1 + 0.4 * np.sin(2 * np.pi * self.hour / 24))
        power = -load
        power[:GENERATORS] += load.sum() / GENERATORS + self.plan - self.plan.mean()
        incidence = np.zeros((len(LINES), BUSES))
        incidence[np.arange(len(LINES)), LINES[:, 0]], incidence[np.arange(len(LINES)), LINES[:, 1]] = 1, -1
        incidence = incidence[self.on]
        flows = np.zeros(len(LINES))
        flows[self.on] = incidence @ np.linalg.pinv(incidence.T @ incidence) @ power
        return power, flows

    def _seen(self):
        power, flows = self._flows()
        kind = (np.arange(BUSES) < GENERATORS).astype(np.float32)
        plan = np.pad(self.plan, (0, BUSES - GENERATORS))
        return {
            "bus": np.stack((power, kind, plan), -1).astype(np.float32),
            "line": np.stack((flows, self.on), -1).astype(np.float32),
            "hour": np.array([self.hour / 24], np.float32),
        }

    def step(self, action):
        if action["switch"] < len(LINES):
            self.on[action["switch"]] ^= True
        self.plan = np.clip(self.plan + action["redispatch"], -2, 2)
        self.hour += 1
        _, flows = self._flows()
        overload = np.maximum(np.abs(flows) - 0.8, 0).sum()
        cost = overload + 0.05 * (~self.on).sum()
        return self._seen(), -float(cost), self.hour == 24, False, {}


def as_graph(seen):
    """Both directions of each line, and the hour as a feature of the whole graph."""
    ends = np.concatenate((LINES, LINES[:, ::-1])).T
    return {
        "x": seen["bus"],
        "edge_index": ends,
        "edge_attr": np.concatenate((seen["line"],) * 2),
        "u": seen["hour"],
    }


PowerGrid = ew.from_gymnasium(Grid, graph=as_graph, name="PowerGrid")
