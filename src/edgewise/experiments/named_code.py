"""The code that the settings of a model name: own heads, encoders and convolutions. Never imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgewise.config import plugins
from edgewise.config.model import Config
from edgewise.models.config import BUILT_IN_ENCODERS, EncoderConfig


def named_code(model: Any) -> Iterator[tuple[str, str]]:
    """Return kind and reference of every extension that a model's config names; ours are left out."""
    head = getattr(model, "head", "auto")
    if head != "auto":
        yield "head", head
    for encoder in _encoders(model):
        if encoder.kind not in BUILT_IN_ENCODERS:
            yield "encoder", encoder.kind
        if encoder.conv in plugins.convolutions() or plugins.Address.parse(encoder.conv) is not None:
            yield "convolution", encoder.conv


def _encoders(values: Any) -> Iterator[EncoderConfig]:
    """Return the encoders in a model's config, wherever they stand."""
    if isinstance(values, EncoderConfig):
        yield values
    elif isinstance(values, Config):
        for name in type(values).model_fields:
            yield from _encoders(getattr(values, name))
