"""The protocol of workers, and workers in this process, with which those of a cluster can be compared."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from edgewise.runs.checkpoint import random_state
from edgewise.scale.workers.message import Message, copied
from edgewise.scale.workers.worker import Blueprint, Worker


class Workers(Protocol):
    """Workers that do calls in any order, each with a reply that depends on nothing but the call."""

    def share(self, order: Message) -> Any:
        """Return an order in the form in which `submit` takes it; it is sent to a machine once."""

    def submit(self, verb: str, order: Any, call: Message, *, first: bool = False) -> int:
        """Have a call done, before all that wait if `first`; returns its number."""

    def wait(self, numbers: Collection[int]) -> int:
        """Wait until one of these calls is done; returns its number."""

    def take(self, number: int) -> Message:
        """Return the reply of a call that is done, and forget it."""

    def close(self) -> None:
        """End the workers."""


class LocalWorkers:
    """A worker in this process, which does every call at once."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._worker = Worker(Blueprint.from_json(blueprint.to_json()))
        self._replies: dict[int, Message] = {}
        self._submitted = 0

    def share(self, order: Message) -> Message:
        """Return a copy of the order."""
        return copied(order)

    def submit(self, verb: str, order: Message, call: Message, *, first: bool = False) -> int:  # noqa: ARG002
        """Do a call at once."""
        self._submitted += 1
        with random_state.untouched():
            self._replies[self._submitted] = copied(self._worker.answer(verb, order, call))
        return self._submitted

    def wait(self, numbers: Collection[int]) -> int:
        """Return the smallest number."""
        return min(numbers)

    def take(self, number: int) -> Message:
        """Return the reply of a call, and forget it."""
        return self._replies.pop(number)

    def close(self) -> None:
        """Forget all replies."""
        self._replies.clear()
