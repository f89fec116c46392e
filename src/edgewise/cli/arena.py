"""`edgewise arena`: players against players, from the same openings and both seats, with ratings."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.experiments.load import load_config
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole
from edgewise.terminal.sweep import combinations, given_settings

if TYPE_CHECKING:
    from edgewise.evaluation.arena.ratings import Rating
    from edgewise.evaluation.arena.tournament import CrossTable

ANCHOR = "random"
Worst = dict[str, dict[str, float]]
"""Exploitability by player and board."""


def configure(parser: Parser) -> None:
    """Says what the verb takes."""
    parser.takes_settings = True
    parser.usage = "edgewise arena RUN [RUN ...] [--games N] [--opponents NAMES] [--SETTING VALUE ...]"
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="run folders or checkpoints")
    parser.add_argument("--games", type=whole(2), default=400, metavar="N", help="games in each match (400)")
    parser.add_argument(
        "--opponents",
        metavar="NAMES",
        default="shortest_way",
        help="players beside random, with commas (shortest_way)",
    )
    parser.add_argument("--snapshots", action="store_true", help="let every checkpoint of a run play")
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="which weights (best)"
    )
    parser.add_argument(
        "--search",
        type=whole(0),
        default=0,
        metavar="N",
        help="let runs play once more, looking at N positions before each move",
    )
    parser.add_argument(
        "--no-exact", action="store_true", help="leave out the worst cases of runs on small boards"
    )
    parser.add_argument("--stochastic", action="store_true", help="let policies draw their moves")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=A", help="another value of a field of the game"
    )
    parser.add_machine()
    parser.examples(
        "edgewise arena runs/hex-selfplay-1 --games 400 --size 7 --opening-plies 2",
        "edgewise arena runs/hex-selfplay-1 --snapshots --opponents shortest_way,monte_carlo",
        "edgewise arena runs/hex-selfplay-1 --games 100 --search 32 --opponents mcts,open_spiel",
        "edgewise arena runs/hex-selfplay-1 runs/hex-selfplay-2 --size 11 --json",
    )


def run(options: Namespace, console: Console) -> int:
    """Plays every match, and shows the cross table and the ratings."""
    from edgewise.training.run_folder import RunFolder

    settings = _settings(options, RunFolder(_folder(options.runs[0])).config_file)
    prepare(threads=options.threads)
    from edgewise.evaluation.arena.tournament import play_arena
    from edgewise.experiments.build import check_device
    from edgewise.experiments.contest import exploitability, make_contest

    check_device(options.device or "cpu")
    others = [name for name in options.opponents.split(",") if name and name != ANCHOR]
    contest = make_contest(
        options.runs,
        games=options.games,
        opponents=[ANCHOR, *others],
        settings=settings,
        snapshots=options.snapshots,
        which=options.checkpoint,
        search=options.search,
        device=options.device or "cpu",
    )
    found = play_arena(
        contest.env,
        contest.players,
        seed=options.seed or 0,
        deterministic=not options.stochastic,
        progress=lambda one, other: console.note(f"{one} against {other}"),
    )
    ratings = found.ratings(anchor=ANCHOR)
    worst = {} if options.no_exact else exploitability(contest)
    console.show(_data(found, ratings, worst, settings=settings), _text(found, ratings, worst))
    return 0


def _folder(run: Path) -> Path:
    """The run folder that a path means, be it one or a checkpoint within one."""
    return run.resolve().parents[1] if run.parent.name == "checkpoints" else run


def _settings(options: Namespace, config_file: Path) -> dict[str, Any]:
    """The one combination of settings that was asked for, over those of the run's evaluation."""
    config = load_config(config_file)
    given = combinations(config.env, given_settings(options.set, options.settings))
    if len(given) != 1:
        raise ConfigError(f"an arena is played on one board, got {len(given)} combinations of settings")
    return {**config.evaluation.settings, **given[0]}


def _data(
    found: CrossTable, ratings: list[Rating], worst: Worst, *, settings: dict[str, Any]
) -> dict[str, Any]:
    names = found.names
    return {
        "settings": settings,
        "games": next(iter(found.matches.values())).games,
        "players": list(names),
        "scores": found.scores(),
        "ratings": [
            {"name": one.name, "rating": one.rating.estimate, "low": one.rating.low, "high": one.rating.high}
            for one in ratings
        ],
        "cycles": [list(cycle) for cycle in found.cycles()],
        "nash": dict(zip(names, found.nash().tolist(), strict=True)),
        "surprises": [
            {
                "player": names[one.row],
                "opponent": names[one.column],
                "score": one.score,
                "foretold": one.foretold,
            }
            for one in found.surprises(ratings)
        ],
        "exploitability": worst,
    }


def _text(found: CrossTable, ratings: list[Rating], worst: Worst) -> str:
    """The ratings, best first, what every player scored against every other, in percent, and what is odd."""
    weights = dict(zip(found.names, found.nash(), strict=True))
    ordered = sorted(ratings, key=lambda one: -one.rating.estimate)
    listed = [
        [one.name, f"{one.rating.estimate:.0f}", _span(one), f"{weights[one.name]:.2f}"] for one in ordered
    ]
    scores = [
        [name, *("" if score is None else f"{100 * score:.1f}" for score in row)]
        for name, row in zip(found.names, found.scores(), strict=True)
    ]
    parts = [
        table(["player", "rating", "95 %", "Nash weight"], listed),
        table(["score in %", *found.names], scores),
        *_worst_text(worst),
        *_order_text(found, ratings),
    ]
    return "\n\n".join(parts)


def _worst_text(worst: Worst) -> list[str]:
    """Openings, in percent, that the best opponent wins from both sides though one is won."""
    if not worst:
        return []
    boards = list(next(iter(worst.values())))
    rows = [[name, *(f"{100 * of[board]:.1f}" for board in boards)] for name, of in worst.items()]
    return [table(["exploitability in %", *boards], rows)]


def _order_text(found: CrossTable, ratings: list[Rating]) -> list[str]:
    """Circles of players, and results that no rating explains."""
    circles = [f"{a} beats {b}, which beats {c}, which beats {a}" for a, b, c in found.cycles()]
    odd = [
        f"{found.names[one.row]} scored {100 * one.score:.1f} % against {found.names[one.column]}, "
        f"where ratings foretell {100 * one.foretold:.1f} %"
        for one in found.surprises(ratings)
    ]
    nobody = "nobody beats somebody who beats their better"
    return ["\n".join(circles) or nobody, "\n".join(odd) or "ratings explain every score within chance"]


def _span(one: Rating) -> str:
    return f"[{one.rating.low:.0f}, {one.rating.high:.0f}]"
