"""Readies the process before torch is imported: threads are an environment variable by then, or too many."""

from __future__ import annotations

import os


def prepare(*, threads: int) -> None:
    """Let tensor operations use `threads` threads.

    OpenMP reads its variables once, when torch is first imported; so this comes before that import, and sets
    torch's own number besides.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    import torch

    torch.set_num_threads(threads)
