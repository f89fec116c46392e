"""`edgewise arena`: play matches from shared openings with sides swapped, and rate the players."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.experiments.load import load_config
from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number
from edgewise.terminal.sweep import combinations, given_settings

if TYPE_CHECKING:
    from edgewise.evaluation.arena.ratings import Rating
    from edgewise.evaluation.arena.tournament import CrossTable

ANCHOR = "random"
Exploitability = dict[str, dict[str, float]]
"""Exploitability by player and instance."""


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.takes_settings = True
    parser.usage = "edgewise arena RUN [RUN ...] [--games N] [--opponents NAMES] [--SETTING VALUE ...]"
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", type=run_path, help="run folders, checkpoints or zoo:NAME"
    )
    parser.add_argument(
        "--games", type=whole_number(2), default=400, metavar="N", help="games in each match (400)"
    )
    parser.add_argument(
        "--opponents",
        metavar="NAMES",
        help="players besides random, separated by commas: baselines, or SCHEME:REST as the environment "
        "declares (the baselines of the run's own evaluation)",
    )
    parser.add_argument(
        "--snapshots", action="store_true", help="add every checkpoint of each run as a player"
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="checkpoint to load (best)"
    )
    parser.add_argument(
        "--search",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="add each run a second time, with a tree search of N simulations per move",
    )
    parser.add_argument(
        "--no-exact", action="store_true", help="skip the exact exploitability on small instances"
    )
    parser.add_argument(
        "--stochastic", action="store_true", help="sample actions instead of taking the mode of the policy"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=A", help="set a field of the environment"
    )
    parser.add_machine()
    parser.examples(
        "edgewise arena RUN --games 400",
        "edgewise arena RUN --snapshots --opponents shortest_way,monte_carlo",
        "edgewise arena RUN --games 100 --search 32 --opponents mcts",
        "edgewise arena RUN OTHER_RUN --set SETTING=VALUE --json",
    )


def run(options: Namespace, console: Console) -> int:
    """Play all matches; show the cross table and the ratings."""
    from edgewise.runs.folder import RunFolder

    settings = _settings(options, RunFolder(_folder(options.runs[0])).config_file)
    prepare(threads=options.threads)
    from edgewise.evaluation.arena.tournament import play_arena
    from edgewise.experiments.contest import exploitability, make_contest
    from edgewise.scale.devices import check_device

    check_device(options.device or "cpu")
    others = [name for name in _opponents(options) if name and name != ANCHOR]
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
        progress=lambda first, second: console.note(f"{first} against {second}"),
    )
    ratings = found.ratings(anchor=ANCHOR)
    exploitable = {} if options.no_exact else exploitability(contest)
    console.show(_data(found, ratings, exploitable, settings=settings), _text(found, ratings, exploitable))
    return 0


def _folder(run: Path) -> Path:
    """Return the run folder of a path, which is a run folder or a checkpoint inside one."""
    return run.resolve().parents[1] if run.parent.name == "checkpoints" else run


def _opponents(options: Namespace) -> Sequence[str]:
    """Return the names that were given, or the baselines that the first run is evaluated against."""
    if options.opponents is not None:
        return list(options.opponents.split(","))
    from edgewise.runs.folder import RunFolder

    own = load_config(RunFolder(_folder(options.runs[0])).config_file).evaluation.baselines
    return [] if "all" in own else own


def _settings(options: Namespace, config_file: Path) -> dict[str, Any]:
    """Return the environment settings: those of the run's evaluation, overridden by the command line."""
    config = load_config(config_file)
    given = combinations(config.env, given_settings(options.set, options.settings))
    if len(given) != 1:
        raise ConfigError(f"an arena uses one combination of settings, got {len(given)}")
    return {**config.evaluation.settings, **given[0]}


def _data(
    found: CrossTable, ratings: list[Rating], exploitable: Exploitability, *, settings: dict[str, Any]
) -> dict[str, Any]:
    names = found.names
    return {
        "settings": settings,
        "games": next(iter(found.matches.values())).games,
        "players": list(names),
        "scores": found.scores(),
        "intervals": found.intervals(),
        "draws": found.draws(),
        "ratings": [
            {"name": one.name, "rating": one.rating.estimate, **one.rating.ends()} for one in ratings
        ],
        "cycles": [list(cycle) for cycle in found.cycles()],
        "nash": dict(zip(names, found.nash().tolist(), strict=True)),
        "surprises": [
            {
                "player": names[one.row],
                "opponent": names[one.column],
                "score": one.score,
                "foretold": one.expected,
            }
            for one in found.surprises(ratings)
        ],
        "exploitability": exploitable,
    }


def _text(found: CrossTable, ratings: list[Rating], exploitable: Exploitability) -> str:
    """Format the ratings, best first, the cross table in percent, cycles and unexpected scores."""
    weights = dict(zip(found.names, found.nash(), strict=True))
    ordered = sorted(ratings, key=lambda one: -one.rating.estimate)
    listed = [
        [one.name, f"{one.rating.estimate:.0f}", _span(one), f"{weights[one.name]:.2f}"] for one in ordered
    ]
    draws = found.draws()
    drawn = any(share for row in draws for share in row)
    parts = [
        table(["player", "rating", "95 %", "Nash weight"], listed),
        _cross_text("score in %", found.names, found.scores()),
        *([_cross_text("drawn in %", found.names, draws)] if drawn else []),
        *_exploitability_text(exploitable),
        *_order_text(found, ratings),
    ]
    return "\n\n".join(parts)


def _cross_text(title: str, names: Sequence[str], shares: list[list[float | None]]) -> str:
    """Format one share for every pair of players in percent."""
    rows = [
        [name, *("" if share is None else f"{100 * share:.1f}" for share in row)]
        for name, row in zip(names, shares, strict=True)
    ]
    return table([title, *names], rows)


def _exploitability_text(exploitable: Exploitability) -> list[str]:
    """Format the percentage of openings that an optimal opponent wins from both sides."""
    if not exploitable:
        return []
    instances = list(next(iter(exploitable.values())))
    rows = [
        [name, *(f"{100 * of[instance]:.1f}" for instance in instances)] for name, of in exploitable.items()
    ]
    return [table(["exploitability in %", *instances], rows)]


def _order_text(found: CrossTable, ratings: list[Rating]) -> list[str]:
    """Format cycles of players and scores that the ratings do not explain."""
    cycles = [f"{a} beats {b}, which beats {c}, which beats {a}" for a, b, c in found.cycles()]
    surprises = [
        f"{found.names[one.row]} scored {100 * one.score:.1f} % against {found.names[one.column]}, "
        f"where the ratings predict {100 * one.expected:.1f} %"
        for one in found.surprises(ratings)
    ]
    return [
        "\n".join(cycles) or "no cycles: no three players beat each other in turn",
        "\n".join(surprises) or "the ratings explain every score within chance",
    ]


def _span(one: Rating) -> str:
    found = one.rating
    bounds = f"[{found.low:.0f}, {found.high:.0f}] " if found.has_bounds else ""
    return f"{bounds}(n={found.samples})"
