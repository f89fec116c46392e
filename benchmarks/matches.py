"""Play runs against opponents that are too slow for a whole arena: no opponent meets another.

python -m benchmarks.matches RUN [RUN ...] --opponents mcts:200 --games 64
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from edgewise.evaluation.arena.match import play_match
from edgewise.experiments.contest import make_contest
from edgewise.experiments.load import load_config
from edgewise.training.run_folder import RunFolder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--opponents", required=True, help="as of `edgewise arena`, separated by commas")
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    opponents = options.opponents.split(",")
    contest = make_contest(
        options.runs,
        games=options.games,
        opponents=opponents,
        settings=load_config(RunFolder(options.runs[0]).config_file).evaluation.settings,
        which="latest",
    )
    for run in contest.checkpoints:
        for opponent in opponents:
            start = time.process_time()
            match = play_match(
                contest.env, contest.players[run], contest.players[opponent], seed=options.seed
            )
            low, high = (100 * each for each in (match.interval().low, match.interval().high))
            print(
                f"{run} against {opponent}: {100 * match.score:.1f} % [{low:.1f}, {high:.1f}] of "
                f"{match.games} games, {100 * match.draws:.1f} % drawn, {match.plies.mean():.0f} plies, "
                f"{time.process_time() - start:.0f} CPU-s",
                flush=True,
            )


if __name__ == "__main__":
    main()
