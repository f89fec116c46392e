"""Tell an error that is due to too little memory from others. Never imports torch."""

from __future__ import annotations

SIGNS = ("allocate memory", "out of memory", "Storage size calculation overflowed", "bad_alloc")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error is due to too little memory: torch raises a RuntimeError on a CPU."""
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in SIGNS)
