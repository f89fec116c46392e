"""A policy as a pure function of named tensors: what export, its checks and its README share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy
import torch
from tensordict import TensorDictBase
from torch import Generator, Tensor, nn

Tensors = dict[str, Tensor]
Arrays = Mapping[str, "numpy.ndarray[Any, Any]"]
Decode = Callable[[Arrays, Arrays], "numpy.ndarray[Any, Any]"]
"""Maps inputs and outputs of a policy function to actions, with numpy alone."""


@dataclass(frozen=True)
class TensorInfo:
    """Name, type and meaning of an input.

    Args:
        name: of the input.
        dtype: of its numbers.
        shape: its dimensions; a dimension with a name varies from call to call, and has the same size
            wherever the name occurs.
        meaning: for whoever fills it in.
        below: whole numbers count from 0 and are below this number, or below the size of this dimension.
    """

    name: str
    dtype: torch.dtype
    shape: tuple[int | str, ...]
    meaning: str
    below: int | str | None = None

    def sample(self, sizes: Mapping[str, int], generator: Generator) -> Tensor:
        """Sample a random value; the first entry of each row of a mask is true."""
        shape = [sizes[size] if isinstance(size, str) else size for size in self.shape]
        if self.dtype == torch.bool:
            value = torch.rand(shape, generator=generator) < 0.7
            value[..., :1] = True
            return value
        if self.dtype.is_floating_point:
            return torch.randn(shape, generator=generator, dtype=self.dtype)
        assert self.below is not None, f"{self.name} has no bound"
        most = sizes[self.below] if isinstance(self.below, str) else self.below
        return torch.randint(most, shape, generator=generator, dtype=self.dtype)


class PolicyFunction(nn.Module):
    """Base of policies as pure functions: a dict of named tensors in, a dict of named tensors out.

    A function holds a copy of the networks, acts without exploration, and has no data-dependent shapes when
    it is exported.

    Attributes:
        inputs: in the order of the exported program.
        outputs: what each output means, by name, in the order of the exported program.
        sizes: of the named dimensions in the policy's own environment.
        decoding: how actions follow from the outputs, in words.
        decode: how actions follow from the outputs; None if the output `action` is the action.
        recurrent: the outputs that are inputs of the next step, by the name of that input.
    """

    inputs: tuple[TensorInfo, ...]
    outputs: Mapping[str, str]
    sizes: Mapping[str, int]
    decoding: str
    decode: Decode | None = None
    recurrent: Mapping[str, str] = {}

    @abstractmethod
    def forward(self, inputs: Tensors) -> Tensors:
        """Return the outputs."""

    @abstractmethod
    def inputs_of(self, root: TensorDictBase) -> Tensors:
        """Return the inputs for an observation of the policy's environment, `[B]`."""

    def actions_of(self, root: TensorDictBase) -> Tensor:
        """Return the `action` that the policy wrote into `root`, in the shape of the function's actions."""
        action: Tensor = root["action"]
        return action

    def parts(self) -> Mapping[str, PolicyFunction]:
        """Return programs by name that together are the function, for callers who keep what the first gives.

        Each takes inputs of the function and outputs of those before it. None by default.
        """
        return {}

    def fit(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes that are possible together, near to `sizes`."""
        return dict(sizes)

    def sample(self, sizes: Mapping[str, int], generator: Generator) -> Tensors:
        """Sample random inputs of the given sizes."""
        return {info.name: info.sample(sizes, generator) for info in self.inputs}


@runtime_checkable
class ExportablePolicy(Protocol):
    """A policy that can be written as a function of named tensors."""

    def as_function(self, env: Any) -> PolicyFunction:
        """Return the policy as a function, for observations like those of `env`."""
