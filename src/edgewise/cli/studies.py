"""What the verbs that train share: what is trained, how many runs at a time, and how children are started."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from edgewise.terminal.parser import Parser, whole_number

if TYPE_CHECKING:
    from edgewise.evaluation.statistics import Interval
    from edgewise.studies.scheduler import Program


def add_source(parser: Parser) -> None:
    """Add the arguments that say what is trained, and which loggers follow it."""
    parser.add_argument(
        "source",
        metavar="WHAT",
        help="a recipe; an environment by name or address, such as tsp.py, tsp.py:TSPEnv or "
        "package.module:TSPEnv; or a YAML or JSON config file",
    )
    parser.add_argument(
        "--algorithm", metavar="NAME", help="for an environment: name or address of an algorithm (ppo)"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="file with settings that override those of the recipe"
    )
    parser.add_argument(
        "--logger",
        metavar="NAME",
        action="append",
        default=[],
        help="also send the numbers to this logger, by name or address; may be given several times",
    )


def add_jobs(parser: Parser) -> None:
    """Add the option for the number of runs at a time."""
    parser.add_argument(
        "--jobs", type=whole_number(1, 1024), default=1, metavar="N", help="runs at a time (1)"
    )


def child_program(options: Namespace) -> Program:
    """Return the program that runs a child, with the plug-ins and loggers that the user named."""
    from edgewise.studies.scheduler import Program

    # `-m` puts the working directory on the path, where a file of the user's may have the name of a module.
    safe = () if {"", os.getcwd()} & set(sys.path) else ("-P",)
    return Program(
        (sys.executable, *safe, "-m", "edgewise.cli.child"),
        plugins=tuple(options.plugin or ()),
        loggers=tuple(getattr(options, "logger", ())),
    )


def shown(interval: Interval | None) -> str:
    """Format an estimate with its interval and the number of samples."""
    return "" if interval is None else str(interval)


def train_words(options: Namespace, *, without: str | None = None) -> list[str]:
    """Return the words of `edgewise train` that were typed, but for one setting and what a study decides."""
    words = [str(options.source)]
    for flag, value in {"--algorithm": options.algorithm, "--config": options.config}.items():
        words += [] if value is None else [f"{flag}={value}"]
    for name, value in options.settings:
        if name.removeprefix("--") != without:
            words.append(name if value is None else f"{name}={value}")
    return words
