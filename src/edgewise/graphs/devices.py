"""Whether this machine has a device."""

from __future__ import annotations

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
    if not (index or "0").isdigit() or int(index or 0) >= present:
        raise ConfigError(
            f"device: got {device}, but this machine has {present} of kind {kind}", hint="use cpu"
        )
