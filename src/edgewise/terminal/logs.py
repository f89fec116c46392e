"""What the library says while it works goes to stderr, as plain lines."""

from __future__ import annotations

import logging
import os
import sys

_handlers: list[logging.Handler] = []


def to_stderr() -> None:
    """Send the library's log to the stderr of now; an earlier call is undone.

    TorchRL would tell stdout, where data go, of every store it makes; it reads its level when imported.
    """
    os.environ.setdefault("RL_LOGGING_LEVEL", "WARNING")
    logger = logging.getLogger("edgewise")
    for handler in _handlers:
        logger.removeHandler(handler)
    _handlers[:] = [logging.StreamHandler(sys.stderr)]
    logger.addHandler(_handlers[0])
    logger.setLevel(logging.INFO)
