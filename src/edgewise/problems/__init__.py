"""Construction and selection problems, one file each: what most people mean by learning on graphs.

Every file has an environment, its rules as baselines, and how its instances are generated. All of them
describe an instance once and then only what changes, so that networks encode a graph once per episode.
"""

from edgewise.plugins import Environment, System, Verb


def _problem(module: str, name: str, summary: str) -> Environment:
    return Environment(
        env=f"edgewise.problems.{module}:{name}Env",
        config=f"edgewise.problems.config:{name}Config",
        summary=summary,
        baselines=f"edgewise.problems.{module}:BASELINES",
    )


SYSTEM = System(
    name="problems",
    environments={
        "tsp": _problem("tsp", "TSP", "visit every city once by a short round trip"),
        "cvrp": _problem("cvrp", "CVRP", "serve all customers by short routes of a vehicle with a capacity"),
        "cvrptw": _problem("cvrptw", "CVRPTW", "serve all customers within their time windows"),
        "job_shop": _problem("job_shop", "JobShop", "schedule the operations of jobs on machines"),
        "vertex_cover": _problem("vertex_cover", "VertexCover", "cover every edge by nodes of small weight"),
        "independent_set": _problem(
            "independent_set", "IndependentSet", "choose many nodes, no two of them neighbours"
        ),
        "max_cut": _problem("max_cut", "MaxCut", "divide the nodes with much weight between the sides"),
        "coloring": _problem("coloring", "Coloring", "colour nodes with few colours, neighbours differently"),
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
