"""The one base of every configuration: frozen, strict about names, never importing torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """A frozen set of named settings; an unknown name is an error, and so is a number that is not finite.

    A string below a field describes it: help texts and documentation read it from there.

    Attributes:
        fixed: names of the numbers that are built in when a run begins, so that no schedule can move them.

    Example:
        >>> class WalkConfig(Config):
        ...     max_steps: int = 10
        ...     '''Steps after which an episode is cut off.'''
        >>> WalkConfig(max_steps=20).max_steps
        20
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        allow_inf_nan=False,
    )

    fixed: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Self:
        """The config of plain values as they stand in a file.

        Strict: text is never taken for a number, nor a number for a truth value; `1e6` is a whole number.

        Raises:
            pydantic.ValidationError: with every error of every field.
        """
        return cls.model_validate_json(json.dumps(_whole(values)), strict=True)

    def to_plain(self) -> dict[str, Any]:
        """The values as a file would hold them: mappings, lists, text, numbers, truth values and nulls."""
        return self.model_dump(mode="json")


def _whole(value: Any) -> Any:
    """The same values with numbers such as 1e6 written as 1000000, which fits fields of both kinds."""
    if isinstance(value, Mapping):
        return {str(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
