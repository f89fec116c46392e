"""Shapes that depend on data do not vmap: what to do about it before anything is touched."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor, nn

_logger = logging.getLogger(__name__)
_REMEDY = "pass deactivate_vmap=True to TorchRL's estimator or loss, or use GraphGAE"


def may_compact(module: nn.Module, tensor: Tensor) -> bool:
    """Whether `module` may drop the padding of `tensor`, which vmap does not allow.

    Under vmap over data alone this raises a RuntimeError that says what to do; nothing is harmed. Under vmap
    over parameters, as in TorchRL's losses, the parameters of the module have been swapped for the length of
    the call, and an error would leave them so: the module would be of no use afterwards. There the answer is
    no, the padding stays, and where data is vmapped as well one line is logged.
    """
    if torch._C._functorch.maybe_current_level() is None:
        return True
    swapped = any(map(_is_batched, _tensors_in_place_of_parameters(module)))
    if _is_batched(tensor):
        if not swapped:
            raise RuntimeError(
                "this module drops padding (compact=True), and shapes that depend on data do not vmap: "
                f"{_REMEDY}, or build the module with compact=False"
            )
        _say_padded()
    return not swapped


def _is_batched(tensor: Tensor) -> bool:
    return torch._C._functorch.is_batchedtensor(tensor)


def _tensors_in_place_of_parameters(module: nn.Module) -> Iterator[Tensor]:
    """Tensors that are plain attributes, which is where TensorDict puts what it swaps in."""
    for part in module.modules():
        yield from (value for value in vars(part).values() if isinstance(value, Tensor))


@cache
def _say_padded() -> None:
    """Say once per process that compaction is off."""
    _logger.warning("under vmap padding is not dropped, which is slower but equal: %s", _REMEDY)
