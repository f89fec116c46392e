"""The numbers of an algorithm's config: which there are, and one of them changed, as schedules do."""

from __future__ import annotations

from typing import TypeVar, get_args

from edgewise.config.model import Config

ConfigT = TypeVar("ConfigT", bound=Config)


def scalars(config: Config) -> dict[str, float]:
    """The numbers of a config as they stand, by name; those that are off are left out."""
    return {name: value for name, value in config if type(value) in (int, float)}


def with_scalar(config: ConfigT, name: str, value: float, *, owner: object) -> ConfigT:
    """The config with another value of the number called `name`; whole numbers are rounded to.

    Args:
        config: of an algorithm.
        name: of the number; one that is off, such as a bound that is none, may be set too.
        value: its new value; those that are fixed must keep theirs.
        owner: the algorithm, which an error names.

    Raises:
        ValueError: it is no number, is fixed, or is not allowed that value.
    """
    field = type(config).model_fields.get(name)
    kinds = () if field is None else get_args(field.annotation) or (field.annotation,)
    if int not in kinds and float not in kinds:
        known = ", ".join(scalars(config))
        raise ValueError(f"{name!r} is no number of {type(owner).__name__}; there are {known}")
    if name in config.fixed and value != getattr(config, name):
        raise ValueError(f"{name} is the same over a whole run")
    number = value if float in kinds else round(value)
    return type(config).model_validate(config.model_dump() | {name: number})
