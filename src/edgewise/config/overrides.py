"""Settings that vary within a run must fit the fields of its environment and algorithm, in name and value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from edgewise.config.layers import Path
from edgewise.config.model import Config
from edgewise.config.wording import by_place, did_you_mean, refusal


@dataclass(frozen=True)
class Misfit:
    """One setting that does not fit: where it stands, and why."""

    path: Path
    reason: str


def misfits(data: Mapping[str, Any], *, env: type[Config], algorithm: type[Config]) -> list[Misfit]:
    """Everything in `data`, the plain values of a run, that overrides a field in a way that cannot be.

    Parts of the wrong shape are passed over: the schema itself refuses them.
    """
    return [
        *_schedules(
            _mapping(_mapping(data, "training"), "schedules"),
            algorithm=algorithm,
            base=_mapping(data, "algorithm"),
        ),
        *(
            misfit
            for path, overrides in _env_overrides(data)
            for misfit in _env_misfits(path, overrides, env=env, base=_mapping(data, "env"))
        ),
    ]


def _mapping(data: Any, key: str) -> Mapping[str, Any]:
    value = data.get(key) if isinstance(data, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _env_overrides(data: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    stages = _mapping(data, "training").get("curriculum")
    for index, stage in enumerate(stages if isinstance(stages, list | tuple) else ()):
        yield ("training", "curriculum", index, "env"), _mapping(stage, "env")
    measured = _mapping(data, "evaluation")
    yield ("evaluation", "settings"), _mapping(measured, "settings")
    kinds = measured.get("stages")
    for index, kind in enumerate(kinds if isinstance(kinds, list | tuple) else ()):
        yield ("evaluation", "stages", index, "settings"), _mapping(kind, "settings")


def _schedules(
    schedules: Mapping[str, Any], *, algorithm: type[Config], base: Mapping[str, Any]
) -> Iterator[Misfit]:
    numbers = [name for name, field in algorithm.model_fields.items() if _is_number(field.annotation)]
    for name, schedule in schedules.items():
        path = ("training", "schedules", name)
        if name not in numbers:
            reason = f"no number of the algorithm has this name; {did_you_mean(name, numbers)}"
            yield Misfit(path, reason)
            continue
        if name in algorithm.fixed:
            yield Misfit(path, f"{name} is the same over a whole run, and cannot be scheduled")
            continue
        for value in _extremes(schedule):
            reasons = _refusals(algorithm, {**base, name: value})
            if (name,) in reasons:
                yield Misfit(path, f"it would reach {value:g}: {reasons[(name,)]}")
                break


def _extremes(schedule: Any) -> list[float]:
    """The numbers between which a schedule moves; what is no number is left to the schema."""
    if not isinstance(schedule, Mapping):
        return []
    points = schedule.get("points")
    pairs = (
        [point for point in points if isinstance(point, list | tuple)]
        if isinstance(points, list | tuple)
        else []
    )
    ends = [*(schedule.get(key) for key in ("value", "start", "end")), *(pair[-1] for pair in pairs if pair)]
    rises_from_zero = [0.0] if schedule.get("warmup_frames") else []
    return [float(end) for end in ends if isinstance(end, int | float)] + rises_from_zero


def _is_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(part in (int, float) for part in get_args(annotation))


def _env_misfits(
    path: Path, overrides: Mapping[str, Any], *, env: type[Config], base: Mapping[str, Any]
) -> Iterator[Misfit]:
    known = list(env.model_fields)
    for name in overrides:
        if name not in known:
            reason = f"no field of the environment has this name; {did_you_mean(name, known)}"
            yield Misfit((*path, name), reason)
    fitting = {name: value for name, value in overrides.items() if name in known}
    before = _refusals(env, base)
    for location, reason in _refusals(env, {**base, **fitting}).items():
        if location not in before or (location and location[0] in fitting):
            yield Misfit((*path, *location), reason)


def _refusals(env: type[Config], values: Mapping[str, Any]) -> dict[Path, str]:
    """Why the environment's config refuses each of its fields."""
    try:
        env.from_plain(values)
    except ValidationError as error:
        return {path: refusal(lines) for path, lines in by_place(error, values).items()}
    return {}
