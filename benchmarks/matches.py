"""Play runs against opponents that are too slow for a whole arena, where everyone meets everyone.

python -m benchmarks.matches RUN [RUN ...] --opponents mcts:200 --games 64 --set size=9
python -m benchmarks.matches RUN --opponents mcts:200,open_spiel:mcts:200 --between    # without the run
"""

from __future__ import annotations

import argparse
import time

import torch

from edgewise.evaluation.arena.match import play_match
from edgewise.experiments.contest import make_contest
from edgewise.experiments.load import load_config
from edgewise.runs.folder import RunFolder
from edgewise.runs.zoo import run_path
from edgewise.terminal.sweep import combinations, given_settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=run_path)
    parser.add_argument("--opponents", required=True, help="as of `edgewise arena`, separated by commas")
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--search", type=int, default=0, help="each run searches with so many simulations")
    parser.add_argument("--between", action="store_true", help="the first opponent plays the other ones")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=A", help="of the environment")
    options = parser.parse_args()
    torch.set_num_threads(1)
    opponents = options.opponents.split(",")
    config = load_config(RunFolder(options.runs[0]).config_file)
    (given,) = combinations(config.env, given_settings(options.set, []))
    contest = make_contest(
        options.runs,
        games=options.games,
        opponents=opponents,
        settings={**config.evaluation.settings, **given},
        which="latest",
        search=options.search,
    )
    players = [f"{run}+{options.search}" if options.search else run for run in contest.checkpoints]
    if options.between:
        players, opponents = opponents[:1], opponents[1:]
    for player in players:
        for opponent in opponents:
            start = time.process_time()
            match = play_match(
                contest.env, contest.players[player], contest.players[opponent], seed=options.seed
            )
            low, high = (100 * each for each in (match.interval().low, match.interval().high))
            print(
                f"{player} against {opponent}: {100 * match.score:.1f} % [{low:.1f}, {high:.1f}] of "
                f"{match.games} games, {100 * match.draws:.1f} % drawn, {match.plies.mean():.0f} plies, "
                f"{time.process_time() - start:.0f} CPU-s",
                flush=True,
            )


if __name__ == "__main__":
    main()
