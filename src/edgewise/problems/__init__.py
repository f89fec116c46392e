"""Construction and selection problems, one file each: what most people mean by learning on graphs.

Every file has an environment, its rules as baselines, and how its instances are generated. All of them
describe an instance once and then only what changes, so that networks encode a graph once per episode.
"""

from edgewise.plugins import Environment, System, Verb


def _problem(module: str, name: str, summary: str, *, replay: str) -> Environment:
    return Environment(
        env=f"edgewise.problems.{module}:{name}Env",
        config=f"edgewise.problems.config:{name}Config",
        summary=summary,
        baselines=f"edgewise.problems.{module}:BASELINES",
        replay=f"edgewise.problems.render:{replay}",
    )


SYSTEM = System(
    name="problems",
    environments={
        "tsp": _problem("tsp", "TSP", "visit every city once by a short round trip", replay="tour"),
        "cvrp": _problem(
            "cvrp",
            "CVRP",
            "serve all customers by short routes of bounded load",
            replay="routes",
        ),
        "cvrptw": _problem("cvrptw", "CVRPTW", "serve all customers in their time windows", replay="routes"),
        "job_shop": _problem(
            "job_shop", "JobShop", "schedule the operations of jobs on machines", replay="schedule"
        ),
        "vertex_cover": _problem(
            "vertex_cover", "VertexCover", "cover every edge by nodes of small weight", replay="chosen"
        ),
        "independent_set": _problem(
            "independent_set",
            "IndependentSet",
            "choose many nodes that are no neighbours",
            replay="chosen",
        ),
        "max_cut": _problem(
            "max_cut", "MaxCut", "divide the nodes with much weight between the sides", replay="sides"
        ),
        "coloring": _problem(
            "coloring", "Coloring", "colour nodes with few colours, neighbours differently", replay="colours"
        ),
        "immunisation": _problem(
            "immunisation", "Immunisation", "remove nodes so that few pairs stay connected", replay="chosen"
        ),
    },
    verbs=(
        Verb("solve", "solve instances of files with a trained policy", "edgewise.problems.commands.solve"),
    ),
    recipes={
        name: f"edgewise.problems.recipes:{name.upper().replace('-', '_')}"
        for name in (
            "tsp20-pomo",
            "tsp50-pomo",
            "cvrp20-pomo",
            "cvrptw20-pomo",
            "job-shop",
            "vertex-cover",
            "max-cut",
        )
    },
)
