"""The keys of an environment's root TensorDict that several packages read, each written once."""

from __future__ import annotations

from tensordict import NestedKey

GRAPH = "graph"
"""The graph that the policy observes, a nested TensorDict; see `GraphSpec`."""
STATE = "state"
"""Everything that the simulator needs; no model reads it."""
RECURRENT = "recurrent"
"""Hidden states of recurrent actors and critics."""
ACTIVE: NestedKey = ("agents", "active")
"""Which agents act, `[*B, A]` bool."""
EGO: NestedKey = ("agents", "ego")
"""What each agent observes by itself, `[*B, A, ...]`."""
