"""Errors that a user can cause and mend: one clear message, an optional remedy, and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgewise.config.layers import Problem


class EdgewiseError(Exception):
    """An error in the user's terms.

    Args:
        message: what was got and what is wrong with it, naming file and field.
        hint: what would do instead.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"


class ConfigError(EdgewiseError):
    """A configuration that cannot be used.

    Args:
        message: every problem, one to a line.
        hint: what would do instead.
        problems: the same problems one by one, for programs.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class DataError(EdgewiseError):
    """A dataset, network file or instance that cannot be used."""

    exit_code = 2


class CheckpointError(EdgewiseError):
    """A checkpoint that is corrupt, foreign or missing."""

    exit_code = 3


class NumericalStop(EdgewiseError):  # noqa: N818 - a stop on purpose
    """A run stopped because a number was not finite."""

    exit_code = 4


class Interrupted(EdgewiseError):  # noqa: N818 - a stop on purpose
    """A run stopped by the user after a clean checkpoint."""

    exit_code = 130
