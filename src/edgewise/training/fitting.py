"""Whether a checkpoint belongs to the run that wants to load it, found out before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edgewise.config.errors import CheckpointError
from edgewise.config.run import RunConfig
from edgewise.models.config import REVISION
from edgewise.training import serialise
from edgewise.training.parts import Parts
from edgewise.training.serialise import State

FIXED = ("recipe", "env", "model")
"""Sections of a config that a resumed run cannot change; of `training`, the shape of a batch besides."""


def identity(config: RunConfig[Any, Any, Any]) -> dict[str, Any]:
    """What of a config decides the shape of a run's state."""
    plain = config.to_plain()
    batch = {name: plain["training"][name] for name in ("num_envs", "steps")}
    return {**{section: plain[section] for section in FIXED}, "training": batch, "model_revision": REVISION}


def check_revision(path: Path, state: Mapping[str, State]) -> None:
    """Refuse weights that would compute something else here than where they were trained.

    Args:
        path: the checkpoint.
        state: its part `trainer`.
    """
    then = state.get("identity", {}).get("model_revision")
    if then != REVISION:
        raise CheckpointError(
            f"the weights in {path} are for models of revision {then}, and these are of revision {REVISION}: "
            "they would load and act wrongly",
            hint="use the version of edgewise that trained them, or train again",
        )


def check_fit(
    path: Path, state: Mapping[str, State], *, config: RunConfig[Any, Any, Any], parts: Parts
) -> None:
    """Compare a loaded state with the run it should go into.

    Raises:
        CheckpointError: a setting, or the name, shape or dtype of a tensor differs; it is named.
    """
    missing = {"algorithm", "rollout", "random", "trainer", "clock"} - state.keys()
    if missing:
        raise CheckpointError(f"checkpoint {path} is no run's: it has no part {min(missing)}")
    if not isinstance(state["trainer"], Mapping) or "identity" not in state["trainer"]:
        raise CheckpointError(f"checkpoint {path} does not say which run it is of")
    changed = next(_changes(state["trainer"]["identity"], identity(config), ()), None)
    if changed is not None:
        raise CheckpointError(f"checkpoint {path} was made with {changed}")
    for name, part in (("algorithm", parts.algorithm), ("rollout", parts.rollout)):
        foreign = serialise.difference(state[name], part.state_dict())
        if foreign is not None:
            raise CheckpointError(f"checkpoint {path} does not fit this run: {name}/{foreign}")


def _changes(then: Any, now: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in sorted(then.keys() | now.keys()):
            yield from _changes(then.get(key), now.get(key), (*path, key))
    elif then != now:
        yield f"{'.'.join(path)} = {then!r}, this run has {now!r}"
