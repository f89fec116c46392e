"""Small environments of other libraries, neither of which this package has."""

import gymnasium
import numpy as np
import pettingzoo


class Beacon(gymnasium.Env):
    """Three to five nodes in a ring; choose the one that is lit, but no node twice in a row."""

    def __init__(self):
        box = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
        self.observation_space = gymnasium.spaces.Graph(box, None)
        self.action_space = gymnasium.spaces.Discrete(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.steps, self.last = int(self.np_random.integers(3, 6)), 0, -1
        self.lit = int(self.np_random.integers(self.count))
        return self._graph(), self._info()

    def step(self, action):
        assert action < self.count
        assert action != self.last
        reward, self.last, self.steps = float(action == self.lit), int(action), self.steps + 1
        others = [node for node in range(self.count) if node != self.last]
        self.lit = int(self.np_random.choice(others))
        return self._graph(), reward, self.steps == 4, False, self._info()

    def _graph(self):
        nodes = np.zeros((self.count, 2), np.float32)
        nodes[self.lit, 0] = 1
        ring = np.stack((np.arange(self.count), (np.arange(self.count) + 1) % self.count), 1)
        return gymnasium.spaces.GraphInstance(nodes, None, ring)

    def _info(self):
        return {"action_mask": (np.arange(5) < self.count) & (np.arange(5) != self.last)}


class Signals(pettingzoo.ParallelEnv):
    """Each of three agents sees a bit and is paid for showing it; agent c leaves after two steps."""

    def __init__(self):
        self.metadata = {"name": "signals"}
        self.possible_agents = ["a", "b", "c"]

    def observation_space(self, agent):
        return gymnasium.spaces.Box(0, 1, (1,))

    def action_space(self, agent):
        return gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.random = np.random.default_rng(seed)
        self.agents, self.steps = list(self.possible_agents), 0
        return self._look(), {agent: {} for agent in self.agents}

    def step(self, actions):
        acting, self.steps = list(self.agents), self.steps + 1
        assert set(actions) == set(acting)
        rewards = {agent: float(actions[agent] == self.bits[agent]) for agent in acting}
        ended = {agent: agent == "c" and self.steps == 2 for agent in acting}
        cut = dict.fromkeys(acting, self.steps == 5)
        observations = self._look()
        self.agents = [] if self.steps == 5 else [agent for agent in acting if not ended[agent]]
        return observations, rewards, ended, cut, {agent: {} for agent in acting}

    def _look(self):
        self.bits = {agent: int(self.random.integers(2)) for agent in self.agents}
        return {agent: np.array([bit], np.float32) for agent, bit in self.bits.items()}
