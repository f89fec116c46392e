"""Read and change the numeric settings of an algorithm's config, as schedules do."""

from __future__ import annotations

from typing import TypeVar, get_args

from edgewise.config.model import Config

ConfigT = TypeVar("ConfigT", bound=Config)


def scalars(config: Config) -> dict[str, float]:
    """Return the numeric settings of a config by name; settings that are None are left out."""
    return {name: value for name, value in config if type(value) in (int, float)}


def with_scalar(config: ConfigT, name: str, value: float, *, owner: object) -> ConfigT:
    """Return the config with another value of the number `name`; values of integers are rounded.

    Args:
        config: of an algorithm.
        name: of the setting; an optional number that is None may be set too.
        value: the new value; a fixed setting must keep its value.
        owner: the algorithm, for error messages.

    Raises:
        ValueError: the setting is no number, is fixed, or does not allow the value.
    """
    field = type(config).model_fields.get(name)
    kinds = () if field is None else get_args(field.annotation) or (field.annotation,)
    if int not in kinds and float not in kinds:
        known = ", ".join(scalars(config))
        raise ValueError(f"{type(owner).__name__} has no numeric setting {name!r}; it has {known}")
    if name in config.fixed and value != getattr(config, name):
        raise ValueError(f"{name} is fixed and cannot change during a run")
    number = value if float in kinds else round(value)
    return type(config).model_validate(config.model_dump() | {name: number})
