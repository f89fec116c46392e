"""A verb of one's own: `edgewise salesman tour runs/tsp-1 --plugin tour.py --plugin tsp.py` prints a tour."""

import sys

import edgewise as ew


def configure(parser):
    """Add the arguments of the verb."""
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument("--cities", type=int, metavar="N", default=10, help="number of cities (10)")
    parser.add_argument("--seed", type=int, metavar="N", default=0, help="random seed of the cities (0)")


def run(options, console):
    """Let the trained policy plan one tour, and show it."""
    policy = ew.load_policy(options.run, num_cities=options.cities)
    env = ew.make_env(type(policy.env), num_envs=1, seed=options.seed, num_cities=options.cities)
    root, tour = env.reset(), [0]
    while len(tour) < options.cities:
        root["action"] = policy.act(root)
        tour.append(int(root["action"]))
        stepped = env.step(root)
        root = stepped["next"]
    length = float(root["metrics", "tour"])
    console.show({"tour": tour, "length": length}, f"{' → '.join(map(str, [*tour, 0]))}, {length:.3f} long")
    return 0


SYSTEM = ew.System(
    "salesman", verbs=(ew.Verb("tour", "plan one tour with a trained policy", sys.modules[__name__]),)
)
