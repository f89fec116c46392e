"""Set the number of threads before torch is imported."""

from __future__ import annotations

import os


def prepare(*, threads: int) -> None:
    """Set the number of threads of tensor operations.

    Call this before torch is imported: OpenMP reads its environment variables only once, at that import.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    import torch

    torch.set_num_threads(threads)
