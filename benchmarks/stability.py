"""Growth with the team size: embeddings, logits and gradients of InforMARL's network, its remedies, and ours.

    python -m benchmarks.stability [--set aggregation=mean,beta=true] [--run FOLDER]
                                   [--train [--agents N ...] [--iterations N]] [--json FILE] [--quick]

Random initial worlds of the swarm; means over 3 initialisations. *Logit* is the largest of the first
attention layer, *saturated* the share of its (node, head) pairs with one weight above 0.99, *gradient* the
norm over the trunk's parameters of a random linear read-out of the agents' rows, averaged over agents.
`--train` trains the recipe's network, or the published one with the switches of `--set`, at each size without
gradient clipping; it shows gradient norms, PPO's ratio at identical weights, and the table after training.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.models.encoders.diagnostics import activation_rms, logit_max
from edgewise.models.encoders.encoder import MessagePassingEncoder
from edgewise.models.encoders.transformer import GraphTransformer
from edgewise.systems.swarm import observe
from edgewise.systems.swarm.config import SwarmConfig
from edgewise.systems.swarm.env import SwarmEnv
from edgewise.systems.swarm.models.config import FAITHFUL, Remedies
from edgewise.systems.swarm.models.informarl import InforMARLTrunk
from edgewise.systems.swarm.models.informarl_encoder import InforMARLEncoder
from edgewise.systems.swarm.recipes.mappo import RECIPE

TEAMS = (3, 7, 10, 20, 50)
SAMPLES = 48
"""Number of agents measured for each team size."""
SENSING = SwarmConfig().sensing_radius
TRAINED_WORLDS = 4
"""Number of worlds for training; few, because of fifty agents."""
MEASURES = ("embedding", "logit", "saturated", "gradient")
REMEDIES = {
    "as published": Remedies(),
    "dropout 0.1": Remedies(dropout=0.1),
    "beta": Remedies(beta=True),
    "residual 0.1": Remedies(residual=0.1),
    "graph norm": Remedies(graph_norm=True),
    "depth-scaled init": Remedies(depth_init=True),
    "logits clipped at 10": Remedies(logit_clip=10.0),
    "logits soft-capped at 10": Remedies(soft_cap=10.0),
    "activations clamped at 10": Remedies(clamp=10.0),
    "layer norm after attention": Remedies(layer_norm=True),
    "sum / root of degree": Remedies(aggregation="root"),
    "mean * log of degree": Remedies(aggregation="log"),
    "mean": Remedies(aggregation="mean"),
    "layer norm after embedding": Remedies(embed_norm=True),
    "each node by itself": Remedies(embed="node"),
}
Row = dict[str, float]


def worlds(team: int, seed: int) -> SwarmEnv:
    """Build enough worlds for `SAMPLES` agents."""
    return SwarmEnv(SwarmConfig(num_agents=team), num_envs=-(-SAMPLES // team), seed=seed)


def views(team: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return ego graphs of `SAMPLES` agents: features `[G, E, 7]`, distances `[G, E, E]`, own rows `[G]`."""
    seen, distance = observe.ego_view(worlds(team, seed).reset()["state"], "target")
    own = torch.arange(team).expand(len(seen), team).reshape(-1)[:SAMPLES]
    distance = distance.unsqueeze(1).expand(-1, team, -1, -1).flatten(0, 1)[:SAMPLES]
    return seen.flatten(0, 1)[:SAMPLES], distance, own


def measure_start(remedies: Remedies, team: int, seed: int) -> Row:
    """Measure one initialisation of InforMARL's trunk in worlds of `team` agents."""
    torch.manual_seed(seed)
    return measure_published(InforMARLTrunk(remedies), team, seed)


def measure_published(trunk: InforMARLTrunk, team: int, seed: int) -> Row:
    """Measure a given InforMARL trunk in worlds of `team` agents."""
    features, distance, own = views(team, seed)
    torch.manual_seed(seed)
    distance = distance * (distance < SENSING)
    h, traces = trunk.traced(features, distance)
    return {
        "embedding": float(traces.embedding.detach().square().mean().sqrt()),
        "logit": float(traces.logits[0].detach().abs().max()),
        "saturated": saturated(traces.alpha[0].detach(), traces.linked),
        "gradient": gradient(trunk, h[torch.arange(len(own)), own]),
    }


def measure_ours(team: int, seed: int, encoder: MessagePassingEncoder | None = None) -> Row:
    """Measure one initialisation of `GraphTransformer`, or a trained encoder, in worlds of `team` agents."""
    env = worlds(team, seed)
    torch.manual_seed(seed)
    encoder = encoder or GraphTransformer(env.graph, EncoderConfig(hidden=32, layers=3, dense="always"))
    encoder.graph = env.graph
    graph = env.reset()["graph"]
    seen: dict[str, Any] = {}
    block = encoder.trunk.blocks[0]
    hook = block.register_forward_hook(
        lambda _, given, out: seen.update(h=given[0], view=given[1], made=out[1])
    )
    agents = encoder(graph)[:, :team].flatten(0, 1)[:SAMPLES]
    hook.remove()
    return {
        "embedding": float(activation_rms(seen["h"].detach(), seen["view"])),
        "logit": float(logit_max(seen["made"], seen["view"]).detach()),
        "saturated": saturated(seen["made"].alpha.detach(), seen["view"].linked),
        "gradient": gradient(encoder, agents),
    }


def saturated(alpha: Tensor, linked: Tensor) -> float:
    """Compute the share of (node, head) pairs with one weight above 0.99, given two or more neighbours."""
    shared = (linked.sum(-1) > 1).unsqueeze(1).expand(alpha.shape[:3])
    return float((alpha.amax(-1) > 0.99)[shared].float().mean())


def gradient(trunk: nn.Module, rows: Tensor) -> float:
    """Compute the gradient norm of a random linear read-out of `rows [G, C]`, averaged over rows."""
    weights = torch.randn(rows.shape[-1], generator=torch.Generator().manual_seed(0))
    found = torch.autograd.grad((rows @ weights).mean(), list(trunk.parameters()), allow_unused=True)
    return float(torch.stack([part.square().sum() for part in found if part is not None]).sum().sqrt())


def table(
    quick: bool, *, chosen: Remedies | None = None, run: Path | None = None
) -> dict[str, dict[str, Row]]:
    """Measure every row of the table: name → team size → measures."""
    teams, seeds = (TEAMS[:2], 1) if quick else (TEAMS, 3)
    rows = {"chosen": chosen} if chosen else REMEDIES
    found = {
        name: {str(team): mean(measure_start(row, team, seed) for seed in range(seeds)) for team in teams}
        for name, row in rows.items()
    }
    found["GraphTransformer"] = {
        str(team): mean(measure_ours(team, seed) for seed in range(seeds)) for team in teams
    }
    if run is not None:
        encoder = trained_encoder(run)
        found["GraphTransformer, trained"] = {
            str(team): mean(measure_ours(team, seed, encoder) for seed in range(seeds)) for team in teams
        }
    return found


def trained_encoder(run: Path) -> MessagePassingEncoder:
    """Load the actor's encoder of a run."""
    from edgewise.experiments.evaluate import load_trained

    encoder: MessagePassingEncoder = load_trained(run).policy.encoder  # type: ignore[attr-defined]
    return encoder


def training(team: int, *, iterations: int, chosen: Remedies | None = None) -> tuple[Row, Row]:
    """Train the recipe's network, or the published one with `chosen` switches, on `team` agents.

    Gradients are not clipped.

    Returns:
        Measures of the training, and the measures of the table with the final weights.
    """
    torch.manual_seed(0)
    fields = SwarmConfig(num_agents=team, reward="individual", goal_nodes=chosen is not None)
    env = SwarmEnv(fields, num_envs=TRAINED_WORLDS, seed=0)
    config = RECIPE.config.algorithm.model_copy(update={"max_grad_norm": 1e9, "minibatch_size": 100})
    algorithm = PPO(make_actor_critic(env.graph, env.actions, network(chosen)), config)
    rollout = Rollout(env, algorithm.policy, rollout_length=25)
    history = [algorithm.learn(rollout.collect()) for _ in range(iterations)]
    norms = torch.stack([metrics["gradient_norm"] for metrics in history])
    shown = {
        "gradient, mean": float(norms.mean()),
        "gradient, largest": float(norms.max()),
        "ratio at start": float(torch.stack([metrics["ratio_start"] for metrics in history]).max()),
        "finite": float(all(bool(value.isfinite()) for metrics in history for value in metrics.values())),
    }
    encoder = algorithm.policy.encoder
    if isinstance(encoder, InforMARLEncoder):
        return shown, measure_published(encoder.trunk, team, 0)
    return shown, measure_ours(team, 0, encoder)


def network(chosen: Remedies | None) -> ModelConfig:
    """Return the recipe's model, or the published one with some switches."""
    if chosen is None:
        return RECIPE.config.model
    return FAITHFUL.model_copy(update={"encoder": FAITHFUL.encoder.model_copy(update={"remedies": chosen})})


def trained_rows(
    teams: Iterable[int], *, iterations: int, chosen: Remedies | None = None
) -> dict[str, dict[str, Row]]:
    """Build two rows of the table, one column for each size of training."""
    shown, after = {}, {}
    for team in teams:
        shown[str(team)], after[str(team)] = training(team, iterations=iterations, chosen=chosen)
        sys.stderr.write(f"trained at {team}: {shown[str(team)]} {after[str(team)]}\n")
    return {f"{iterations} iterations": shown, "after them": after}


def mean(rows: Iterator[Row]) -> Row:
    """Compute the mean of each measure."""
    every = list(rows)
    return {name: sum(row[name] for row in every) / len(every) for name in MEASURES}


def parse(text: str) -> Remedies:
    """Parse comma-separated switches, `name=value`."""
    given = dict(part.split("=", 1) for part in text.split(","))
    known = list(Remedies.model_fields)
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise argparse.ArgumentTypeError(f"no switch {', '.join(unknown)}; there are {', '.join(known)}")
    return Remedies(
        **{
            name: value if value.isalpha() and value not in ("true", "false") else json.loads(value)
            for name, value in given.items()
        }
    )


def run(quick: bool) -> dict[str, dict[str, Row]]:
    """Measure the table with all remedies."""
    return table(quick)


def show(found: dict[str, dict[str, Row]]) -> str:
    """Format the table: one line per row and measure, one column per team size."""
    teams = list(next(iter(found.values())))
    lines = [" " * 46 + "".join(f"{team:>10}" for team in teams)]
    for name, row in found.items():
        for number, measure in enumerate(row[teams[0]]):
            numbers = "".join(f"{row[team][measure]:>10.4g}" for team in teams)
            lines.append(f"{'' if number else name:28}{measure:18}{numbers}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--set", type=parse, metavar="SWITCHES", help="show one row with these switches only")
    parser.add_argument("--run", type=Path, help="a run of swarm-mappo, as a row after training")
    parser.add_argument("--json", type=Path, help="also write the table to this file")
    parser.add_argument("--quick", action="store_true", help="two sizes, one initialisation")
    parser.add_argument("--train", action="store_true", help="also train at each size")
    parser.add_argument("--agents", type=int, nargs="+", help="sizes to train at (all of the table)")
    parser.add_argument("--iterations", type=int, default=200, help="training iterations at each size (200)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = table(options.quick, chosen=options.set, run=options.run)
    sys.stdout.write(show(found) + "\n")
    if options.train:
        count = 2 if options.quick else options.iterations
        teams = options.agents or [int(team) for team in next(iter(found.values()))]
        rows = trained_rows(teams, iterations=count, chosen=options.set)
        sys.stdout.write("\n" + show(rows) + "\n")
        found |= rows
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
