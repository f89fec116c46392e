"""Settings are described where they are defined, and every reader finds the same words."""

from typing import Generic, TypeVar

from edgewise.config.model import Config
from edgewise.config.schema import leaves

InnerT = TypeVar("InnerT", bound=Config)


class Base(Config):
    """Settings with and without a description."""

    size: int = 3
    """How large
    it is."""
    plain: int = 1


class Derived(Base):
    """Another default, and one more field."""

    size: int = 4
    more: int = 5
    """One more."""


class Outer(Config, Generic[InnerT]):
    """A config within a config."""

    inner: InnerT
    """The inner one."""
    last: int = 6
    """The last."""


def described(schema):
    return {leaf.flag: leaf.description for leaf in leaves(schema)}


def test_the_string_below_a_field_describes_it():
    assert described(Base) == {"--size": "How large it is.", "--plain": ""}
    assert Derived.model_json_schema()["properties"]["more"]["description"] == "One more."


def test_a_field_with_another_default_keeps_its_description():
    assert described(Derived) == {"--size": "How large it is.", "--plain": "", "--more": "One more."}


def test_a_parametrised_config_keeps_its_descriptions_wherever_it_is_written():
    assert described(type(LAST[0]))["--inner.more"] == "One more."
    assert described(type(LAST[0]))["--last"] == "The last."


# Stands at the end of the file: before Python 3.13, pydantic fails to find the source of what stands there.
LAST = [
    Outer[Derived](
        inner=Derived(),
    ),
]
