"""What `train` and `resume` do with several processes: start them, or be one of them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from edgewise.config.errors import ProcessLost
from edgewise.config.run import AnyRun
from edgewise.scale.division import refuse_unequal_shares
from edgewise.scale.processes.ranks import end_with_command, place_of_this_process, run_processes


def starts_processes(config: AnyRun) -> bool:
    """Return whether this command must start processes; not if it trains by itself, or is one of them.

    Raises:
        ConfigError: the processes cannot share the run.
    """
    if config.processes == 1 or place_of_this_process() is not None:
        return False
    refuse_unequal_shares(config)
    return True


def start_processes(words: Sequence[str], options: Namespace, *, processes: int) -> int:
    """Run a command line in several processes, with the options of all verbs; return its exit code."""
    shared = [f"--plugin={reference}" for reference in options.plugin or ()]
    shared += [f"--logger={reference}" for reference in options.logger]
    shared += ["--json"] if options.json else []
    return run_processes([*words, *shared], processes=processes)


@contextmanager
def as_process() -> Iterator[bool]:
    """Run the body as one of several processes, if this is one; yields whether it shows results.

    If another process ends, the command that started them all says so.
    """
    place = place_of_this_process()
    end_with_command()
    try:
        yield place is None or place.rank == 0
    except ProcessLost as error:
        if place is None or not place.launched:
            raise
        raise SystemExit(error.exit_code) from error
