"""Settings that vary within a run must fit the fields of its environment and algorithm, in name and value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import ValidationError

from edgewise.config.model import Config


@dataclass(frozen=True)
class Misfit:
    """One setting that does not fit: where it stands, what it is and what would do."""

    path: tuple[str | int, ...]
    got: Any
    message: str


def misfits(data: Mapping[str, Any], *, env: type[Config], algorithm: type[Config]) -> list[Misfit]:
    """Everything in `data`, the plain values of a run, that overrides a field in a way that cannot be.

    Parts of the wrong shape are passed over: the schema itself refuses them.
    """
    return [
        *_schedules(_mapping(_mapping(data, "training"), "schedules"), algorithm),
        *(
            misfit
            for path, overrides in _env_overrides(data)
            for misfit in _env_misfits(path, overrides, env, _mapping(data, "env"))
        ),
    ]


def did_you_mean(name: str, known: list[str]) -> str:
    """A clause that names the nearest of the known names, or all of them when none is near."""
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    return f"it has {', '.join(sorted(known))}" if known else "it has no fields"


def _mapping(data: Any, key: str) -> Mapping[str, Any]:
    value = data.get(key) if isinstance(data, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _env_overrides(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    stages = _mapping(data, "training").get("curriculum")
    for index, stage in enumerate(stages if isinstance(stages, list | tuple) else ()):
        yield ("training", "curriculum", index, "env"), _mapping(stage, "env")
    yield ("evaluation", "settings"), _mapping(_mapping(data, "evaluation"), "settings")


def _schedules(schedules: Mapping[str, Any], algorithm: type[Config]) -> Iterator[Misfit]:
    numbers = [name for name, field in algorithm.model_fields.items() if _is_number(field.annotation)]
    for name, schedule in schedules.items():
        if name not in numbers:
            reason = f"no number of the algorithm has this name; {did_you_mean(name, numbers)}"
            yield Misfit(("training", "schedules", name), schedule, reason)


def _is_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(part in (int, float) for part in get_args(annotation))


def _env_misfits(
    path: tuple[str | int, ...], overrides: Mapping[str, Any], env: type[Config], base: Mapping[str, Any]
) -> Iterator[Misfit]:
    known = list(env.model_fields)
    for name, value in overrides.items():
        if name not in known:
            reason = f"no field of the environment has this name; {did_you_mean(name, known)}"
            yield Misfit((*path, name), value, reason)
    fitting = {name: value for name, value in overrides.items() if name in known}
    if not fitting:
        return
    alone = _errors(env, dict(base))
    for location, (got, message) in _errors(env, {**base, **fitting}).items():
        if location not in alone or location[0] in fitting:
            yield Misfit((*path, *location), got, message)


def _errors(env: type[Config], values: dict[str, Any]) -> dict[tuple[str | int, ...], tuple[Any, str]]:
    try:
        env.from_plain(values)
    except ValidationError as error:
        return {tuple(line["loc"]): (line["input"], line["msg"]) for line in error.errors(include_url=False)}
    return {}
