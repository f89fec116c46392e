"""A parser whose mistakes are ours to word, and which leaves the settings of a config to the config."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from edgewise.config.errors import ConfigError

Settings = list[tuple[str, str | None]]
"""Flags that are settings of a config: a name and its value, None where the flag stands alone."""

LARGEST = 2**63 - 1
"""What a seed, or any other number, can be at most."""


def whole(least: int) -> Callable[[str], int]:
    """Reads whole numbers from `least`, for options that hold one.

    Example:
        >>> whole(1)("12")
        12
    """

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not least <= number <= LARGEST:
            most = f" to {LARGEST}" if number is not None and number > LARGEST else ""
            raise argparse.ArgumentTypeError(f"got {text}, expected a whole number from {least}{most}")
        return number

    return read


class Parser(argparse.ArgumentParser):
    """Takes its own options, and where `takes_settings` is set any other `--name value` as a setting."""

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
        self.own: dict[str, argparse.Action] = {}
        self.add_argument("-h", "--help", action="store_true", help="show this and leave")
        self.add_argument("--json", action="store_true", help="data as one JSON document on stdout")

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        """As argparse's, and remembers the option."""
        action = super().add_argument(*names, **options)
        self.own.update(dict.fromkeys(action.option_strings, action))
        return action

    def add_machine(self) -> None:
        """The options of every verb that computes."""
        self.add_argument("--seed", type=whole(0), metavar="N", help="what everything random follows from")
        self.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1 or mps")
        self.add_threads()

    def add_threads(self) -> None:
        """How many threads to use."""
        self.add_argument(
            "--threads", type=whole(1), default=1, metavar="N", help="threads of each operation (1)"
        )

    def examples(self, *lines: str) -> None:
        """Commands to copy, shown below the help."""
        self.epilog = "examples:\n" + "\n".join(f"  {line}" for line in lines)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options; settings, if taken, are under `settings`."""
        own, settings = self._split(arguments) if self.takes_settings else (list(arguments), [])
        options = self.parse_args(own)
        options.settings = settings
        return options

    def help_for(self, arguments: Sequence[str]) -> str:
        """The help text, with the details that the verb has on what it was given."""
        return f"{self.format_help().rstrip()}{self.details(arguments)}"

    def error(self, message: str) -> NoReturn:
        """A mistake on the command line."""
        raise ConfigError(f"{self.prog}: {message}", hint=f"{self.prog} --help says what it takes")

    def _split(self, arguments: Sequence[str]) -> tuple[list[str], Settings]:
        """What is ours and what are settings, whatever their order."""
        own: list[str] = []
        settings: Settings = []
        waiting = list(arguments)
        while waiting:
            token = waiting.pop(0)
            name, equals, value = token.partition("=")
            if name in self.own:
                own.append(token)
                if self.own[name].nargs != 0 and not equals and waiting:
                    own.append(waiting.pop(0))
            elif not name.startswith("--") or name == "--":
                own.append(token)
            elif equals:
                settings.append((name, value))
            else:
                stands_alone = not waiting or waiting[0].startswith("--")
                settings.append((name, None if stands_alone else waiting.pop(0)))
        return own, settings
