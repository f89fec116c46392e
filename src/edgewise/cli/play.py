"""`edgewise play`: play a game against a policy on a page in the browser, or watch two policies."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number
from edgewise.terminal.sweep import combinations, given_settings


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.takes_settings = True
    parser.usage = "edgewise play PLAYER [PLAYER] [--seat first|second] [--search N] [--SETTING VALUE ...]"
    parser.add_argument(
        "players",
        nargs="+",
        metavar="PLAYER",
        help="run folder, checkpoint, zoo:NAME or GAME:BASELINE to play against; two of them to watch",
    )
    parser.add_argument(
        "--seat", choices=["first", "second"], default="first", help="the seat that you play (first)"
    )
    parser.add_argument(
        "--search",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="let trained policies search N simulations before each move (0)",
    )
    parser.add_argument(
        "--port", type=whole_number(0), default=0, metavar="N", help="port of the page (any free one)"
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="checkpoint to load (best)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=A", help="set a field of the environment"
    )
    parser.add_argument("--seed", type=whole_number(0), default=0, metavar="N", help="random seed")
    parser.add_threads()
    parser.examples(
        "edgewise play RUN",
        "edgewise play RUN --search 64 --seat second --port 8000",
        "edgewise play RUN/checkpoints/CHECKPOINT GAME:BASELINE",
    )


def run(options: Namespace, console: Console) -> int:
    """Serve the page until the command is interrupted."""
    if len(options.players) > 2:
        raise ConfigError(f"a game has one or two players besides you, got {len(options.players)}")
    options.players = [str(run_path(player)) for player in options.players]
    prepare(threads=options.threads)
    from edgewise.experiments.browser.players import make_table
    from edgewise.experiments.browser.server import GameServer
    from edgewise.experiments.browser.session import Session

    table = make_table(
        options.players,
        settings=_settings(options),
        search=options.search,
        which=options.checkpoint,
        seed=options.seed,
    )
    seat = None if len(options.players) == 2 else ("first", "second").index(options.seat)
    server = GameServer(Session(table, seat), port=options.port)
    console.show({"address": server.address}, f"open {server.address}\nstop with Ctrl-C")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        console.note("stopped")
    finally:
        server.server_close()
    return 0


def _settings(options: Namespace) -> dict[str, Any]:
    """Return the settings of the run's evaluation, overridden by the command line; no random opening."""
    from edgewise.experiments.load import load_config
    from edgewise.plugins import environment
    from edgewise.runs.folder import RunFolder

    place = Path(options.players[0])
    if place.is_dir():
        folder = place.resolve().parents[1] if place.parent.name == "checkpoints" else place
        run = load_config(RunFolder(folder).config_file)
        config, own = run.env, run.evaluation.settings
    elif ":" in options.players[0]:
        config, own = environment(options.players[0].partition(":")[0]).load("config")(), {}
    else:
        raise ConfigError(
            f"{options.players[0]} is no run folder and no baseline",
            hint="expected a run folder, a checkpoint in one, or GAME:BASELINE",
        )
    given = combinations(config, given_settings(options.set, options.settings))
    if len(given) != 1:
        raise ConfigError(f"a game uses one combination of settings, got {len(given)}")
    start = {"opening_plies": 0} if "opening_plies" in type(config).model_fields else {}
    return {**own, **start, **given[0]}
