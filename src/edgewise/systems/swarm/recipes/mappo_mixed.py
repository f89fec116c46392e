"""swarm-mappo with teams of three to ten agents and up to ten obstacles, mixed in one batch."""

from __future__ import annotations

from dataclasses import replace

from edgewise.systems.swarm.config import SwarmConfig
from edgewise.systems.swarm.recipes.mappo import RECIPE as SMALL

RECIPE = replace(
    SMALL,
    name="swarm-mappo-mixed",
    summary="teams of three to ten agents, mixed in one batch, learn to reach their goals among obstacles",
    env=SwarmConfig(num_agents=(3, 10), num_obstacles=(0, 10), reward="individual"),
)
