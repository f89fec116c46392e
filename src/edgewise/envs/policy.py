"""The type of policies, and how a policy acts in an environment other than its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, runtime_checkable

from tensordict import TensorDictBase

from edgewise.graphs.keys import GRAPH, STEP

Policy = Callable[[TensorDictBase], TensorDictBase]
"""A function that sets `action` in the root TensorDict of an environment and returns it."""


@runtime_checkable
class PortablePolicy(Protocol):
    """A policy that holds constants of its environment and can replace them by those of another."""

    def on(self, env: Any) -> AbstractContextManager[None]:
        """Act in `env` inside the context, and in its own environment again after it."""


def acting_in(policy: Policy, env: Any) -> AbstractContextManager[None]:
    """Return the context in which `policy` may act in `env`."""
    return policy.on(env) if isinstance(policy, PortablePolicy) else nullcontext()


def graph_of_worlds(graph: TensorDictBase, worlds: int) -> TensorDictBase:
    """Return the graphs `[I * K]` of worlds from those of instances `[I]`, each in K worlds side by side."""
    copies = worlds // len(graph)
    return graph if copies == 1 else graph.unsqueeze(1).expand(len(graph), copies).reshape(-1)


def encode_once(policy: Any, roots: TensorDictBase) -> tuple[Policy, TensorDictBase]:
    """Let a policy encode the instances of `roots [I]` now, if they are described once and it can.

    Returns:
        The policy for these instances, which may act in `I * K` worlds, those of an instance next to each
        other; and the roots without the graphs, which it no longer reads. Otherwise both as they are.
    """
    prepare = getattr(policy, "on_instances", None)
    if prepare is None or roots.get(STEP, None) is None:
        return policy, roots
    prepared: Policy = prepare(roots)
    return (policy, roots) if prepared is policy else (prepared, roots.exclude(GRAPH))
