"""Graphwalk: walk to the goal node of a random graph. The example system to read first; see README.md."""

from edgewise.plugins import Environment, System

SYSTEM = System(
    name="graphwalk",
    environments={
        "graphwalk": Environment(
            env="edgewise.systems.graphwalk.env:GraphwalkEnv",
            config="edgewise.systems.graphwalk.config:GraphwalkConfig",
            summary="walk to the marked node of a random graph",
            baselines="edgewise.systems.graphwalk.baselines:BASELINES",
            references="edgewise.systems.graphwalk.baselines:references",
            replay="edgewise.systems.graphwalk.render:replay",
        ),
    },
    recipes={
        "graphwalk-ppo": "edgewise.systems.graphwalk.recipes.ppo:RECIPE",
    },
)
