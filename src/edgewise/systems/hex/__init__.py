"""The Hex system: two players connect their sides of a hexagonal board. See README.md."""

from edgewise.plugins import Environment, System

SYSTEM = System(
    name="hex",
    environments={
        "hex": Environment(
            env="edgewise.systems.hex.env:HexEnv",
            config="edgewise.systems.hex.config:HexConfig",
            summary="two players connect opposite sides of a hexagonal board",
            baselines="edgewise.systems.hex.baselines:BASELINES",
            slow_baselines=("least_resistance", "mcts", "monte_carlo", "open_spiel"),
            references="edgewise.systems.hex.baselines:references",
            replay="edgewise.systems.hex.render:replay",
            self_play=True,
            exploitability="edgewise.systems.hex.exact:exploitability",
            opponents="edgewise.systems.hex.opponents:OPPONENTS",
            board="edgewise.systems.hex.board:board",
            record="edgewise.systems.hex.board:record",
        ),
    },
    recipes={
        "hex-quick": "edgewise.systems.hex.recipes.quick:RECIPE",
        "hex-expert": "edgewise.systems.hex.recipes.expert:RECIPE",
        "hex-selfplay": "edgewise.systems.hex.recipes.selfplay:RECIPE",
    },
)
