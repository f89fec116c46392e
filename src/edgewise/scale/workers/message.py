"""Messages to and from workers: a state as JSON and numpy arrays, which need no pickle of our own.

Ray hands numpy arrays out without copying them, in memory that cannot be written to.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.config import errors
from edgewise.config.errors import EdgewiseError
from edgewise.runs.checkpoint import serialise
from edgewise.runs.checkpoint.serialise import State

Message = dict[str, Any]
"""`form`, a state as JSON text, and `arrays`, its tensors by name."""

UNKNOWN_TO_NUMPY = {torch.bfloat16: torch.int16}
"""Types that numpy lacks, and those of the same size that stand for them."""


def pack(state: State) -> Message:
    """Return a state as a message; its arrays share memory with tensors on the CPU."""
    skeleton, tensors = serialise.flatten(state)
    foreign = {name: each for name, each in tensors.items() if each.dtype in UNKNOWN_TO_NUMPY}
    viewed = {name: UNKNOWN_TO_NUMPY[each.dtype] for name, each in foreign.items()}
    views = {name: str(each.dtype).removeprefix("torch.") for name, each in foreign.items()}
    arrays = {
        name: (each.view(viewed[name]) if name in viewed else each).detach().cpu().numpy()
        for name, each in tensors.items()
    }
    return {"form": json.dumps({"skeleton": skeleton, "views": views}), "arrays": arrays}


def unpack(message: Message) -> State:
    """Return the state of a message; its tensors share memory with the arrays, and are only to be read."""
    form = json.loads(message["form"])
    tensors = {name: _tensor(array) for name, array in message["arrays"].items()}
    for name, dtype in form["views"].items():
        tensors[name] = tensors[name].view(getattr(torch, dtype))
    return serialise.unflatten(form["skeleton"], tensors)


def copied(message: Message) -> Message:
    """Return a message with memory of its own."""
    return {**message, "arrays": {name: np.array(each) for name, each in message["arrays"].items()}}


def size(message: Message) -> int:
    """Return the bytes of the arrays of a message."""
    return sum(array.nbytes for array in message["arrays"].values())


@dataclass(frozen=True)
class Failure:
    """An error in a worker, which is raised again where the run learns.

    Args:
        kind: name of its class.
        message: what is wrong.
        hint: how to fix it; None for an error that is not the user's.
        root: the observation that it failed on, for the check of numbers that are not finite.
    """

    kind: str
    message: str
    hint: str | None = None
    root: State = None

    def to_state(self) -> State:
        """Return the failure as a state."""
        return {"failure": vars(self).copy()}

    def error(self) -> Exception:
        """Return the error to raise."""
        known = getattr(errors, self.kind, None)
        if isinstance(known, type) and issubclass(known, EdgewiseError):
            return known(self.message, hint=self.hint)
        return RuntimeError(f"a worker failed:\n{self.message}")


def failure_in(reply: State) -> Failure | None:
    """Return the failure that a reply tells of; None if it has a result."""
    told = reply.get("failure")
    return None if told is None else Failure(**told)


def _tensor(array: np.ndarray) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of memory that cannot be written to
        return torch.from_numpy(array)
