"""Where constants live, and whether sizes may depend on values: on a GPU and in dry runs they may not."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode


def can_count(tensor: Tensor) -> bool:
    """Whether asking how many entries are set is free: on a CPU, with values to look at."""
    return tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor)


def placed(tensor: Tensor, device: torch.device | str) -> Tensor:
    """`tensor` on `device`. A dry run (FakeTensorMode) takes nothing from outside: there, it is made anew."""
    if type(tensor) is Tensor and _get_current_dispatch_mode() is not None:
        with _disable_current_modes():
            values = tensor.numpy()
        tensor = torch.tensor(values)
    return tensor.to(device)
