"""Check that a checkpoint fits the run that loads it, before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edgewise.config.errors import CheckpointError
from edgewise.config.model import Config
from edgewise.config.run import RunConfig
from edgewise.models.config import REVISION
from edgewise.runs.checkpoint import serialise
from edgewise.runs.checkpoint.serialise import State
from edgewise.runs.upgrade import upgrade
from edgewise.training.parts import Parts

FIXED = ("recipe", "env", "model", "algorithm")
"""Sections of a config that a resumed run cannot change."""
FIXED_WITHIN = {
    "training": ("num_envs", "rollout_length"),
    "evaluation": ("episodes", "seed", "settings", "stages", "metric", "maximise"),
}
"""Fields of other sections that it cannot change: the shape of a batch, and how the best is chosen."""
GROWING = ("algorithm", "evaluation")
"""Sections that may have fields which an older checkpoint does not have."""


def identity(config: RunConfig[Any, Any, Any]) -> dict[str, Any]:
    """Return the settings that decide the shape of a run's state and the meaning of its numbers."""
    plain = config.to_plain()
    parts = {
        section: {name: plain[section][name] for name in names} for section, names in FIXED_WITHIN.items()
    }
    return {**{section: plain[section] for section in FIXED}, **parts, "model_revision": REVISION}


def check_revision(path: Path, state: Mapping[str, State]) -> None:
    """Check that the models still compute the same function of the weights as when they were trained.

    Args:
        path: the checkpoint.
        state: its part `trainer`.

    Raises:
        CheckpointError: the checkpoint has another model revision.
    """
    identity = state.get("identity") if isinstance(state, Mapping) else None
    then = identity.get("model_revision") if isinstance(identity, Mapping) else None
    if then != REVISION:
        raise CheckpointError(
            f"the weights in {path} are for model revision {then}, and this version has model revision "
            f"{REVISION}: they would give wrong outputs",
            hint="use the version of edgewise that trained them, or train again",
        )


def check_fit(
    path: Path, state: Mapping[str, State], *, config: RunConfig[Any, Any, Any], parts: Parts
) -> None:
    """Compare a loaded state with the run that restores it.

    Raises:
        CheckpointError: a setting, or the name, shape or dtype of a tensor differs; the message names it.
    """
    missing = {"algorithm", "rollout", "random", "trainer", "clock"} - state.keys()
    if missing:
        raise CheckpointError(f"checkpoint {path} is not of a run: it has no part {min(missing)}")
    if not all(isinstance(state.get(name, {}), Mapping) for name in ("algorithm", "data")):
        raise CheckpointError(f"checkpoint {path} has no state of an algorithm")
    if not isinstance(state["trainer"], Mapping) or "identity" not in state["trainer"]:
        raise CheckpointError(f"checkpoint {path} has no record of the run that wrote it")
    then, reasons = upgrade(state["trainer"]["identity"], type(config))
    changed = next(iter(reasons), None) or next(_changes(*_comparable(then, identity(config)), ()), None)
    if changed is not None:
        raise CheckpointError(f"checkpoint {path} was made with {changed}")
    algorithm = _without_removed({**state["algorithm"], **state.get("data", {})}, config.algorithm)
    for name, found, part in (
        ("algorithm", algorithm, parts.algorithm),
        ("rollout", state["rollout"], parts.rollout),
    ):
        difference = serialise.difference(found, part.state_dict())
        if difference is not None:
            raise CheckpointError(f"checkpoint {path} does not fit this run: {name}/{difference}")


def _without_removed(state: dict[str, Any], config: Config) -> dict[str, Any]:
    """Return the state of an algorithm without the numbers of settings that are gone."""
    numbers = state.get("scalars")
    if not isinstance(numbers, Mapping):
        return state
    kept = {name: value for name, value in numbers.items() if name in type(config).model_fields}
    return {**state, "scalars": kept}


def _comparable(
    then: Mapping[str, Any], now: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return two identities without the fields of growing sections that the older one does not have."""
    known = {section: then.get(section, {}) for section in GROWING}
    kept = {
        section: {name: value for name, value in now[section].items() if name in known[section]}
        for section in GROWING
    }
    return {**then, **known}, {**now, **kept}


def _changes(then: Any, now: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in sorted(then.keys() | now.keys()):
            yield from _changes(then.get(key), now.get(key), (*path, key))
    elif then != now:
        yield f"{'.'.join(path)} = {then!r}, this run has {now!r}"
