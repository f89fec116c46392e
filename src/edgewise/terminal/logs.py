"""Send the log of the library to stderr, as plain lines."""

from __future__ import annotations

import logging
import os
import sys

_handlers: list[logging.Handler] = []


def to_stderr() -> None:
    """Send the library's log to the current stderr, in place of the stream of an earlier call.

    TorchRL logs to stdout, which is for data. Its log level is set here because TorchRL reads it on import.
    """
    os.environ.setdefault("RL_LOGGING_LEVEL", "WARNING")
    logger = logging.getLogger("edgewise")
    for handler in _handlers:
        logger.removeHandler(handler)
    _handlers[:] = [logging.StreamHandler(sys.stderr)]
    logger.addHandler(_handlers[0])
    logger.setLevel(logging.INFO)
