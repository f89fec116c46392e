"""Re-entrant queueing networks: choose what servers work on. README.md is the card."""

from edgewise.plugins import Environment, System

SYSTEM = System(
    name="reentrant",
    environments={
        "reentrant": Environment(
            env="edgewise.systems.reentrant.env:ReentrantEnv",
            config="edgewise.systems.reentrant.config:ReentrantConfig",
            summary="choose at every event what the servers of a network work on",
            baselines="edgewise.systems.reentrant.baselines:BASELINES",
            replay="edgewise.systems.reentrant.render:replay",
        ),
        "reentrant_potentials": Environment(
            env="edgewise.systems.reentrant.env:ReentrantPotentialsEnv",
            config="edgewise.systems.reentrant.config:PotentialsConfig",
            summary="give queues the potentials by which servers choose",
            baselines="edgewise.systems.reentrant.baselines:POTENTIAL_BASELINES",
            replay="edgewise.systems.reentrant.render:replay",
        ),
    },
    recipes={
        "reentrant-potentials": "edgewise.systems.reentrant.recipes.potentials:RECIPE",
    },
)
