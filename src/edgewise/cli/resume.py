"""`edgewise resume`: goes on where the last checkpoint of a run left it, bit for bit on a CPU."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole


def configure(parser: Parser) -> None:
    """Says what the verb takes."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the run folder")
    parser.add_argument("--total-frames", metavar="N", help="train to here instead; the run folder keeps it")
    parser.add_argument("--device", metavar="NAME", help="go on on another device: cpu, cuda, cuda:1 or mps")
    parser.add_argument(
        "--threads", type=whole(1), metavar="N", help="threads of each operation, instead of the run's"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="PATH",
        type=Path,
        help="go back to this checkpoint of the run; newer ones are set aside, not lost",
    )
    parser.examples(
        "edgewise resume runs/graphwalk-ppo-1", "edgewise resume runs/graphwalk-ppo-1 --total-frames 1e6"
    )


def run(options: Namespace, console: Console) -> int:
    """Continues the run."""
    prepare(threads=options.threads or 1)
    from edgewise.experiments.launch import resume
    from edgewise.terminal.outcome import show_run
    from edgewise.training.logging.progress import watcher

    given = {"--total-frames": options.total_frames, "--device": options.device, "--threads": options.threads}
    flags = [(flag, str(value)) for flag, value in given.items() if value is not None]
    folder = resume(options.run, checkpoint=options.checkpoint, flags=flags, watcher=watcher())
    show_run(folder, console)
    return 0
