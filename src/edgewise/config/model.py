"""The one base of every configuration: frozen, strict about names, never importing torch."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """A frozen set of named settings; an unknown name is an error, and so is a number that is not finite.

    A string below a field describes it: help texts and documentation read it from there.

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
        use_attribute_docstrings=True,
    )
