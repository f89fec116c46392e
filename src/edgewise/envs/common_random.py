"""Common random numbers: copies of the same worlds that draw the same numbers, for paired comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor
from torch.overrides import TorchFunctionMode

_DRAWS: Mapping[Any, int] = {torch.rand: 0, torch.randn: 0, torch.randint: 2}
"""Functions that draw, and how many of their positional arguments may come before the size."""


class CommonRandomNumbers(TorchFunctionMode):
    """Give `copies` groups of worlds the same random numbers.

    Inside the context, a draw of `torch.rand`, `torch.randn` or `torch.randint` from the given generator
    whose first dimension is `copies * worlds` draws the numbers of `worlds` rows, and repeats them for every
    group. So policies that act in different groups meet the same arrivals and the same noise. All other
    draws are as they are.

    Args:
        generator: of the environment.
        worlds: rows of a group; groups are next to each other.
        copies: number of groups.

    Example:
        >>> generator = torch.Generator()
        >>> with CommonRandomNumbers(generator, worlds=2, copies=3):
        ...     drawn = torch.rand(6, 4, generator=generator)
        >>> bool((drawn[:2] == drawn[4:]).all())
        True
    """

    def __init__(self, generator: Generator, *, worlds: int, copies: int) -> None:
        super().__init__()
        self.generator, self.worlds, self.copies = generator, worlds, copies

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Draw once for all groups; call any other function."""
        kwargs = kwargs or {}
        if func not in _DRAWS or kwargs.get("generator") is not self.generator:
            return func(*args, **kwargs)
        before, size = _split(list(args), dict(kwargs), bounds=_DRAWS[func])
        if not size or size[0] != self.worlds * self.copies:
            return func(*args, **kwargs)
        others = {name: value for name, value in kwargs.items() if name != "size"}
        drawn: Tensor = func(*before, size=(self.worlds, *size[1:]), **others)
        return drawn.repeat(self.copies, *[1] * (len(size) - 1))


def _split(
    args: list[Any], kwargs: dict[str, Any], *, bounds: int
) -> tuple[list[Any], tuple[int, ...] | None]:
    """Return the positional arguments before the size of a draw, and the size; None if it has none."""
    if "size" in kwargs:
        return args, tuple(kwargs["size"])
    for place, argument in enumerate(args):
        if isinstance(argument, tuple | list | torch.Size):
            return args[:place], tuple(argument)
    if bounds:
        return args, None
    return [], tuple(args) if args else None
