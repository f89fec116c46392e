"""Marine: steer boats across a current to their goals by the rules of the sea. README.md is the card."""

from edgewise.plugins import Environment, System, Verb

SYSTEM = System(
    name="marine",
    environments={
        "marine": Environment(
            env="edgewise.systems.marine.env:MarineEnv",
            config="edgewise.systems.marine.config:MarineConfig",
            summary="steer boats across a current to their goals by the rules of the sea",
            baselines="edgewise.systems.marine.baselines:BASELINES",
            replay="edgewise.systems.marine.render:replay",
        ),
    },
    recipes={
        "marine-dqn": "edgewise.systems.marine.recipes.stages:DQN",
        "marine-quick": "edgewise.systems.marine.recipes.quick:RECIPE",
        "marine-rainbow": "edgewise.systems.marine.recipes.stages:RAINBOW",
        "marine-iqn": "edgewise.systems.marine.recipes.stages:IQN",
        "marine-ac-iqn": "edgewise.systems.marine.recipes.stages:AC_IQN",
        "marine-sac": "edgewise.systems.marine.recipes.stages:SAC",
        "marine-ddpg": "edgewise.systems.marine.recipes.stages:DDPG",
    },
    verbs=(
        Verb(
            "train",
            "train every run of a schedule file",
            "edgewise.systems.marine.commands.train",
        ),
        Verb(
            "import",
            "write a run folder from published weights",
            "edgewise.systems.marine.commands.import_weights",
        ),
    ),
)
