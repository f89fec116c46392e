"""Every number of every setting has a smallest and a largest value."""

import importlib
import pkgutil
from typing import Annotated, Literal, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo

import edgewise
from edgewise.algorithms.algorithm import with_scalar
from edgewise.algorithms.off_policy_config import RainbowConfig, SACConfig
from edgewise.config.model import Config
from edgewise.config.run import RunConfig

RESULTS = ("edgewise.runs", "edgewise.config.cluster")
"""Packages whose configs hold results and not settings."""


def numbers(annotation, marks=()):
    """Yield the marks of every number in an annotation, those of the whole field included."""
    if get_origin(annotation) is Annotated:
        inner, *own = get_args(annotation)
        own = [each for mark in own for each in (mark.metadata if isinstance(mark, FieldInfo) else [mark])]
        yield from numbers(inner, (*marks, *own))
    elif annotation in (int, float):
        yield marks
    elif get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from numbers(part, marks)


def is_bounded(marks):
    below = any(isinstance(mark, Ge | Gt) for mark in marks)
    return below and any(isinstance(mark, Le | Lt) for mark in marks)


def unbounded(config):
    """Return the fields of a config class with a number that has no bound on one side."""
    return [
        name
        for name, field in config.model_fields.items()
        if not all(map(is_bounded, numbers(field.annotation, tuple(field.metadata))))
    ]


def every_config():
    for module in pkgutil.walk_packages(edgewise.__path__, "edgewise."):
        if "config" in module.name or module.name.endswith(("settings", "document")):
            importlib.import_module(module.name)
    waiting, found = [Config], {}
    while waiting:
        config = waiting.pop()
        waiting += config.__subclasses__()
        if config.__module__.startswith("edgewise.") and not config.__module__.startswith(RESULTS):
            found[f"{config.__module__}.{config.__qualname__}"] = config
    return found


def test_every_number_of_every_setting_has_both_bounds():
    found = {name: fields for name, config in every_config().items() if (fields := unbounded(config))}
    assert found == {}


def test_a_number_without_a_bound_is_seen():
    class Open(Config):
        a: int = 1
        b: float = Field(0.5, ge=0)
        c: float | None = Field(None, ge=0, le=1)
        d: tuple[int, ...] = ()

    assert unbounded(Open) == ["a", "b", "d"]


@pytest.mark.parametrize("value", [2**63, -(10**30), 1e300, [1e300], {"a": {"b": 10**20}}])
def test_a_config_of_a_plug_in_refuses_what_makes_sense_nowhere(value):
    class Mine(Config):
        a: int | float | list[float] | dict[str, dict[str, int]] = 1

    with pytest.raises(ValidationError, match="must be between"):
        Mine(a=value)
    with pytest.raises(ValidationError, match="must be between"):
        Mine.from_plain({"a": value})


def test_a_larger_bound_of_its_own_counts():
    class Mine(Config):
        seed: int = Field(0, ge=0, lt=2**63)

    assert Mine(seed=2**62).seed == 2**62


def test_the_run_itself_is_among_them():
    assert "edgewise.config.run.RunConfig" in every_config()
    assert "training" in RunConfig.model_fields


def test_a_number_with_bounds_in_its_type_can_still_be_scheduled():
    config = with_scalar(SACConfig(), "target_entropy", -1.5, owner=None)
    assert config.target_entropy == -1.5
    with pytest.raises(ValueError, match="v_max is fixed"):
        with_scalar(RainbowConfig(), "v_max", 7.0, owner=None)
