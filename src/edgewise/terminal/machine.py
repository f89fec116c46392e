"""Prepare this process for tensor operations: the number of threads, and memory that it keeps."""

from __future__ import annotations

import ctypes
import os
import sys

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""Parameters of glibc's `mallopt`, as its header numbers them."""
LARGEST_IN_HEAP = 32 * 2**20
"""Bytes up to which an allocation comes from the heap; glibc accepts no larger threshold."""
NEVER_TRIM = 2**31 - 1


def prepare(*, threads: int) -> None:
    """Set the number of threads of tensor operations, and keep freed memory in the process.

    Call this before torch is imported: OpenMP reads its environment variables only once, at that import.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    keep_memory()
    import torch

    torch.set_num_threads(threads)


def keep_memory() -> bool:
    """Keep freed memory in the process, instead of returning it to the system after every operation.

    glibc's allocator maps large blocks anew each time by default, and the system clears every page of them.
    With tensors of some megabytes, that is a tenth of the time of training. Settings in the environment
    (`MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_`, `GLIBC_TUNABLES`) take precedence.

    Returns:
        Whether the allocator was changed: false without glibc, or where the environment sets it.
    """
    chosen = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")
    if sys.platform != "linux" or any(name in os.environ for name in chosen):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    trimmed = set_option(TRIM_THRESHOLD, NEVER_TRIM)
    return bool(trimmed and set_option(MMAP_THRESHOLD, LARGEST_IN_HEAP))
