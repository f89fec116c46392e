"""Errors that a user can cause and fix: a message, an optional hint and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgewise.config.layers import Problem


class EdgewiseError(Exception):
    """An error caused by user input.

    Args:
        message: what was given and what is wrong with it, with file and field.
        hint: how to fix it.
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
        message: every problem, one per line.
        hint: how to fix it.
        problems: the same problems as objects, for programs.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class NoLegalActionError(ConfigError, ValueError):
    """A world has no legal action.

    Args:
        message: which world.
        world: its number in the batch.
    """

    def __init__(self, message: str, *, world: int) -> None:
        super().__init__(message, hint="let `mask` allow something in every state, or terminate the episode")
        self.world = world


class DataError(EdgewiseError):
    """A dataset, network file or instance that cannot be used."""

    exit_code = 2


class CheckpointError(EdgewiseError):
    """A checkpoint that is corrupt, missing or from another program."""

    exit_code = 3


class IllegalActionError(EdgewiseError):
    """An action that the state of its world does not allow."""


class NumericalStop(EdgewiseError):  # noqa: N818 - a deliberate stop
    """A run stopped because of a NaN or an infinite number."""

    exit_code = 4


class ProcessLost(EdgewiseError):  # noqa: N818 - a stop caused from outside
    """One of several processes of a run died, so all of them stopped."""

    exit_code = 5


class ResourceError(EdgewiseError):
    """Memory or disk that ran out, or output that could not be written."""

    exit_code = 6


class Interrupted(EdgewiseError):  # noqa: N818 - a deliberate stop
    """A run interrupted by the user, after it saved a checkpoint."""

    exit_code = 130
