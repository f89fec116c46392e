"""Multihop: choose which class of packets each link of a network carries. README.md is the card."""

from edgewise.plugins import Environment, System, Verb

SYSTEM = System(
    name="multihop",
    environments={
        "multihop": Environment(
            env="edgewise.systems.multihop.env:MultihopEnv",
            config="edgewise.systems.multihop.config:MultihopConfig",
            summary="choose what each link of a network carries so that few packets wait",
            baselines="edgewise.systems.multihop.baselines:BASELINES",
            replay="edgewise.systems.multihop.render:replay",
        ),
        "multihop_lengths": Environment(
            env="edgewise.systems.multihop.lengths:MultihopLengthsEnv",
            config="edgewise.systems.multihop.config:LengthsConfig",
            summary="give links the lengths by which BackPressure routes",
            baselines="edgewise.systems.multihop.baselines:LENGTH_BASELINES",
            replay="edgewise.systems.multihop.render:replay",
        ),
    },
    recipes={
        "multihop-clone": "edgewise.systems.multihop.recipes.clone:RECIPE",
        "multihop-lengths": "edgewise.systems.multihop.recipes.lengths:RECIPE",
        "multihop-ppo": "edgewise.systems.multihop.recipes.ppo:RECIPE",
    },
    verbs=(
        Verb(
            "simulate",
            "simulate routing rules on a network file",
            "edgewise.systems.multihop.commands.simulate",
        ),
    ),
)
