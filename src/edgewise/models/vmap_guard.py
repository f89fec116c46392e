"""Guard against dropping padding under vmap, which does not support data-dependent shapes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor, nn

_logger = logging.getLogger(__name__)
_REMEDY = "pass deactivate_vmap=True to TorchRL's estimator or loss, or use GraphGAE"


def may_compact(module: nn.Module, tensor: Tensor) -> bool:
    """Return whether `module` may drop the padding of `tensor`, which vmap and export do not support.

    Under vmap over parameters, as in TorchRL's losses, the answer is False and the padding stays. An error
    there would leave the module with swapped parameters, and so unusable. If the data is vmapped as well, a
    warning is logged once.

    Raises:
        RuntimeError: under vmap over data alone, with the remedy in the message.
    """
    if torch._C._functorch.maybe_current_level() is None:
        return not torch.compiler.is_exporting()
    swapped = any(map(_is_batched, _tensors_in_place_of_parameters(module)))
    if _is_batched(tensor):
        if not swapped:
            raise RuntimeError(
                "this module drops padding (compact=True), and shapes that depend on data do not vmap: "
                f"{_REMEDY}, or build the module with compact=False"
            )
        _warn_padded()
    return not swapped


def _is_batched(tensor: Tensor) -> bool:
    return torch._C._functorch.is_batchedtensor(tensor)


def _tensors_in_place_of_parameters(module: nn.Module) -> Iterator[Tensor]:
    """Yield tensors that are plain attributes, which is how TensorDict swaps parameters."""
    for part in module.modules():
        yield from (value for value in vars(part).values() if isinstance(value, Tensor))


@cache
def _warn_padded() -> None:
    """Warn once per process that padding is kept."""
    _logger.warning("under vmap padding is not dropped, which is slower but gives equal results: %s", _REMEDY)
