"""The class that Ray starts on a cluster. Importing it imports neither torch nor Ray."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import EdgewiseError

if TYPE_CHECKING:
    from edgewise.scale.workers.message import Message
    from edgewise.scale.workers.worker import Worker


class Actor:
    """A worker in a process of Ray."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def build(self, blueprint: str) -> dict[str, Any]:
        """Build the worker; returns the number of its process, or the failure."""
        try:
            from edgewise.scale.workers.worker import Blueprint, Worker

            wanted = Blueprint.from_json(blueprint)
            if os.path.isdir(wanted.folder):
                os.chdir(wanted.folder)
            self._worker = Worker(wanted)
        except EdgewiseError as error:
            return {"kind": type(error).__name__, "message": error.message, "hint": error.hint}
        except Exception as error:
            return {"kind": type(error).__name__, "message": traceback.format_exc(), "hint": None}
        return {"pid": os.getpid()}

    def answer(self, verb: str, order: Message, call: Message) -> Message:
        """Do a call."""
        assert self._worker is not None
        return self._worker.answer(verb, order, call)
