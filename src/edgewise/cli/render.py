"""`edgewise render`: draw an episode of a run as a picture or an animation."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.experiments.load import load_config
from edgewise.runs.folder import RunFolder
from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number
from edgewise.terminal.sweep import combinations, given_settings

EPISODES = 16
"""Instances that are played to find an instructive episode."""


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.takes_settings = True
    parser.usage = "edgewise render RUN --to FILE [options] [--SETTING VALUE ...]"
    parser.add_argument("run", metavar="RUN", type=run_path, help="run folder or zoo:NAME")
    parser.add_argument(
        "--to",
        metavar="FILE",
        type=Path,
        required=True,
        help="output file: .gif or .mp4 for the whole episode, .png or .svg for one moment",
    )
    parser.add_argument(
        "--episode",
        type=whole_number(0),
        metavar="N",
        help="which episode of the newest recorded evaluation, counted from 0 (0)",
    )
    parser.add_argument(
        "--play",
        action="store_true",
        help="play a new episode instead; also done where none is recorded, or for other settings or seeds",
    )
    parser.add_argument("--seed", type=whole_number(0), metavar="N", help="play on instances of another seed")
    parser.add_argument("--checkpoint", choices=["best", "latest"], help="play with this checkpoint (best)")
    parser.add_argument(
        "--frame", type=int, metavar="K", help="moment of a .png or .svg file, from the end if negative (-1)"
    )
    parser.add_argument("--fps", type=whole_number(1), metavar="F", help="frames per second of an animation")
    parser.add_argument(
        "--width", type=whole_number(160), metavar="PIXELS", default=640, help="width of the picture (640)"
    )
    parser.add_argument(
        "--height", type=whole_number(100), metavar="PIXELS", help="height of the picture (what it needs)"
    )
    parser.add_argument("--theme", choices=["light", "dark"], default="light", help="colours (light)")
    parser.add_argument(
        "--bare", action="store_true", help="the scene alone, without title, time, curves and legend"
    )
    parser.examples(
        "edgewise render runs/graphwalk-ppo-1 --to walk.gif",
        "edgewise render runs/graphwalk-ppo-1 --to step.svg --frame 10 --theme dark",
        "edgewise render zoo:graphwalk-ppo --to large.mp4 --num-nodes 40",
    )


def run(options: Namespace, console: Console) -> int:
    """Draw the episode and show where it was written."""
    from edgewise.report.pictures.write import ENDINGS, write

    if options.to.suffix.lower() not in ENDINGS:
        raise ConfigError(f"--to: got {options.to}, expected a file that ends with {', '.join(ENDINGS)}")
    replay = _replay(options, console)

    def progress(done: int, total: int) -> None:
        if done == total or done % 50 == 0:
            console.note(f"drew {done} of {total} frames")

    written = write(
        replay,
        options.to,
        frame=options.frame,
        fps=options.fps,
        width=options.width,
        height=options.height,
        theme=options.theme,
        bare=options.bare,
        progress=progress,
    )
    data = {"picture": str(written), "frames": len(replay["frames"]), "bytes": written.stat().st_size}
    console.show(data, f"picture: {written}")
    return 0


def _replay(options: Namespace, console: Console) -> dict[str, Any]:
    """Return a recorded episode, or one that is played now."""
    from edgewise.experiments.episodes import play_episode, recorded_episode

    chosen = options.play or options.seed is not None or options.checkpoint is not None
    if not (chosen or options.settings):
        recorded = recorded_episode(options.run, options.episode or 0)
        if recorded is not None:
            return recorded
        console.note("the run has recorded no episode: its policy plays one now")
    if options.episode is not None:
        raise ConfigError(
            "--episode: chooses among recorded episodes, and here a new one is played",
            hint="leave it out; another --seed gives other instances",
        )
    prepare(threads=1)
    from edgewise.evaluation.request import EvaluationRequest

    config = load_config(RunFolder(options.run).config_file)
    settings, *others = combinations(config.env, given_settings([], options.settings))
    if others:
        raise ConfigError("settings: got several values, and an episode has one", hint="give one value each")
    return play_episode(
        options.run,
        EvaluationRequest(
            episodes=EPISODES,
            seed=options.seed,
            settings=settings,
            checkpoint=options.checkpoint or "best",
            device="cpu",
        ),
    )
