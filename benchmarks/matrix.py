"""Which algorithm learns in which environment: builds, updates, draws and resumes every pair.

    python -m benchmarks.matrix [--write FILE] [--only TEXT] [--drawn N]

A pair works if it builds from its defaults, makes updates with finite numbers, draws 100,000 actions of which
none is illegal, and continues bit for bit from a saved state. Otherwise it must be refused in words.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.config.errors import ConfigError
from edgewise.config.plugins import algorithms, environments, recipes
from edgewise.config.plugins.trust import allow
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.graphs.policy import acting_in
from edgewise.training.checkpoint.serialise import flatten, unflatten

EXAMPLES = {
    "examples/graph_coloring": "examples/graph_coloring/coloring.py",
    "examples/maxcut": "examples/maxcut/maxcut.py",
    "examples/team": "examples/team/cover.py",
    "examples/tsp": "examples/tsp/tsp.py",
}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "marine": {
        "marine, discrete": {"env.actions": "discrete"},
        "marine, continuous": {"env.actions": "continuous"},
    },
    "swarm": {"swarm, discrete": {}, "swarm, continuous": {"env.continuous": True}},
    "reasoning": {
        "reasoning, padded": {"env.view": "padded"},
        "reasoning, successors": {"env.view": "state"},
    },
}
"""Environments with several ways to act, and the settings of each."""
WORLDS, STEPS, DRAWN = 16, 4, 100_000
COPIES = 16
"""Copies of every state in which actions are drawn at once."""


def columns() -> list[tuple[str, str, dict[str, Any]]]:
    """Return every environment: its title, name or address, and settings."""
    found = []
    for name in environments():
        variants = VARIANTS.get(name, {name: {}})
        found += [(title, name, settings) for title, settings in variants.items()]
    present = {title: path for title, path in EXAMPLES.items() if Path(path).exists()}
    for path in present.values():
        allow(path)
    return found + [(title, path, {}) for title, path in present.items()]


def small(name: str, algorithm: str, settings: dict[str, Any]) -> Builder:
    """Build a pair with few worlds, small minibatches and no warm-up."""
    config = load_config(name, algorithm=algorithm, keywords=settings)
    less = {
        "minibatch_size": 16,
        "learning_starts": 0,
        "replay_size": 2_000,
        "updates_per_transition": 1 / 32,
    }
    less |= {"simulations": 8, "starts": 4, "updates": 2}
    own = {f"algorithm.{key}": value for key, value in less.items() if hasattr(config.algorithm, key)}
    if hasattr(config.algorithm, "expert") and algorithm == "clone":
        names = [name for name in Builder(config, num_envs=2).entry.load_baselines() if name != "random"]
        own |= {"algorithm.expert": names[0]} if names else {}
    config = load_config(name, algorithm=algorithm, keywords=settings | own)
    return Builder(config, num_envs=WORLDS, rollout_length=STEPS, episodes=2)


def updates(builder: Builder, batches: int) -> Iterator[dict[str, float]]:
    """Collect and learn, and yield the metrics of every batch."""
    for _ in range(batches):
        metrics = builder.algorithm.learn(builder.collector.collect())
        yield {key: value.item() for key, value in metrics.items()}


def illegal_actions(builder: Builder, *, drawn: int = DRAWN) -> int:
    """Return how many of `drawn` actions of the exploring policy are illegal, in states that it reached."""
    env, policy, illegal, count = builder.env, builder.algorithm.policy, 0, 0
    root = env.reset()
    with torch.no_grad(), set_exploration_type(ExplorationType.RANDOM), acting_in(policy, env):
        while count < drawn:
            acted = policy(torch.cat([root] * COPIES))
            illegal += int((~env.actions.is_legal(acted["action"], acted, env.graph)).sum())
            count += acted["action"].numel()
            _, root = env.step_and_maybe_reset(acted[: env.num_envs])
    return illegal


def resumes(first: Builder, second: Builder) -> bool:
    """Return whether an algorithm goes on alike after its state was saved and loaded into another."""
    skeleton, tensors = flatten(dict(first.algorithm.state_dict()))
    second.algorithm.load_state_dict(
        unflatten(skeleton, {name: value.clone() for name, value in tensors.items()})
    )
    for _ in range(2):
        batch = first.collector.collect()
        one, other = first.algorithm.learn(batch.clone()), second.algorithm.learn(batch.clone())
        if {key: value.item() for key, value in one.items()} != {
            key: value.item() for key, value in other.items()
        }:
            return False
    return True


def outcome(name: str, algorithm: str, settings: dict[str, Any], *, drawn: int = DRAWN) -> str:
    """Return "works", or why not: "refused: …" or "fails: …"."""
    torch.manual_seed(0)
    try:
        builder = small(name, algorithm, settings)
        found = list(updates(builder, 2))
    except ConfigError as error:
        return f"refused: {str(error).splitlines()[0]}"
    if not all(abs(value) < float("inf") for metrics in found for value in metrics.values()):
        return "fails: a metric is not finite"
    if illegal := illegal_actions(builder, drawn=drawn):
        return f"fails: {illegal} illegal actions"
    return (
        "works" if resumes(builder, small(name, algorithm, settings)) else "fails: it does not resume alike"
    )


def has_recipe(name: str, algorithm: str, settings: dict[str, Any]) -> bool:
    """Return whether a recipe of the pair exists, with the same way to act."""
    configs = [load_config(recipe) for recipe in recipes()]
    return any(
        (config.env_name, config.algorithm_name) == (name, algorithm)
        and all(getattr(config.env, key.removeprefix("env.")) == value for key, value in settings.items())
        for config in configs
    )


def table(found: dict[tuple[str, str], str], titles: list[str], rows: list[str]) -> str:
    """Return the matrix as Markdown, with the reasons of refusals as notes."""
    notes: dict[str, int] = {}

    def cell(text: str) -> str:
        if not text.startswith(("refused", "fails")):
            return text
        number = notes.setdefault(text.partition(": ")[2], len(notes) + 1)
        return f"{'no' if text.startswith('refused') else '**fails**'} ({number})"

    lines = [f"| environment | {' | '.join(rows)} |", "|---|" + "---|" * len(rows)]
    for title in titles:
        lines.append(f"| {title} | {' | '.join(cell(found[title, row]) for row in rows)} |")
    return "\n".join([*lines, "", *(f"{number}. {text}" for text, number in notes.items())])


def main() -> int:
    """Try every pair, and print or write the matrix."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", type=Path, help="Markdown file whose table is replaced")
    parser.add_argument("--only", default="", help="text in the title of an environment")
    parser.add_argument("--drawn", type=int, default=DRAWN, help="actions to draw in every pair (100000)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    places = [place for place in columns() if options.only in place[0]]
    found: dict[tuple[str, str], str] = {}
    for title, name, settings in places:
        for algorithm in algorithms():
            result = outcome(name, algorithm, settings, drawn=options.drawn)
            trained = result == "works" and has_recipe(name, algorithm, settings)
            found[title, algorithm] = "trained" if trained else result
            sys.stderr.write(f"{title} x {algorithm}: {found[title, algorithm]}\n")
    drawn = f"{options.drawn:,} actions were drawn in every pair that works."
    text = drawn + "\n\n" + table(found, [place[0] for place in places], list(algorithms()))
    if options.write is None:
        sys.stdout.write(text + "\n")
    else:
        head = options.write.read_text(encoding="utf-8").partition("<!-- matrix -->")[0]
        options.write.write_text(f"{head}<!-- matrix -->\n\n{text}\n", encoding="utf-8")
    return int(any(result.startswith("fails") for result in found.values()))


if __name__ == "__main__":
    sys.exit(main())
