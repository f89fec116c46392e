"""`edgewise resume`: continue a run from its last checkpoint, bit-exactly on a CPU."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("run", metavar="RUN", type=Path, help="run folder")
    parser.add_argument(
        "--total-frames", metavar="N", help="new total number of frames; it is stored in the run folder"
    )
    parser.add_argument("--device", metavar="NAME", help="device to continue on: cpu, cuda, cuda:1 or mps")
    parser.add_argument(
        "--threads",
        type=whole_number(1, 1024),
        metavar="N",
        help="threads per tensor operation, in place of the run's; another number changes its results",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="PATH",
        type=Path,
        help="continue from this checkpoint of the run; newer ones are renamed, not deleted",
    )
    parser.add_argument(
        "--logger",
        metavar="NAME",
        action="append",
        default=[],
        help="also send the numbers to this logger, by name or address; may be given several times",
    )
    parser.add_argument(
        "--accept-changed-code",
        action="store_true",
        help="continue though code of your own has changed since the run began",
    )
    parser.examples(
        "edgewise resume runs/graphwalk-ppo-1", "edgewise resume runs/graphwalk-ppo-1 --total-frames 1e6"
    )


def run(options: Namespace, console: Console) -> int:
    """Continue the run and show its results."""
    prepare(threads=options.threads or 1)
    from edgewise.experiments.launch import resume
    from edgewise.terminal.outcome import show_run
    from edgewise.training.callbacks import make_loggers
    from edgewise.training.logging.progress import ShowProgress

    given = {"--total-frames": options.total_frames, "--device": options.device, "--threads": options.threads}
    flags = [(flag, str(value)) for flag, value in given.items() if value is not None]
    folder = resume(
        options.run,
        checkpoint=options.checkpoint,
        flags=flags,
        callbacks=[ShowProgress(), *make_loggers(options.logger)],
        accept_changed_code=options.accept_changed_code,
    )
    show_run(folder, console)
    return 0
