"""Device placement of constants, and whether shapes may depend on values (only on a CPU)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode


def can_count(tensor: Tensor) -> bool:
    """Return whether reading values on the host is free: on a CPU, neither compiled nor in FakeTensorMode."""
    if torch.compiler.is_compiling():
        return False
    return tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor)


def to_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Move `tensor` to `device`. In FakeTensorMode it is recreated, since real tensors are not allowed."""
    if type(tensor) is Tensor and _get_current_dispatch_mode() is not None:
        with _disable_current_modes():
            values = tensor.numpy()
        tensor = torch.tensor(values)
    return tensor.to(device)
