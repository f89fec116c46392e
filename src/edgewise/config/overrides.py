"""Check settings that change during a run against the fields of its environment and algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from edgewise.config.layers import Path
from edgewise.config.model import Config
from edgewise.config.schema import alternatives
from edgewise.config.wording import describe_errors, did_you_mean, errors_by_path


@dataclass(frozen=True)
class OverrideProblem:
    """One invalid override: its path and the reason."""

    path: Path
    reason: str


def override_problems(
    data: Mapping[str, Any], *, env: type[Config], algorithm: type[Config]
) -> list[OverrideProblem]:
    """Check all overrides in the plain values of a run: schedules, curriculum stages, evaluation settings.

    Parts of the wrong type are skipped: the validation of the schema reports them.
    """
    return [
        *_schedule_problems(
            _mapping(_mapping(data, "training"), "schedules"),
            algorithm=algorithm,
            base=_mapping(data, "algorithm"),
        ),
        *(
            problem
            for path, overrides in _env_overrides(data)
            for problem in _env_problems(path, overrides, env=env, base=_mapping(data, "env"))
        ),
    ]


def _mapping(data: Any, key: str) -> Mapping[str, Any]:
    value = data.get(key) if isinstance(data, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _env_overrides(data: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    stages = _mapping(data, "training").get("curriculum")
    for index, stage in enumerate(stages if isinstance(stages, list | tuple) else ()):
        yield ("training", "curriculum", index, "env"), _mapping(stage, "env")
    evaluation = _mapping(data, "evaluation")
    yield ("evaluation", "settings"), _mapping(evaluation, "settings")
    evaluation_stages = evaluation.get("stages")
    for index, stage in enumerate(evaluation_stages if isinstance(evaluation_stages, list | tuple) else ()):
        yield ("evaluation", "stages", index, "settings"), _mapping(stage, "settings")


def _schedule_problems(
    schedules: Mapping[str, Any], *, algorithm: type[Config], base: Mapping[str, Any]
) -> Iterator[OverrideProblem]:
    numbers = [name for name, field in algorithm.model_fields.items() if _is_number(field.annotation)]
    for name, schedule in schedules.items():
        path = ("training", "schedules", name)
        if name not in numbers:
            reason = f"no number of the algorithm has this name; {did_you_mean(name, numbers)}"
            yield OverrideProblem(path, reason)
            continue
        if name in algorithm.fixed:
            yield OverrideProblem(path, f"{name} is constant during a run, and cannot be scheduled")
            continue
        for value in _schedule_values(schedule):
            reasons = _field_errors(algorithm, {**base, name: value})
            if (name,) in reasons:
                yield OverrideProblem(path, f"it would reach {value:g}: {reasons[(name,)]}")
                break


def _schedule_values(schedule: Any) -> list[float]:
    """Return the values that bound a schedule; values of the wrong type are skipped."""
    if not isinstance(schedule, Mapping):
        return []
    points = schedule.get("points")
    pairs = (
        [point for point in points if isinstance(point, list | tuple)]
        if isinstance(points, list | tuple)
        else []
    )
    ends = [*(schedule.get(key) for key in ("value", "start", "end")), *(pair[-1] for pair in pairs if pair)]
    warmup_start = [0.0] if schedule.get("warmup_frames") else []
    return [float(end) for end in ends if isinstance(end, int | float)] + warmup_start


def _is_number(annotation: Any) -> bool:
    return any(part in (int, float) for part in alternatives(annotation))


def _env_problems(
    path: Path, overrides: Mapping[str, Any], *, env: type[Config], base: Mapping[str, Any]
) -> Iterator[OverrideProblem]:
    known = list(env.model_fields)
    for name in overrides:
        if name not in known:
            reason = f"no field of the environment has this name; {did_you_mean(name, known)}"
            yield OverrideProblem((*path, name), reason)
    valid = {name: value for name, value in overrides.items() if name in known}
    before = _field_errors(env, base)
    for location, reason in _field_errors(env, {**base, **valid}).items():
        if location not in before or (location and location[0] in valid):
            yield OverrideProblem((*path, *location), reason)


def _field_errors(schema: type[Config], values: Mapping[str, Any]) -> dict[Path, str]:
    """Validate `values` and return the reason of each error by its path."""
    try:
        schema.from_plain(values)
    except ValidationError as error:
        return {path: describe_errors(errors) for path, errors in errors_by_path(error, values).items()}
    return {}
