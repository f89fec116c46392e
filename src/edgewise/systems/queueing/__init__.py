"""Queueing: schedule the links of a conflict graph so that few packets wait. README.md is the card."""

from edgewise.plugins import Environment, System, Verb

SYSTEM = System(
    name="queueing",
    environments={
        "queueing": Environment(
            env="edgewise.systems.queueing.env:QueueingEnv",
            config="edgewise.systems.queueing.config:QueueingConfig",
            summary="activate nodes that do not conflict so that few packets wait",
            baselines="edgewise.systems.queueing.baselines:BASELINES",
            references="edgewise.systems.queueing.baselines:references",
            replay="edgewise.systems.queueing.render:replay",
            model="edgewise.systems.queueing.models.config:SetModelConfig",
        ),
    },
    recipes={
        "queueing-family-dagger": "edgewise.systems.queueing.recipes.family_dagger:RECIPE",
        "queueing-family-ppo": "edgewise.systems.queueing.recipes.family_ppo:RECIPE",
        "queueing-line3-clone": "edgewise.systems.queueing.recipes.line3_clone:RECIPE",
        "queueing-line3-ppo": "edgewise.systems.queueing.recipes.line3_ppo:RECIPE",
    },
    verbs=(
        Verb(
            "oracle",
            "solve a small instance exactly",
            "edgewise.systems.queueing.commands.oracle",
        ),
    ),
)
