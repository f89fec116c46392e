"""Plies of Hive per CPU-second beside OpenSpiel's, the branching of random games, and the share in training.

    python -m benchmarks.hive [--json FILE] [--quick]

CPU time of one thread, games of 200 random plies, all programs in turn in one process. `rules` chooses a
random legal move, plays it, lists the legal replies, and looks for surrounded queens and repetitions; `env`
is the whole environment besides: observation, mask, rewards and new games. OpenSpiel plays one game after
another in C++, driven from Python: legal actions, a random one, and the move. The shares are those of the
environment in the CPU time of an iteration of the two recipes, with weights that have hardly learnt.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from edgewise.envs.registry import make_env
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.systems.hive import dynamics, scenario
from edgewise.systems.hive.config import HiveConfig

BATCHES = (1, 64, 1024)
PLIES = 200
RECIPES = ("hive-quick",)
VARIANTS = {"base": "", "with M, L, P": "MLP"}


class Rules:
    """Random games by the rules alone; a call plays some plies of all games."""

    def __init__(self, expansions: str, games: int) -> None:
        self.config = HiveConfig(expansions=expansions)
        self.hand, self.games = self.config.tiles, games
        self.most = self.total = self.counted = 0
        self._restart()

    def _restart(self) -> None:
        self.position = dynamics.new_games(
            self.games, self.hand, max_moves=self.config.move_capacity, window=self.config.repetition_window
        )
        self.ply = 0

    def __call__(self, plies: int) -> int:
        for _ in range(plies):
            if self.ply == PLIES:
                self._restart()
            move = scenario.random_move(self.position["moves"])
            self.position = dynamics.advance(self.position, move, self.hand)
            dynamics.is_over(self.position, self.hand)
            self.ply += 1
        return plies * self.games

    def count(self) -> None:
        """Add the moves of the present positions to the statistics."""
        count = (self.position["moves"][..., 0] >= 0).sum(-1)
        self.most = max(self.most, int(count.max()))
        self.total, self.counted = self.total + int(count.sum()), self.counted + self.games


def environment(expansions: str, games: int) -> Callable[[int], int]:
    """Random play in the environment, with new games where old ones end."""
    env = make_env("hive", expansions=expansions, num_envs=games, seed=0, max_steps=PLIES)
    root = [env.reset()]

    def play(plies: int) -> int:
        for _ in range(plies):
            _, root[0] = env.step_and_maybe_reset(env.rand_action(root[0]))
        return plies * games

    return play


def open_spiel(expansions: str) -> Callable[[int], int] | None:
    """Random games in OpenSpiel, or None where it is not installed."""
    try:
        import pyspiel
    except ImportError:
        return None
    names = {"M": "uses_mosquito", "L": "uses_ladybug", "P": "uses_pillbug"}
    options = {name: letter in expansions for letter, name in names.items()}
    game = pyspiel.load_game("hive", {**options, "board_size": 20})
    running = [game.new_initial_state()]
    played = [0]

    def play(plies: int) -> int:
        for _ in range(plies):
            if running[0].is_terminal() or played[0] == PLIES:
                running[0], played[0] = game.new_initial_state(), 0
            running[0].apply_action(random.choice(running[0].legal_actions()))
            played[0] += 1
        return plies

    return play


def rates(programs: dict[str, tuple[Callable[[int], int], int]], *, rounds: int) -> dict[str, float]:
    """Plies per CPU-second of programs that play in turn; the first call of each is not counted.

    Args:
        programs: each with the number of plies of a call.
        rounds: calls of each program; `rounds` times its plies should be a whole number of games.
    """
    spent, plies = dict.fromkeys(programs, 0.0), dict.fromkeys(programs, 0)
    for program, length in programs.values():
        program(length)
    for _ in range(rounds):
        for name, (program, length) in programs.items():
            start = time.process_time()
            plies[name] += program(length)
            spent[name] += time.process_time() - start
    return {name: plies[name] / spent[name] for name in programs}


def iteration_share(recipe: str) -> float:
    """Measure the environment's share of the CPU time of an iteration, once there are games to learn from."""
    builder = Builder(load_config(recipe))
    collector, algorithm, env = builder.collector, builder.algorithm, builder.env
    spent = [0.0]

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return method(*arguments)
            finally:
                spent[0] += time.process_time() - start

        return call

    for _ in range(-(-builder.config.env.max_steps // builder.config.training.rollout_length)):
        algorithm.learn(collector.collect())
    for name in ("advance", "observe", "mask", "spawn"):
        setattr(env, name, timed(getattr(env, name)))
    start = time.process_time()
    algorithm.learn(collector.collect())
    return spent[0] / (time.process_time() - start)


def run(quick: bool) -> dict[str, Any]:
    """Measure plies per CPU-second by hand and number of games, branching, and shares of iterations."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    results: dict[str, Any] = {}
    for variant, expansions in VARIANTS.items():
        programs: dict[str, tuple[Callable[[int], int], int]] = {}
        for games in BATCHES[-1:] if quick else BATCHES:
            programs[f"rules {games}"] = (Rules(expansions, games), 10)
            programs[f"env {games}"] = (environment(expansions, games), 10)
        other = open_spiel(expansions)
        if other is not None:
            programs["open_spiel"] = (other, 400)
        found: dict[str, Any] = dict(rates(programs, rounds=20))
        statistics = Rules(expansions, 1024)
        for _ in range(PLIES):
            statistics.count()
            statistics(1)
        found["branching"] = statistics.total / statistics.counted
        found["most_moves"] = statistics.most
        results[variant] = found
    if not quick:
        results["share of an iteration"] = {recipe: iteration_share(recipe) for recipe in RECIPES}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="only 1,024 games, and no shares")
    options = parser.parse_args()
    results = run(options.quick)
    for variant, found in results.items():
        print(variant)
        for name, value in found.items():
            digits = 1 if name == "branching" else 0 if value > 1 else 3
            print(f"  {name:<14}{value:>12,.{digits}f}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
