"""Whether this machine has a device, how much memory it has there, and numbers that stay on it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from edgewise.config import files
from edgewise.config.errors import ConfigError
from edgewise.config.memory import is_out_of_memory

OWN_GROUP = Path("/proc/self/cgroup")
"""Names the control groups of this process, on Linux."""


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
    """Return the bytes of memory of a device; of a CPU, those that this process may have at most.

    That is the lowest limit of its own control group and of those above it.
    """
    device = torch.device(device)
    if device.type == "cuda" and torch.cuda.is_available():
        return int(torch.cuda.mem_get_info(device)[1])
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([installed, *_group_limits(files.read_text(OWN_GROUP) if OWN_GROUP.exists() else "")])


def _group_limits(groups: str, *, mounted: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Yield the memory limits of the control groups in `groups`, the text of `/proc/self/cgroup`.

    Version 2 has lines `0::/PATH`, version 1 lines `N:memory:/PATH`. In a container a path may be that
    of the host and not be mounted; the groups above it are.
    """
    for line in groups.splitlines():
        number, _, rest = line.partition(":")
        kinds, _, name = rest.partition(":")
        if number != "0" and "memory" not in kinds.split(","):
            continue
        top, file = (
            (mounted, "memory.max") if number == "0" else (mounted / "memory", "memory.limit_in_bytes")
        )
        group = top / name.strip("/")
        for each in (group, *group.parents):
            with suppress(OSError, ValueError):
                yield int(files.read_text(each / file))
            if each == top:
                break


def constant(entries: Any, like: Tensor, *, dtype: torch.dtype = torch.int64) -> Tensor:
    """Return nested tuples of numbers as a tensor on the device of `like`, which must not be written to.

    It is made once for each device: a copy from the host waits until the device has done all work before.

    Example:
        >>> constant((1, 2), torch.zeros(3))
        tensor([1, 2])
    """
    if isinstance(like, FakeTensor) or torch.compiler.is_compiling():
        return torch.tensor(entries, dtype=dtype, device=like.device)
    return _kept(entries, dtype, like.device)


@cache
def _kept(entries: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # usable in a later backward pass
        return torch.tensor(entries, dtype=dtype, device=device)


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
        if not is_out_of_memory(error):
            raise
        asked = re.search(r"allocate ([0-9]+) bytes", words)
        size = f": {in_bytes(int(asked[1]))} were asked for at once" if asked else ""
        raise ConfigError(f"{what} does not fit into memory{size}", hint=hint) from error
