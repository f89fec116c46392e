"""The front door of the command line: finds the verb, and turns every way it can end into an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import edgewise
from edgewise.cli.verbs import verbs
from edgewise.config.errors import ConfigError, DataError, EdgewiseError, Interrupted
from edgewise.config.plugins import Verb
from edgewise.terminal import logs
from edgewise.terminal.console import Console
from edgewise.terminal.parser import Parser

BROKEN_PIPE = 141
"""What a shell reports for a program whose reader went away."""


def entry() -> None:
    """The `edgewise` program."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code."""
    console = Console(as_json="--json" in arguments)
    try:
        return _run(list(arguments), console)
    except EdgewiseError as error:
        return _report(error, console)
    except KeyboardInterrupt:
        return _report(Interrupted("interrupted"), console)
    except BrokenPipeError:
        # What Python still wants to flush at exit must go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        if error.filename is None:
            raise
        return _report(DataError(f"{error.filename}: {error.strerror}"), console)


def _run(arguments: list[str], console: Console) -> int:
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help"):
        console.write(_overview())
        return 0
    if arguments[0] in ("-V", "--version"):
        console.show({"version": edgewise.__version__}, f"edgewise {edgewise.__version__}")
        return 0
    verb = _verb(arguments[0])
    module = verb.load()
    parser = Parser(verb.name, verb.summary)
    module.configure(parser)
    if {"-h", "--help"} & set(arguments[1:]):
        console.write(parser.help_for(arguments[1:]))
        return 0
    logs.to_stderr()
    return module.run(parser.parse(arguments[1:]), console)


def _verb(name: str) -> Verb:
    known = verbs()
    if name not in known:
        from difflib import get_close_matches

        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"edgewise has no verb {name}", hint=hint)
    return known[name]


def _overview() -> str:
    known = verbs()
    width = max(map(len, known))
    listed = "\n".join(f"  {verb.name.ljust(width)}  {verb.summary}" for verb in known.values())
    return f"""usage: edgewise VERB ...

Reinforcement learning on graphs: train, measure and look at policies.

verbs:
{listed}

examples:
  edgewise train graphwalk-ppo
  edgewise train graphwalk-ppo --total-frames 2e5 --seed 3
  edgewise eval runs/graphwalk-ppo-1 --num-nodes 8,16,32

`edgewise VERB --help` explains a verb, `edgewise train RECIPE --help` every setting of a recipe.
Every verb takes --json. Exit codes: 0 done, 2 bad config or data, 3 bad checkpoint, 4 a number was not
finite, 130 interrupted."""


def _report(error: EdgewiseError, console: Console) -> int:
    console.note(f"error: {error}")
    if console.as_json:
        problems = getattr(error, "problems", ())
        console.show(
            {
                "error": {
                    "message": error.message,
                    "hint": error.hint,
                    "exit_code": error.exit_code,
                    "problems": [
                        {
                            "origin": problem.origin,
                            "path": ".".join(map(str, problem.path)),
                            "reason": problem.reason,
                        }
                        for problem in problems
                    ],
                }
            },
            "",
        )
    return error.exit_code
