"""`edgewise resume`: continue a run from its last checkpoint, bit-exactly on a CPU."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from edgewise.cli.processes import as_process, start_processes
from edgewise.config.errors import ConfigError
from edgewise.runs.zoo import run_path
from edgewise.scale.processes.ranks import place_of_this_process
from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.takes_settings = True
    parser.add_argument("run", metavar="RUN", type=run_path, help="run folder")
    parser.add_argument(
        "--total-frames", metavar="N", help="new total number of frames; it is stored in the run folder"
    )
    parser.add_argument(
        "--curriculum",
        metavar="STAGES",
        help="stages to go on with, as in training.curriculum; the first begins now, unless the run is in a "
        "stage of these",
    )
    parser.add_argument("--device", metavar="NAME", help="device to continue on: cpu, cuda, cuda:1 or mps")
    parser.add_argument(
        "--threads",
        type=whole_number(1, 1024),
        metavar="N",
        help="threads per tensor operation, in place of the run's; another number changes its results",
    )
    parser.add_argument(
        "--processes",
        type=whole_number(1, 1024),
        metavar="N",
        help="processes that train together; a run continues with as many as it began with, by default",
    )
    parser.add_argument(
        "--ray.address",
        dest="ray_address",
        metavar="ADDRESS",
        help="cluster of the run's workers, if it has moved: host:port, or auto for that of this machine",
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
        "edgewise resume runs/graphwalk-ppo-1",
        "edgewise resume runs/graphwalk-ppo-1 --total-frames 1e6",
        """edgewise resume runs/team-1 --curriculum '[{"name": "six", "env": {"num_agents": 6}}]'""",
    )


def run(options: Namespace, console: Console) -> int:
    """Continue the run and show its results."""
    _refuse_settings(options)
    from edgewise.runs.folder import RunFolder
    from edgewise.scale.division import refuse_other_processes

    processes = RunFolder(options.run).config().get("processes", 1)
    refuse_other_processes(options.run, then=processes, now=options.processes or processes)
    if processes > 1 and place_of_this_process() is None:
        return start_processes(_words(options), options, processes=processes)
    prepare(threads=options.threads or 1)
    from edgewise.experiments.launch import resume
    from edgewise.terminal.outcome import show_run
    from edgewise.training.callbacks import make_loggers
    from edgewise.training.logging.progress import ShowProgress

    flags = [(flag, str(value)) for flag, value in _changes(options).items() if value is not None]
    with as_process() as shows:
        folder = resume(
            options.run,
            checkpoint=options.checkpoint,
            flags=flags,
            callbacks=[ShowProgress(), *make_loggers(options.logger)] if shows else [],
            accept_changed_code=options.accept_changed_code,
        )
        if shows:
            show_run(folder, console)
    return 0


def _refuse_settings(options: Namespace) -> None:
    """Raise `ConfigError` for settings: only the arguments of this verb can change when a run continues."""
    if options.settings:
        flags = ", ".join(flag for flag, _ in options.settings)
        raise ConfigError(
            f"{flags}: a run continues with its own settings, since its replay buffer and its worlds have "
            "the sizes of these",
            hint="`edgewise resume --help` lists what can change. Sizes change by --curriculum, with room "
            "from the beginning, such as env.max_agents; a trained policy acts at other sizes in "
            "`edgewise eval`",
        )


def _changes(options: Namespace) -> dict[str, Any]:
    """Return the settings that may change when a run continues, by their flags; None for those not given."""
    return {
        "--total-frames": options.total_frames,
        "--curriculum": options.curriculum,
        "--device": options.device,
        "--threads": options.threads,
        "--ray.address": options.ray_address,
    }


def _words(options: Namespace) -> list[str]:
    """Return the words of this command line, without the options of every verb."""
    given = {**_changes(options), "--checkpoint": options.checkpoint}
    words = ["resume", str(options.run)]
    words += [f"{flag}={value}" for flag, value in given.items() if value is not None]
    return words + (["--accept-changed-code"] if options.accept_changed_code else [])
