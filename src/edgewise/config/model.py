"""The base class of every configuration. Never imports torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from edgewise.config.bounds import has_both, in_bounds


@dataclass(frozen=True)
class AppliesIf:
    """Marks a setting that has an effect only with some values of others, as metadata of its annotation.

    Elsewhere help texts leave it out, and it is refused where it is given.

    Args:
        words: when it applies, as in "it applies only if ...".
        test: decides that from the whole config, such as that of a run, and the section of the setting.

    Example:
        >>> class WalkConfig(Config):
        ...     noisy: bool = False
        ...     noise: Annotated[float, AppliesIf("noisy is true", lambda _, own: own.noisy)] = 0.1
    """

    words: str
    test: Callable[[Any, Any], bool]


class Config(BaseModel):
    """Frozen, named settings. Unknown names and numbers that are not finite are errors.

    The string below a field becomes its `description`, which help texts and documentation show.

    Example:
        >>> class WalkConfig(Config):
        ...     max_steps: int = 10
        ...     '''Steps after which an episode is truncated.'''
        >>> WalkConfig(max_steps=20).max_steps
        20
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    fixed: ClassVar[tuple[str, ...]] = ()
    """Names of numbers that must stay constant during a run, so that no schedule can change them."""
    removed: ClassVar[Mapping[str, Any]] = {}
    """Settings of the version before that are gone, with the only value left, for configs of old runs."""
    decided: ClassVar[tuple[str, ...]] = ()
    """Names of fields that are decided by what is trained: no flag sets them, and no help text shows them."""

    @field_validator("*", mode="after")
    @classmethod
    def _within_bounds(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse numbers that make sense in no setting, where a field has no bounds of its own."""
        field = cls.model_fields.get(info.field_name or "")
        return value if field is not None and has_both(field) else in_bounds(value)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "[" in cls.__name__:
            # A parametrised generic has no source, and before Python 3.13 pydantic's search for it raises an
            # error inside multi-line expressions. Its fields keep the descriptions of the generic class.
            cls.model_config["use_attribute_docstrings"] = False

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Self:
        """Validate plain values, as read from a file.

        Validation is strict: text is not converted to numbers, nor numbers to booleans. `1e6` is an integer.

        Raises:
            pydantic.ValidationError: lists every error of every field.
        """
        return cls.model_validate_json(json.dumps(_with_integers(values)), strict=True)

    def to_plain(self) -> dict[str, Any]:
        """Return the values as plain JSON types, as written to a file."""
        return self.model_dump(mode="json")


def _with_integers(value: Any) -> Any:
    """Replace floats such as 1e6 by integers, which both integer and float fields accept."""
    if isinstance(value, Mapping):
        return {str(key): _with_integers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_integers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
