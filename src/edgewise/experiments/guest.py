"""Leave a program that calls edgewise as it was: threads, random generators, signal handlers, warnings."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_guest() -> Iterator[None]:
    """Restore on exit what a run sets for the whole process; also a decorator.

    Training seeds the global generators, sets the number of threads and handles signals. Without this, every
    later draw of the program that called it would follow from the seed of the run, whatever its own seed.
    """
    with warnings.catch_warnings():
        import torch

        from edgewise.runs.checkpoint.random_state import untouched

        threads, kind, learns = torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()
        in_main = threading.current_thread() is threading.main_thread()
        handlers = {number: signal.getsignal(number) for number in signal.valid_signals()} if in_main else {}
        try:
            with untouched():
                yield
        finally:
            torch.set_num_threads(threads)
            torch.set_default_dtype(kind)
            torch.set_grad_enabled(learns)
            for number, handler in handlers.items():
                if handler is not None and signal.getsignal(number) != handler:
                    signal.signal(number, handler)
