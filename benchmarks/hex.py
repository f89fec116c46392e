"""Plies of Hex per CPU-second compared with OpenSpiel and pgx, and the environment's share of self-play.

    python -m benchmarks.hex [--json FILE] [--quick]

CPU time of one thread. `rules` chooses a random free cell, places the stone and checks for a winner; `env` is
the whole environment with observation, mask, rewards and resets. OpenSpiel plays one game after another in
C++, called from Python: legal moves, a random one, and the move. pgx plays 11 x 11 with swap, in this Python
or in the one named by EDGEWISE_PGX_PYTHON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from edgewise.algorithms.config import SelfPlayConfig
from edgewise.algorithms.ppo import PPO
from edgewise.envs.registry import make_env
from edgewise.models.actor_critic import make_actor_critic
from edgewise.systems.hex import dynamics, scenario
from edgewise.systems.hex.recipes.selfplay import RECIPE
from edgewise.training.self_play.rollout import SelfPlayRollout

BATCHES = (1, 64, 1024, 8192)
PGX_GAMES = 1024


def rate(plays: Callable[[], int], *, seconds: float) -> float:
    """Measure plies per CPU-second of `plays`, which returns its number of plies; one call is a warm-up."""
    plays()
    plies, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        plies += plays()
    return plies / spent


def rules(size: int, games: int) -> Callable[[], int]:
    """Build random games by the rules alone, for half a board of plies."""
    table = dynamics.neighbour_table(size, size)
    sizes = torch.full((games,), size)

    def play() -> int:
        stones, chains = dynamics.empty_boards(games, size)
        plies = size * size // 2
        for ply in range(plies):
            free = scenario.free_cells(stones, sizes)
            cell = torch.rand(free.shape).masked_fill_(~free, -1.0).argmax(-1)
            player = torch.full((games,), ply % 2)
            stones, chains = dynamics.place(stones, chains, cell=cell, player=player, neighbours=table[cell])
            dynamics.has_won(chains, player)
        return games * plies

    return play


def environment(size: int, games: int) -> Callable[[], int]:
    """Build random play in the environment, with resets."""
    env = make_env("hex", size=size, num_envs=games, seed=0)
    root = [env.reset()]

    def play() -> int:
        for _ in range(8):
            _, root[0] = env.step_and_maybe_reset(env.rand_action(root[0]))
        return 8 * games

    return play


def open_spiel(size: int) -> Callable[[], int] | None:
    """Build random games in OpenSpiel, or None if it is not installed."""
    try:
        import pyspiel
    except ImportError:
        return None
    game = pyspiel.load_game("hex", {"num_rows": size, "num_cols": size})

    def play() -> int:
        state, plies = game.new_initial_state(), 0
        while not state.is_terminal():
            state.apply_action(random.choice(state.legal_actions()))
            plies += 1
        return plies

    return play


def pgx(*, seconds: float) -> float | None:
    """Measure random games in pgx on 11 x 11 in a separate process; None if it is not installed."""
    interpreter = os.environ.get("EDGEWISE_PGX_PYTHON", sys.executable)
    program = Path(__file__).with_name("hex_pgx.py")
    command = [interpreter, str(program), "--games", str(PGX_GAMES), "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def iteration_share(*, batches: int) -> float:
    """Measure the environment's share of the CPU time of self-play iterations of `hex-selfplay`."""
    config = RECIPE.config
    worlds = config.training.num_envs
    assert isinstance(worlds, int)
    env = make_env("hex", num_envs=worlds, seed=0, **config.env.to_plain())
    model = make_actor_critic(env.graph, env.actions, config.model)
    algorithm = PPO(model, SelfPlayConfig(**config.algorithm.to_plain()), seed=0)
    share = config.algorithm.pool_share
    rollout = SelfPlayRollout(
        env, algorithm.policy, rollout_length=config.training.rollout_length, share=share
    )
    spent = [0.0]

    def timed(way: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return way(*arguments)
            finally:
                spent[0] += time.process_time() - start

        return call

    algorithm.learn(rollout.collect())
    for name in ("step", "simulate", "maybe_reset"):
        setattr(env, name, timed(getattr(env, name)))
    start = time.process_time()
    for _ in range(batches):
        algorithm.learn(rollout.collect())
    return spent[0] / (time.process_time() - start)


def run(quick: bool) -> dict[str, Any]:
    """Measure plies per CPU-second by board and number of games, and the share of an iteration."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    seconds = 0.5 if quick else 3.0
    results: dict[str, Any] = {}
    for size in (7, 11):
        board: dict[str, Any] = {}
        for games in BATCHES:
            board[str(games)] = {
                "rules": rate(rules(size, games), seconds=seconds),
                "env": rate(environment(size, games), seconds=seconds),
            }
        other = open_spiel(size)
        board["open_spiel"] = None if other is None else rate(other, seconds=seconds)
        results[f"{size}x{size}"] = board
    results["11x11"]["pgx"] = pgx(seconds=seconds)
    results["env_share_of_iteration"] = iteration_share(batches=1 if quick else 4)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    results = run(options.quick)
    print("board   games     rules/s       env/s")
    for board in ("7x7", "11x11"):
        for games in map(str, BATCHES):
            row = results[board][games]
            print(f"{board:<6}{games:>7}{row['rules']:>12,.0f}{row['env']:>12,.0f}")
        other = results[board]["open_spiel"]
        print(f"{board:<6}  OpenSpiel: {'not installed' if other is None else f'{other:,.0f}'}")
    theirs = results["11x11"]["pgx"]
    print(f"11x11 {PGX_GAMES:>7}  pgx: {'not installed' if theirs is None else f'{theirs:,.0f}'}")
    print(f"environment's share of a self-play iteration: {100 * results['env_share_of_iteration']:.1f} %")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
