"""The Hive system: two players surround each other's queen with moving tiles. See README.md."""

from edgewise.plugins import Environment, System, Verb

SYSTEM = System(
    name="hive",
    environments={
        "hive": Environment(
            env="edgewise.systems.hive.env:HiveEnv",
            config="edgewise.systems.hive.config:HiveConfig",
            summary="two players surround each other's queen with moving tiles",
            baselines="edgewise.systems.hive.baselines:BASELINES",
            replay="edgewise.systems.hive.render:replay",
            self_play=True,
            opponents="edgewise.systems.hive.opponents:OPPONENTS",
            board="edgewise.systems.hive.board_page:board",
            record="edgewise.systems.hive.game_file:record",
        ),
    },
    recipes={
        "hive-quick": "edgewise.systems.hive.recipes.quick:RECIPE",
    },
    verbs=(
        Verb(
            "perft",
            "count sequences of legal plies, to check the rules of a game",
            "edgewise.systems.hive.commands.perft",
        ),
        Verb(
            "engine",
            "play for programs that speak the Universal Hive Protocol",
            "edgewise.systems.hive.commands.engine",
        ),
    ),
)
