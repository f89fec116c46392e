"""Gymnasium spaces of several values as composed actions: MultiDiscrete, MultiBinary, Tuple and Dict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.adapters.outside_view import is_bounded_box, needed, scaled_to
from edgewise.graphs.actions import Amount, Category, ComposedLayout, Joint
from edgewise.graphs.spec import GraphSpec

Values = dict[str, Tensor]


def composed_actions(space: Any) -> tuple[Callable[[Tensor], Any], ComposedLayout]:
    """Return how an action of one world becomes one of a space, and the layout of its independent parts.

    Every number of a `MultiDiscrete` or `MultiBinary` space and every `Discrete` is a category, every bounded
    `Box` an amount. Parts are called after the keys of a `Dict` and the places of a `Tuple`.

    Raises:
        ConfigError: the space has a part that is none of these.
    """
    parts = dict(_parts(space, ()))
    layout = Joint(**parts) if len(parts) > 1 else next(iter(parts.values()))
    shape = GraphSpec(1, 0)

    def to_action(action: Tensor) -> Any:
        values = layout.unpack(action.unsqueeze(0), shape)
        named = values if isinstance(values, dict) else {next(iter(parts)): values}
        return _value(space, (), {name: value[0] for name, value in named.items()})

    return to_action, layout


def _parts(space: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Category | Amount]]:
    spaces = needed("gymnasium.spaces", "gymnasium")
    name = "_".join(path) or "value"
    if isinstance(space, spaces.Discrete):
        yield name, Category(int(space.n))
    elif isinstance(space, spaces.MultiDiscrete):
        for place, count in enumerate(np.asarray(space.nvec).reshape(-1).tolist()):
            yield f"{name}_{place}", Category(int(count))
    elif isinstance(space, spaces.MultiBinary):
        for place in range(int(np.prod(space.shape))):
            yield f"{name}_{place}", Category(2)
    elif isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _parts(part, (*path, str(key)))
    elif isinstance(space, spaces.Tuple):
        for place, part in enumerate(space.spaces):
            yield from _parts(part, (*path, f"part{place}"))
    elif is_bounded_box(space):
        yield name, Amount(-1, 1, dim=int(np.prod(space.shape)))
    else:
        raise ConfigError(
            f"actions of {space} do not fit",
            hint="use Discrete, MultiDiscrete, MultiBinary and bounded Box, alone or in Dict and Tuple",
        )


def _value(space: Any, path: tuple[str, ...], values: Values) -> Any:
    spaces = needed("gymnasium.spaces", "gymnasium")
    name = "_".join(path) or "value"
    if isinstance(space, spaces.Discrete):
        return int(space.start) + int(values[name])
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        count = int(np.prod(space.shape))
        found = np.array([int(values[f"{name}_{place}"]) for place in range(count)], space.dtype)
        start = getattr(space, "start", 0)
        return found.reshape(space.shape) + np.asarray(start, space.dtype)
    if isinstance(space, spaces.Dict):
        return {key: _value(part, (*path, str(key)), values) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_value(part, (*path, f"part{place}"), values) for place, part in enumerate(space.spaces))
    return scaled_to(space)(values[name])
