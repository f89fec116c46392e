"""`edgewise hub`: push a packed policy to the Hugging Face hub, or pull one from it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from edgewise.config.errors import ConfigError
from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console
from edgewise.terminal.parser import Parser


def configure(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.usage = "edgewise hub push FOLDER OWNER/NAME | edgewise hub pull OWNER/NAME --out FOLDER"
    parser.add_argument("action", choices=["push", "pull"], help="upload a packed policy, or download one")
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="packed folder or zoo:NAME to push; OWNER/NAME"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="with pull: folder to create (NAME)")
    parser.add_argument("--revision", metavar="REV", help="with pull: branch, tag or commit (the newest)")
    parser.add_argument("--private", action="store_true", help="with push: a new repository is private")
    parser.examples(
        "edgewise pack runs/graphwalk-ppo-1 --out walker",
        "edgewise hub push walker somebody/walker",
        "edgewise hub pull somebody/walker --out walker-again",
        "edgewise eval walker-again",
    )


def run(options: Namespace, console: Console) -> int:
    """Push or pull, and show where it is."""
    from edgewise.experiments.hub import pull, push

    is_push = options.action == "push"
    unused = [flag for flag in ("out", "revision") if is_push and vars(options)[flag] is not None]
    unused += ["private"] if options.private and not is_push else []
    if unused:
        raise ConfigError(f"--{unused[0]}: has no effect with {options.action}", hint="omit it")
    if len(options.names) != (2 if is_push else 1):
        raise ConfigError(
            f"hub {options.action}: got {len(options.names)} names",
            hint="edgewise hub push FOLDER OWNER/NAME, edgewise hub pull OWNER/NAME --out FOLDER",
        )
    if is_push:
        folder, name = options.names
        address = push(run_path(folder), name, private=options.private)
        console.show({"pushed": address}, f"pushed: {address}")
        return 0
    (name,) = options.names
    written = pull(name, options.out or Path(name.rpartition("/")[2]), revision=options.revision)
    console.show({"policy": str(written)}, f"policy: {written}\nedgewise verify {written} checks its files")
    return 0
