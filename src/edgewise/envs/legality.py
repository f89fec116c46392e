"""Check actions before a step: an illegal one raises an error that names world, action and legal choices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.config.errors import IllegalActionError
from edgewise.graphs.actions import ActionLayout, ComposedLayout
from edgewise.graphs.keys import GRAPH, MASK
from edgewise.graphs.spec import GraphSpec

SHOWN = 20
"""Largest number of legal choices that an error lists."""


def check_actions(root: TensorDictBase, layout: ActionLayout, graph: GraphSpec, *, name: str) -> None:
    """Raise IllegalActionError if a world that is not done has an illegal action.

    Reading the result synchronises with an accelerator. A root without an observation is not checked.

    Args:
        root: `action` and the observation that it was chosen for, `[B]`.
        layout: action layout of the environment.
        graph: shape of its graphs.
        name: of the environment.
    """
    if root.get(GRAPH, None) is None:
        return
    try:
        illegal = ~layout.is_legal(root.get("action"), root, graph)
    except ValueError as error:
        raise IllegalActionError(f"{name}: {error}") from error
    for flag, acts in (("done", False), ("_step", True)):
        worlds = root.get(flag, None)
        if worlds is not None:
            illegal = illegal & (worlds.reshape(illegal.shape) == acts)
    if illegal.any():
        world = int(illegal.nonzero()[0])
        raise IllegalActionError(
            f"{name}: the action of world {world} is illegal: {_described(root[world], layout, graph)}",
            hint="choose among the actions that `action_mask` allows",
        )


@contextmanager
def checked_actions(env: object) -> Iterator[None]:
    """Let an environment on a CPU refuse illegal actions inside the context, if it can."""
    before = getattr(env, "check_actions", None)
    if before is None or getattr(env, "device", None) != torch.device("cpu"):
        yield
        return
    vars(env)["check_actions"] = True
    try:
        yield
    finally:
        vars(env)["check_actions"] = before


def _described(root: TensorDictBase, layout: ActionLayout, graph: GraphSpec) -> str:
    """Return the action of one world, and what is legal there, in words."""
    action: Tensor = root.get("action")
    if isinstance(layout, ComposedLayout):
        return _described_part(root, layout, graph)
    mask: Tensor | None = root.get(MASK, None)
    if mask is None:
        return f"got {action.tolist()}, and {type(layout).__name__} takes actions of its spec"
    if action.is_floating_point() or mask.shape[:-1] != action.shape:
        return f"got {_shortened(action)}; legal are {_listed(mask)}"
    if not action.shape:
        return f"got {int(action)}; legal are {_listed(mask)}"
    inside = (action >= 0) & (action < mask.shape[-1])
    allowed = mask.gather(-1, action.clamp(0, mask.shape[-1] - 1).unsqueeze(-1)).squeeze(-1) & inside
    wrong = tuple((~allowed).nonzero()[0].tolist()) if not allowed.all() else (0,) * action.ndim
    where = ", ".join(map(str, wrong))
    return f"got {int(action[wrong])} at {where}; legal there are {_listed(mask[wrong])}"


def _described_part(root: TensorDictBase, layout: ComposedLayout, graph: GraphSpec) -> str:
    """Return the first illegal part of the action of one world, and what is legal there, in words."""
    nodes, edges = layout.slots(root, graph)
    values: dict[str, Tensor] = {}
    columns = layout.split(root.get("action"), nodes=nodes, edges=edges)
    for part, own in zip(layout.parts, columns, strict=True):
        if not part.is_legal(own, root, graph, values):
            legal = part.legal(root, graph, values)
            if legal is None:
                allowed = f"numbers from {part.low:g} to {part.high:g}"
            else:
                allowed = (
                    _listed(legal)
                    if part.is_single_choice
                    else f"0 to {part.choices - 1}, if its mask allows"
                )
            return f"got {_shortened(own)} for {part.name or 'its value'}; legal are {allowed}"
        values[part.name] = part.value_of(own)
    return f"got {_shortened(root.get('action'))}"


def _listed(mask: Tensor) -> str:
    """Return the indices of the true entries of a mask, as text."""
    found = mask.nonzero().squeeze(-1).tolist() if mask.ndim == 1 else mask.nonzero().tolist()
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return (", ".join(map(str, found[:SHOWN])) or "none") + more


def _shortened(action: Tensor) -> str:
    flat = action.flatten()
    text = ", ".join(map(str, flat[:SHOWN].tolist()))
    return f"[{text}{', ...' if torch.numel(flat) > SHOWN else ''}]"
