"""The one base of every configuration: frozen, strict about names, never importing torch."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """A frozen set of named settings; an unknown name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
