"""The Hex environment: two players, one policy, one stone per step."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.ranges import upper_bound
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import ChooseNode
from edgewise.graphs.keys import PRIOR
from edgewise.systems.hex import dynamics, observe, scenario
from edgewise.systems.hex.config import SMALLEST, HexConfig


class HexEnv(GraphEnv[HexConfig]):
    """Hex for two players on boards of one or several sizes. README.md describes it.

    Example:
        >>> env = HexEnv(HexConfig(size=(3, 5)), num_envs=8, seed=0)
        >>> env.rollout(4)["player"][0]
        tensor([0, 1, 0, 1])
    """

    stage_settings = ("size", "opening_plies")

    def setup(self) -> None:
        """Define the graph, the action layout and the neighbour tables."""
        self.graph = observe.graph_spec(self.config)
        self.actions = ChooseNode()
        self.register_buffer("tables", observe.neighbour_tables(self.config.capacity).to(self.device))

    def check_stage(self, stage: HexConfig) -> None:
        """Raise ConfigError if a stage needs larger boards than the environment has room for."""
        if stage.capacity > self.built_with.capacity:
            raise ConfigError(
                f"size {stage.size} does not fit: the environment has room for {self.built_with.capacity}",
                hint=f"build it with max_size={stage.capacity}",
            )

    def spawn(self, count: int) -> Entries:
        """Sample new games."""
        return scenario.draw_games(
            self.sample_int(self.config.size, count),
            capacity=self.built_with.capacity,
            tables=self.tables,
            opening_plies=self.sample_int(self.config.opening_plies, count),
            most_plies=int(upper_bound(self.config.opening_plies)),
            generator=self.generator,
        )

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Place the mover's stone. The game ends when it connects the mover's sides; there is no draw."""
        size, player = state["size"], state["player"]
        stones, chains, cell, swapped = state["stones"], state["chains"], action, state["swapped"]
        if self.config.swap:
            swaps = self._may_swap(state) & (
                stones.gather(1, action.unsqueeze(-1)).squeeze(-1) != dynamics.EMPTY
            )
            empty, alone = dynamics.empty_boards(len(action), self.built_with.capacity, self.device)
            stones = torch.where(swaps.unsqueeze(-1), empty, stones)
            chains = torch.where(swaps.unsqueeze(-1), alone, chains)
            cell, swapped = torch.where(swaps, dynamics.mirrored(action, size), action), swapped | swaps
        near = self.tables[size - SMALLEST, cell]
        stones, chains = dynamics.place(stones, chains, cell=cell, player=player, neighbours=near)
        won = dynamics.has_won(chains, player)
        changed = {
            "stones": stones,
            "chains": chains,
            "player": 1 - player,
            "swapped": swapped,
            "plies": state["plies"] + 1,
        }
        return Transition(changed, reward=won.float(), terminated=won)

    def observe(self, state: TensorDict) -> Entries:
        """Return the board from the mover's view, the player to move, and metrics."""
        chains, first_player = state["chains"], torch.zeros_like(state["player"])
        first_won = dynamics.has_won(chains, first_player)
        graph = observe.graph(state)
        if self.config.distances:
            near = observe.distances(state, self.tables[state["size"] - SMALLEST])
            graph["x"] = torch.cat((graph["x"], near), -1)
        prior: Entries = {}
        if self.config.currents or self.config.prior == "current":
            shares, resistance = observe.mover_currents(state)
            if self.config.currents:
                near = observe.current_features(shares, resistance)
                graph["x"] = torch.cat((graph["x"], near), -1)
            if self.config.prior == "current":
                prior = {PRIOR: observe.cell_scores(shares)}
        return {
            **prior,
            "graph": graph,
            "player": state["player"],
            "metrics": {"first_player_won": first_won.float(), "plies": state["plies"].float()},
        }

    def mask(self, state: TensorDict) -> Tensor:
        """Return the free cells and, where swapping is allowed, the first stone, `[B, N]` bool."""
        free = scenario.free_cells(state["stones"], state["size"])
        if self.config.swap:
            stone = (state["stones"] != dynamics.EMPTY) & ~self._borders(state)
            free = free | (stone & self._may_swap(state).unsqueeze(-1))
        return free

    def _may_swap(self, state: TensorDict) -> Tensor:
        """Return whether the second player is about to make its first move, `[B]` bool."""
        return (state["plies"] == 1) & (state["player"] == 1)

    def _borders(self, state: TensorDict) -> Tensor:
        node = torch.arange(state["stones"].shape[-1], device=self.device)
        return node >= len(node) - 4
