"""The command line: select the verb, run it and return its exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import edgewise
from edgewise import plugins
from edgewise.cli.verbs import GENERIC, overview, system_overview
from edgewise.config.errors import ConfigError, DataError, EdgewiseError, Interrupted, ResourceError
from edgewise.config.memory import is_out_of_memory
from edgewise.plugins import System, Verb
from edgewise.plugins.addresses import resolve_part
from edgewise.terminal import logs
from edgewise.terminal.console import Console
from edgewise.terminal.parser import Parser

PLUGIN = "--plugin"
"""Option of every verb that imports a file or module of the user's."""

HELP = {"-h", "--help"}
BROKEN_PIPE = 141
"""Exit code that a shell reports for a closed output pipe."""
OF_THE_DEVICE = frozenset(
    getattr(errno, name)
    for name in "EFBIG ENOSPC EDQUOT EIO EROFS ENOMEM ESTALE ETIMEDOUT EMFILE ENFILE".split()  # noqa: SIM905
    if hasattr(errno, name)
)
"""Errors that no other argument would avoid: the disk, the network or this process has no more to give."""


def entry() -> None:
    """Run the program `edgewise`."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    console = Console(as_json="--json" in arguments)
    try:
        return _run(list(arguments), console)
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except (EdgewiseError, KeyboardInterrupt, MemoryError, RuntimeError, OSError) as error:
        told = _in_words(error)
        if told is None:
            raise
        return _report(told, console)


def _in_words(error: BaseException) -> EdgewiseError | None:
    """Return what the user is told; None for an error of this program, which keeps its traceback."""
    if isinstance(error, EdgewiseError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted")
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        text = reason if error.filename is None else f"{error.filename}: {reason}"
        if error.filename is None or error.errno in OF_THE_DEVICE:
            hint = "make room or repair the device; a run goes on with `edgewise resume` and its folder"
            return ResourceError(text, hint=hint)
        return DataError(text)
    if is_out_of_memory(error):
        hint = "use fewer worlds, smaller graphs or a smaller model, or a machine with more memory"
        words = str(error).partition("\n")[0]
        return ResourceError(f"memory ran out: {words}" if words else "memory ran out", hint=hint)
    return None


def _drop_output() -> None:
    """Let stdout end in nothing: Python flushes it at exit, so it needs a valid target."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run(arguments: list[str], console: Console) -> int:
    logs.to_stderr()
    arguments, named = _split_plugins(arguments)
    for reference in named:
        plugins.use_plugin(reference)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in HELP:
        console.write(overview(_systems()))
        return 0
    if arguments[0] in ("-V", "--version"):
        console.show({"version": edgewise.__version__}, f"edgewise {edgewise.__version__}")
        return 0
    found, prefix = _verb_or_system(arguments[0]), ""
    # What the user types on this command line may be imported; what a file or a run folder says may not.
    plugins.allow_typed(arguments)
    if isinstance(found, System):
        if len(arguments) == 1 or arguments[1] in HELP:
            console.write(system_overview(found))
            return 0
        prefix, arguments = f"{found.name} ", arguments[1:]
        found = _named({verb.name: verb for verb in found.verbs}, arguments[0], of=found.name)
    return _run_verb(found, arguments[1:], prefix=prefix, plugin=named, console=console)


def _run_verb(verb: Verb, words: list[str], *, prefix: str, plugin: list[str], console: Console) -> int:
    module = verb.load()
    parser = Parser(f"{prefix}{verb.name}", verb.summary)
    module.configure(parser)
    if not HELP.isdisjoint(words):
        console.write(parser.help_for(words))
        return 0
    options = parser.parse(words)
    options.plugin = plugin
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


def _verb_or_system(name: str) -> Verb | System:
    """Return the generic verb of a name, or the system that has verbs of its own."""
    if name in GENERIC:
        return GENERIC[name]
    if name not in _systems():
        plugins.use_project_plugins()
    known = {**GENERIC, **_systems()}
    system = resolve_part(_named(known, name))
    if not isinstance(system, System):
        raise ConfigError(f"the plug-in {name} is no System", hint="mend its entry point in edgewise.systems")
    if name not in plugins.registered("system"):
        plugins.register(system)
    return system


def _systems() -> dict[str, Any]:
    """Return the systems that have verbs, by name; one of an installed package is not imported yet."""
    found = plugins.listed("system")
    return {name: each for name, each in found.items() if not isinstance(each, System) or each.verbs}


def _named(known: Mapping[str, Any], name: str, *, of: str = "") -> Any:
    if name not in known:
        from difflib import get_close_matches

        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"edgewise {of + ' ' if of else ''}has no verb {name}", hint=hint)
    return known[name]


def _report(error: EdgewiseError, console: Console) -> int:
    """Say what went wrong, as far as there is anything to say it to, and return the exit code."""
    try:
        console.note(f"error: {error}")
        _report_json(error, console)
    except OSError:  # the output itself is what failed
        _drop_output()
    return error.exit_code


def _report_json(error: EdgewiseError, console: Console) -> None:
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
