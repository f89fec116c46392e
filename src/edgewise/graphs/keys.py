"""Keys of an environment's root TensorDict that several packages read."""

from __future__ import annotations

from tensordict import NestedKey

GRAPH = "graph"
"""The observed graph, a nested TensorDict; see `GraphSpec`."""
STEP = "step"
"""What changes from step to step, where the environment describes the rest once; see `StepSpec`."""
STEPS = "steps"
"""The steps `[I, Q]` of a batch `[I]` of instances, beside one `graph` each; see `data/instance_batch.py`."""
STATE = "state"
"""The state of the simulation; no model reads it."""
RECURRENT = "recurrent"
"""Hidden states of recurrent actors and critics."""
MASK = "action_mask"
"""Which actions are legal, bool; its shape is that of the action layout."""
PRIOR = "action_prior"
"""A score of each choice that the environment knows, in the shape of the action mask; optional."""
CHOICES = "choices"
"""Node or edge slots of the members of an offered set, `[*B, K]` int64; see `ChooseFromSet`."""
ACTIVE: NestedKey = ("agents", "active")
"""Which agents act, `[*B, A]` bool."""
EGO: NestedKey = ("agents", "ego")
"""Observations of single agents, `[*B, A, ...]`."""
RESTARTED = "anew"
"""Steps before which a world began anew although its episode had not ended, `[*B]` bool."""
STALENESS = "staleness"
"""Updates by which the weights that made a step are older than those that learn from it, `[*B]` int64."""
