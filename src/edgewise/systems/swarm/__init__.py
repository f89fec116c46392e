"""Swarm: steer a team of any size to its goals between obstacles. README.md is the card."""

from edgewise.plugins import Environment, System

SYSTEM = System(
    name="swarm",
    environments={
        "swarm": Environment(
            env="edgewise.systems.swarm.env:SwarmEnv",
            config="edgewise.systems.swarm.config:SwarmConfig",
            summary="steer a team of any size to its goals between obstacles",
            baselines="edgewise.systems.swarm.baselines:BASELINES",
            replay="edgewise.systems.swarm.render:replay",
        ),
    },
    recipes={
        "swarm-mappo": "edgewise.systems.swarm.recipes.mappo:RECIPE",
        "swarm-mappo-dense": "edgewise.systems.swarm.recipes.mappo_dense:RECIPE",
        "swarm-integrator": "edgewise.systems.swarm.recipes.integrator:RECIPE",
        "swarm-teams": "edgewise.systems.swarm.recipes.teams:RECIPE",
        "swarm-sac": "edgewise.systems.swarm.recipes.sac:RECIPE",
        "swarm-ddpg": "edgewise.systems.swarm.recipes.ddpg:RECIPE",
        "swarm-mappo-mixed": "edgewise.systems.swarm.recipes.mappo_mixed:RECIPE",
        "swarm-mappo-published": "edgewise.systems.swarm.recipes.mappo_published:RECIPE",
    },
    encoders={"informarl": "edgewise.systems.swarm.models.informarl_encoder:InforMARLEncoder"},
)
