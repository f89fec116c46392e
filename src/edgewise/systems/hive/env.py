"""The Hive environment: two players, one policy, one tile per step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.entries import Entries
from edgewise.envs.ranges import upper_bound
from edgewise.envs.transition import Transition
from edgewise.graphs.actions import ChooseFromSet
from edgewise.graphs.keys import PRIOR
from edgewise.scale.devices import constant
from edgewise.systems.hive import dynamics, observe, scenario
from edgewise.systems.hive.config import HiveConfig
from edgewise.systems.hive.pieces import Hand


class HiveEnv(GraphEnv[HiveConfig]):
    """Hive for two players. README.md describes it.

    The action is a place in the list of legal moves. Each move is an edge of the graph, from its tile to its
    destination, and `choices` are the slots of these edges.

    Example:
        >>> env = HiveEnv(HiveConfig(hand="QAAGB"), num_envs=8, seed=0)
        >>> env.rollout(4)["player"][0]
        tensor([0, 1, 0, 1])
    """

    stage_settings = ("opening_plies",)
    observes_together = True

    hand: Hand

    def setup(self) -> None:
        """Define the graph and the action layout."""
        self.hand = self.config.tiles
        capacity = self.config.move_capacity
        self.graph = observe.graph_spec(self.hand, capacity)
        self.actions = ChooseFromSet(capacity, members="edges")

    def spawn(self, count: int) -> Entries:
        """Sample new games."""
        with _in_words():
            games = scenario.draw_games(
                self.sample_int(self.config.opening_plies, count),
                self.hand,
                most_plies=int(upper_bound(self.config.opening_plies)),
                max_moves=self.config.move_capacity,
                window=self.config.repetition_window,
                generator=self.generator,
                kept_plies=self._kept_plies,
            )
        kinds = constant(self.hand.kinds, games["q"], dtype=torch.int8)
        return {**games, "kinds": kinds.repeat(count, 1)}

    @property
    def _kept_plies(self) -> int:
        """Most plies of a game, if the state holds its moves."""
        most = self.built_with.max_steps + int(upper_bound(self.built_with.opening_plies))
        return most if self.config.keep_moves else 0

    def advance(self, state: TensorDict, action: Tensor) -> Transition:
        """Play the chosen move; the reward is 1 for a win, -1 if only the own queen is surrounded, else 0.

        With shaping, each ply also earns or costs its change of the pressure on the queens.
        """
        move = state["moves"].gather(1, action.view(-1, 1, 1).expand(-1, 1, 3)).squeeze(1)
        with _in_words():
            after = dynamics.advance(state, move, self.hand)
        reward = dynamics.result(after, self.hand, player=state["player"])
        if self.config.shaping:
            before, now = (
                dynamics.pressure(each, self.hand, player=state["player"]) for each in (state, after)
            )
            reward = reward + self.config.shaping * (now - before)
        return Transition(after, reward=reward, terminated=dynamics.is_over(after, self.hand))

    def observe(self, state: TensorDict) -> Entries:
        """Return the hive from the mover's view, the edges that can be chosen, the player, and metrics."""
        first = torch.zeros_like(state["player"])
        result = dynamics.result(state, self.hand, player=first)
        capacity = self.config.move_capacity
        edge = observe.first_move_edge(self.hand) + torch.arange(capacity, device=self.device)
        over = dynamics.is_over(state, self.hand)
        board = dynamics.mover_board(state)
        gains = self.config.prior == "pressure"
        return {
            **({PRIOR: observe.move_scores(state, board, self.hand)} if gains else {}),
            "graph": observe.graph(state, board, self.hand),
            "choices": edge.repeat(len(first), 1),
            "player": state["player"],
            "metrics": {
                "first_player_won": (result > 0).float(),
                "second_player_won": (result < 0).float(),
                "drawn": (over & (result == 0)).float(),
                "plies": state["plies"].float(),
            },
        }

    def mask(self, state: TensorDict) -> Tensor:
        """Return which places of the list of moves are filled, `[B, K]` bool."""
        return state["moves"][..., 0] != dynamics.ABSENT


@contextmanager
def _in_words() -> Iterator[None]:
    """Raise ConfigError if a position has more moves than fit into the list."""
    try:
        yield
    except OverflowError as error:
        raise ConfigError(f"max_moves: {error}", hint="set max_moves to a larger number") from None
