"""Settings of policies that choose sets of links. Never imports torch."""

from __future__ import annotations

from typing import Literal

from edgewise.models.config import ModelConfig


class SetModelConfig(ModelConfig):
    """Settings of an actor that chooses a set of links, and of its critic."""

    sets: Literal["in_turn", "whole"] = "in_turn"
    """How a set of non-adjacent nodes is sampled: `in_turn` decides node by node, in slot order; `whole` uses
    one distribution over all maximal sets, exactly where their list or their decision diagram is small
    enough, and otherwise node by node with the exact heaviest set as its mode."""
