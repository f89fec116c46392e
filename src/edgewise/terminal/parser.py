"""An argument parser that raises `ConfigError` and collects settings of a config as flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from edgewise.config.errors import ConfigError

Settings = list[tuple[str, str | None]]
"""Flags that set fields of a config: a name and its value, None for a flag without a value."""

LARGEST = 2**63 - 1
"""Largest value of a seed and of every other whole number."""


def whole_number(least: int, most: int = LARGEST) -> Callable[[str], int]:
    """Return a function that parses whole numbers from `least` to `most`, for the `type` of an option.

    Example:
        >>> whole_number(1)("12")
        12
    """

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            upper = f" to {most}" if number is not None and number > most else ""
            raise argparse.ArgumentTypeError(f"got {text[:40]}, expected a whole number from {least}{upper}")
        return number

    return parse


class Parser(argparse.ArgumentParser):
    """Parser of one verb; with `takes_settings`, every unknown `--name value` is a setting."""

    takes_settings = False

    def __init__(self, name: str, summary: str) -> None:
        super().__init__(
            prog=f"edgewise {name}",
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=False,
            allow_abbrev=False,
        )
        self.details: Callable[[Sequence[str]], str] = lambda _: ""
        self.options: dict[str, argparse.Action] = {}
        self.add_argument("-h", "--help", action="store_true", help="show this help and exit")
        self.add_argument("--json", action="store_true", help="write results as one JSON document to stdout")
        self.add_argument(
            "--plugin",
            action="append",
            metavar="FILE_OR_MODULE",
            help="Python file or module to import first, with environments, algorithms, recipes, verbs",
        )

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        """Add an argument as in argparse, and store it by its flags."""
        action = super().add_argument(*names, **options)
        self.options.update(dict.fromkeys(action.option_strings, action))
        return action

    def add_machine(self) -> None:
        """Add the options of verbs that compute: seed, device and threads."""
        self.add_argument("--seed", type=whole_number(0), metavar="N", help="random seed")
        self.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1 or mps")
        self.add_threads()

    def add_threads(self) -> None:
        """Add the option for the number of threads."""
        self.add_argument(
            "--threads",
            type=whole_number(1, 1024),
            default=1,
            metavar="N",
            help="threads per tensor operation (1)",
        )

    def examples(self, *lines: str) -> None:
        """Set the example commands that are shown below the help."""
        self.epilog = "examples:\n" + "\n".join(f"  {line}" for line in lines)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse the options; settings are in the attribute `settings`."""
        known, settings = self._split(arguments) if self.takes_settings else (list(arguments), [])
        options = self.parse_args(known)
        options.settings = settings
        return options

    def help_for(self, arguments: Sequence[str]) -> str:
        """Return the help text, with the verb's details on the given arguments."""
        return f"{self.format_help().rstrip()}{self.details(arguments)}"

    def error(self, message: str) -> NoReturn:
        """Raise `ConfigError` for an invalid command line."""
        raise ConfigError(f"{self.prog}: {message}", hint=f"{self.prog} --help lists the arguments")

    def _split(self, arguments: Sequence[str]) -> tuple[list[str], Settings]:
        """Split arguments into those of this parser and settings, in any order."""
        known: list[str] = []
        settings: Settings = []
        waiting = list(arguments)
        while waiting:
            token = waiting.pop(0)
            name, equals, value = token.partition("=")
            if name in self.options:
                known.append(token)
                if self.options[name].nargs != 0 and not equals and waiting:
                    known.append(waiting.pop(0))
            elif not name.startswith("--") or name == "--":
                known.append(token)
            elif equals:
                settings.append((name, value))
            else:
                has_no_value = not waiting or waiting[0].startswith("--")
                settings.append((name, None if has_no_value else waiting.pop(0)))
        return known, settings
