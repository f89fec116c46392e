"""The command line: select the verb, run it and return its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import edgewise
from edgewise import plugins
from edgewise.cli.verbs import verbs
from edgewise.config.errors import ConfigError, DataError, EdgewiseError, Interrupted
from edgewise.plugins import Verb
from edgewise.terminal import logs
from edgewise.terminal.console import Console
from edgewise.terminal.parser import Parser

PLUGIN = "--plugin"
"""Option of every verb that imports a file or module of the user's."""

BROKEN_PIPE = 141
"""Exit code that a shell reports for a closed output pipe."""


def entry() -> None:
    """Run the program `edgewise`."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    console = Console(as_json="--json" in arguments)
    try:
        return _run(list(arguments), console)
    except EdgewiseError as error:
        return _report(error, console)
    except KeyboardInterrupt:
        return _report(Interrupted("interrupted"), console)
    except BrokenPipeError:
        # Python flushes stdout at exit, so it needs a valid target.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        if error.filename is None:
            raise
        return _report(DataError(f"{error.filename}: {error.strerror}"), console)


def _run(arguments: list[str], console: Console) -> int:
    logs.to_stderr()
    arguments, named = _split_plugins(arguments)
    for reference in named:
        plugins.use_plugin(reference)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help"):
        console.write(_overview())
        return 0
    if arguments[0] in ("-V", "--version"):
        console.show({"version": edgewise.__version__}, f"edgewise {edgewise.__version__}")
        return 0
    verb = _verb(arguments[0])
    # What the user types on this command line may be imported; what a file or a run folder says may not.
    plugins.allow_typed(arguments)
    module = verb.load()
    parser = Parser(verb.name, verb.summary, words=arguments[1:])
    module.configure(parser)
    if {"-h", "--help"} & set(arguments[1:]):
        console.write(parser.help_for(arguments[1:]))
        return 0
    options = parser.parse(arguments[1:])
    options.plugin = named
    return module.run(options, console)


def _split_plugins(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split off every `--plugin REFERENCE`, wherever it stands."""
    rest, named, waiting = [], [], list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == PLUGIN:
            if not waiting or waiting[0].startswith("--"):
                raise ConfigError(f"{PLUGIN} has no value", hint=f"give a file or a module: {PLUGIN} tsp.py")
            named.append(waiting.pop(0))
        elif word.startswith(f"{PLUGIN}="):
            named.append(word.partition("=")[2])
        else:
            rest.append(word)
    return rest, named


def _verb(name: str) -> Verb:
    known = verbs()
    if name not in known:
        plugins.use_project_plugins()
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

Reinforcement learning on graphs: train, evaluate and inspect policies.

verbs:
{listed}

examples:
  edgewise train graphwalk-ppo
  edgewise train graphwalk-ppo --total-frames 2e5 --seed 3
  edgewise eval runs/graphwalk-ppo-1 --num-nodes 8,16,32
  edgewise train my_env.py --algorithm ppo

`edgewise VERB --help` explains a verb; `edgewise train RECIPE --help` lists every setting of a recipe.
Every verb takes --json, and --plugin FILE_OR_MODULE for code of your own. Exit codes: 0 success, 2 invalid
config or data, 3 invalid checkpoint, 4 a number was not finite, 5 a process of the run died, 130
interrupted."""


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
