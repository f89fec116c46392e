"""Compares policies with searches of equal CPU time: `python measure.py runs/maxcut40-1 --nodes 40,200`.

Every row is the mean over instances of the cut divided by the best cut known, with a 95 % interval. The best
known is the best of a long tabu search from many starts and of everything else that was tried.
"""

import argparse
import sys
import time
from pathlib import Path

import torch
from local_search import ascend, random_sides, tabu_search
from maxcut import MaxCutEnv, cut_of, gains
from tensordict import TensorDict

import edgewise as ew

HERE = Path(__file__).parent


def weight_matrices(state):
    """Return the weights of the graphs in `state` as matrices `[G, N, N]`."""
    graphs, nodes = state["side"].shape
    source, target = state["edge_index"].unbind(1)
    flat = torch.zeros(graphs, nodes * nodes).scatter_add(1, source * nodes + target, state["weight"])
    return flat.view(graphs, nodes, nodes)


def started_at(state, side):
    """Return the state of worlds whose nodes are divided as in `side [B, N]`, before the first flip."""
    gain = gains(state, side)
    cut = cut_of(state, gain)
    return state.clone().update(
        {"side": side, "best_side": side.clone(), "gain": gain, "cut": cut, "best": cut.clone()}
    )


def play(policy, env, state):
    """Play one episode from every state `[B]`; return the best cuts `[B]`."""
    none = torch.zeros(env.num_envs, 1, dtype=torch.bool)
    root = env.reset(TensorDict({"state": state, "_reset": none}, env.batch_size))
    with policy.on(env):
        while not root["done"].all():
            root = env.simulate(root.set("action", policy.act(root)))
    return root["metrics", "cut"]


def timed(search):
    """Return what a search finds, best of all starts `[G]`, and its CPU seconds."""
    begin = time.process_time()
    cuts = search()
    return cuts.amax(-1), time.process_time() - begin


def measure(options, setting, nodes):
    """Return the best cut of every instance by each method, and its CPU seconds, by name."""
    shape = {"num_nodes": nodes, "family": setting[0], "weights": setting[1]}
    env = ew.make_env(MaxCutEnv, num_envs=options.instances, seed=options.seed, **shape)
    state = env.reset()["state"]
    weight, generator = weight_matrices(state), torch.Generator().manual_seed(options.seed)

    def sides(starts):
        return random_sides(options.instances, starts, nodes, generator)

    def tabu(starts, **budget):
        return timed(lambda: tabu_search(weight, sides(starts), generator, **budget)[0])

    found = {
        "greedy": timed(lambda: ascend(weight, torch.ones(options.instances, 1, nodes))),
        "50 ascents": timed(lambda: ascend(weight, sides(50))),
        "tabu search, 2 steps per node": tabu(1, steps=2 * nodes),
    }
    for run in options.runs:
        plugins = [HERE / "maxcut.py", HERE / "encoder.py"]
        policy = ew.load_policy(run, plugins=plugins, **shape)
        for starts in options.starts:
            worlds = ew.make_env(MaxCutEnv, num_envs=options.instances * starts, seed=0, **shape)
            repeated = state[torch.arange(options.instances).repeat_interleave(starts)]
            begin = started_at(repeated, sides(starts).flatten(0, 1))
            name = f"{run.name}, {starts} start{'s' * (starts > 1)}"
            found[name] = timed(lambda: play(policy, worlds, begin).view(-1, starts))  # noqa: B023
            found[f"tabu search, CPU of {name}"] = tabu(options.tabu_starts, seconds=found[name][1])
            sys.stderr.write(f"{', '.join(setting)}, {nodes} nodes: {name}, {found[name][1]:.0f} s\n")
    known = tabu(options.reference_starts, steps=options.reference_steps * nodes)[0]
    for cuts, _ in found.values():
        known = torch.maximum(known, cuts)
    return found, known


def main():
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="run folders")
    parser.add_argument("--nodes", default="40,200", help="sizes of graphs, separated by commas (40,200)")
    parser.add_argument("--graphs", default="er,ba", help="er, ba or both (er,ba)")
    parser.add_argument("--weights", default="unit,signs", help="unit, signs or both (unit,signs)")
    parser.add_argument("--instances", type=int, default=20, help="graphs of each kind (20)")
    parser.add_argument(
        "--starts", default="1,10", help="random starts of a policy, separated by commas (1,10)"
    )
    parser.add_argument("--tabu-starts", type=int, default=8, help="starts of tabu search of equal CPU (8)")
    parser.add_argument("--reference-starts", type=int, default=20, help="starts of the long search (20)")
    parser.add_argument("--reference-steps", type=int, default=50, help="its steps per node (50)")
    parser.add_argument("--seed", type=int, default=12345, help="random seed of the instances (12345)")
    options = parser.parse_args()
    options.starts = [int(each) for each in options.starts.split(",")]
    torch.set_num_threads(1)
    sys.stdout.write(
        "| graphs | nodes | method | ratio to the best known | ms per graph |\n|---|---|---|---|---|\n"
    )
    for weights in options.weights.split(","):
        for family in options.graphs.split(","):
            for nodes in map(int, options.nodes.split(",")):
                found, known = measure(options, (family, weights), nodes)
                for name, (cuts, seconds) in found.items():
                    ratio = cuts.double() / known
                    error = 1.96 * float(ratio.std()) / len(ratio) ** 0.5
                    spent = 1e3 * seconds / options.instances
                    sys.stdout.write(
                        f"| {family}, {weights} | {nodes} | {name} | {float(ratio.mean()):.4f} ± {error:.4f} "
                        f"| {spent:.1f} |\n"
                    )
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
