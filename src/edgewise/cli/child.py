"""Run one command line as a child of a study, and stop it with a save when the study's process has ended."""

from __future__ import annotations

import os
import signal
import sys
import threading

from edgewise.cli.main import main


def stop_with_parent() -> None:
    """Wait until stdin, a pipe that the parent never writes to, is closed; then stop this process."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=stop_with_parent, daemon=True).start()
    sys.exit(main(sys.argv[1:]))
