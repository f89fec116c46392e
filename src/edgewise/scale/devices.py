"""Whether this machine has a device, and how much memory it has there."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from edgewise.config.errors import ConfigError


def check_device(device: str) -> None:
    """Raise ConfigError if this machine does not have `device`."""
    kind, _, index = device.partition(":")
    present = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }.get(kind, 0)
    if not (index or "0").isdecimal() or int(index or 0) >= present:
        raise ConfigError(
            f"device: got {device}, but this machine has {present} of kind {kind}", hint="use cpu"
        )


def total_memory(device: torch.device | str = "cpu") -> int:
    """Return the bytes of memory of a device; of a CPU, those that this process may have at most."""
    device = torch.device(device)
    if device.type == "cuda" and torch.cuda.is_available():
        return int(torch.cuda.mem_get_info(device)[1])
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        return min(installed, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return installed


def in_bytes(count: float) -> str:
    """Return a number of bytes as text, such as `3.2 GB`."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    power = min(int(math.log10(max(count, 1)) // 3), len(units) - 1)
    scaled = count / 1000**power
    return f"{scaled:.3g} {units[power]}" if scaled < 1000 else f"{scaled:,.0f} {units[power]}"


@contextmanager
def refuse_out_of_memory(what: str, *, hint: str) -> Iterator[None]:
    """Raise ConfigError in place of an error inside that is due to too little memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        words = str(error).splitlines()[0] if str(error) else ""
        is_memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
            sign in words
            for sign in ("allocate memory", "out of memory", "Storage size calculation overflowed")
        )
        if not is_memory:
            raise
        asked = re.search(r"allocate ([0-9]+) bytes", words)
        size = f": {in_bytes(int(asked[1]))} were asked for at once" if asked else ""
        raise ConfigError(f"{what} does not fit into memory{size}", hint=hint) from error
