"""Which algorithm learns in which environment: builds, updates, draws and resumes every pair.

    python -m benchmarks.matrix [--write FILE] [--results FILE] [--only TEXT] [--algorithm NAME] [--drawn N]

A pair works if it builds from its defaults, makes updates with finite numbers, draws 100,000 actions of which
none is illegal, and continues bit for bit from a saved state. Otherwise it must be refused in words.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import yaml
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.config.errors import ConfigError
from edgewise.envs.policy import acting_in
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.graphs.actions import AgentsContinuous
from edgewise.graphs.keys import ACTIVE
from edgewise.plugins import algorithms, environments, recipes
from edgewise.plugins.trust import allow
from edgewise.runs.checkpoint import random_state
from edgewise.runs.checkpoint.serialise import flatten, unflatten
from edgewise.systems.queueing.actions import ChooseIndependentSet

Settings = dict[str, Any]

EXAMPLES: dict[str, tuple[str, Settings]] = {
    "examples/sensors, 100 junctions": ("examples/sensors/sensors.py", {"env.num_junctions": 100}),
    "examples/team": ("examples/team/cover.py", {}),
    "examples/tsp": ("examples/tsp/tsp.py", {}),
}
VARIANTS: dict[str, dict[str, Settings]] = {
    "marine": {
        "marine, discrete": {"env.actions": "discrete"},
        "marine, continuous": {"env.actions": "continuous"},
    },
    "swarm": {
        "swarm, discrete": {},
        "swarm, discrete, with memory": {"model.recurrent": True},
        "swarm, continuous": {"env.continuous": True},
    },
    "reasoning": {
        "reasoning, padded": {"env.view": "padded"},
        "reasoning, successors": {"env.view": "state"},
    },
}
"""Environments with several ways to act, and the settings of each."""
SMALL: Settings = {
    "minibatch_size": 16,
    "learning_starts": 0,
    "replay_size": 2_000,
    "updates_per_transition": 1 / 32,
    "simulations": 8,
    "starts": 2,
    "updates": 2,
}
"""Settings of algorithms that make an update cheap."""
SHORT_SEQUENCES: Settings = {"chunk_length": 2, "burn_in": 1}
"""Settings of algorithms whose models remember."""
NARROW: Settings = {"encoder.hidden": 16, "encoder.layers": 1, "encoder.heads": 2, "hidden": 16}
"""Settings of models that make a forward pass cheap."""
SHORT = 20
"""Steps of an episode for REINFORCE, which learns from whole ones."""
NAMED = re.compile(r"(and|cannot learn) \w+( is not one|, a game)")
"""Where a reason names the environment, which its row does already."""
WORLDS, STEPS, DRAWN, DRAWING_WORLDS = 16, 4, 100_000, 512


def rows() -> list[tuple[str, str, Settings]]:
    """Return every environment: its title, name or address, and settings."""
    found = []
    for name in environments():
        variants = VARIANTS.get(name, {name: {}})
        found += [(title, name, settings) for title, settings in variants.items()]
    for path, _ in EXAMPLES.values():
        allow(path)
    return found + [(title, path, settings) for title, (path, settings) in EXAMPLES.items()]


def small(name: str, algorithm: str, settings: Settings) -> Builder:
    """Build a pair with few worlds, narrow networks, small minibatches and no warm-up."""
    config = load_config(name, algorithm=algorithm, keywords=settings)
    chosen = SMALL | (SHORT_SEQUENCES if settings.get("model.recurrent") else {})
    own = {f"algorithm.{key}": value for key, value in chosen.items() if has(config.algorithm, key)}
    own |= {f"model.{key}": value for key, value in NARROW.items() if has(config.model, key)}
    if algorithm == "reinforce" and has(config.env, "max_steps"):
        own |= {"env.max_steps": min(SHORT, config.env.max_steps)}
    if hasattr(config.algorithm, "expert") and algorithm == "clone":
        names = [name for name in Builder(config, num_envs=2).entry.load_baselines() if name != "random"]
        own |= {"algorithm.expert": names[0]} if names else {}
    config = load_config(name, algorithm=algorithm, keywords=settings | own)
    return Builder(config, num_envs=WORLDS, rollout_length=STEPS, episodes=2)


def has(settings: object, path: str) -> bool:
    """Return whether settings have a value at a path such as `encoder.hidden`."""
    return value_at(settings, path) is not None


def value_at(settings: object, path: str) -> Any:
    """Return the value at a path such as `model.recurrent`; None if there is none."""
    for part in path.split("."):
        settings = getattr(settings, part, None)
    return settings


def updates(builder: Builder, batches: int) -> Iterator[dict[str, float]]:
    """Collect and learn, and yield the metrics of every batch."""
    for _ in range(batches):
        metrics = builder.algorithm.learn(builder.collector.collect())
        yield {key: value.item() for key, value in metrics.items()}


def illegal_actions(builder: Builder, *, drawn: int = DRAWN) -> int:
    """Return in how many worlds and steps an action of the exploring policy is illegal, of `drawn` actions.

    They are drawn in the states that the policy reaches.
    """
    env = Builder(builder.config, num_envs=min(DRAWING_WORLDS, drawn)).env
    policy, illegal, count = builder.algorithm.policy, 0, 0
    root = env.reset()
    with torch.no_grad(), set_exploration_type(ExplorationType.RANDOM), acting_in(policy, env):
        while count < drawn:
            acted = policy(root)
            illegal += int((~env.actions.is_legal(acted["action"], acted, env.graph)).sum())
            count += num_actions(env.actions, acted)
            _, root = env.step_and_maybe_reset(acted)
    return illegal


def num_actions(layout: Any, acted: TensorDictBase) -> int:
    """Return how many actions a step of all worlds has: vectors and sets count once, idle agents do not."""
    active: Tensor | None = acted.get(ACTIVE, None)
    if layout.num_agents and active is not None:
        return int(active.sum())
    action: Tensor = acted["action"]
    if isinstance(layout, AgentsContinuous):
        return action[..., 0].numel()
    return len(action) if isinstance(layout, ChooseIndependentSet) else action.numel()


def state_of(builder: Builder) -> Settings:
    """Return what a checkpoint has of algorithm, collector and random generators."""
    parts = {"algorithm": dict(builder.algorithm.state_dict()), "rollout": builder.collector.state_dict()}
    return parts | {"random": random_state.capture()}


def resumes(first: Builder, second: Builder) -> bool:
    """Return whether a run goes on alike after its state was saved and loaded into another."""
    skeleton, tensors = flatten(state_of(first))
    tensors = {name: value.clone() for name, value in tensors.items()}
    one, expected = list(updates(first, 1)), flatten(state_of(first))
    saved = unflatten(skeleton, tensors)
    second.algorithm.load_state_dict(saved["algorithm"])
    second.collector.load_state_dict(saved["rollout"])
    random_state.restore(saved["random"])
    other, found = list(updates(second, 1)), flatten(state_of(second))
    return (
        one == other
        and expected[0] == found[0]
        and all(torch.equal(value, found[1][name]) for name, value in expected[1].items())
    )


def outcome(name: str, algorithm: str, settings: Settings, *, drawn: int = DRAWN) -> str:
    """Return "works", or why not: "refused: …" or "fails: …"."""
    random_state.seed(0)
    try:
        builder = small(name, algorithm, settings)
        found = list(updates(builder, 2))
    except ConfigError as error:
        return f"refused: {str(error).splitlines()[0]}"
    except Exception as error:
        return f"fails: {type(error).__name__}: {error}"
    if not all(abs(value) < float("inf") for metrics in found for value in metrics.values()):
        return "fails: a metric is not finite"
    if illegal := illegal_actions(builder, drawn=drawn):
        return f"fails: {illegal} illegal actions"
    return (
        "works" if resumes(builder, small(name, algorithm, settings)) else "fails: it does not resume alike"
    )


def has_recipe(name: str, algorithm: str, settings: Settings) -> bool:
    """Return whether a recipe of the pair exists: with the same way to act, or beside the example's file."""
    if name.endswith(".py"):
        files = [
            yaml.safe_load(path.read_text(encoding="utf-8")) for path in Path(name).parent.glob("*.yaml")
        ]
        return any(recipe.get("algorithm_name") == algorithm for recipe in files)
    configs = [load_config(recipe) for recipe in recipes()]
    return any(
        (config.env_name, config.algorithm_name) == (name, algorithm)
        and all(value_at(config, key) == value for key, value in settings.items())
        and (settings.get("model.recurrent") or not value_at(config, "model.recurrent"))
        for config in configs
    )


def digest() -> str:
    """Return a digest of all code that a result depends on."""
    folders = (Path("src"), Path("examples"), Path("benchmarks"))
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def known_results(path: Path | None, *, drawn: int) -> dict[tuple[str, str], str]:
    """Return the results of earlier calls with the same code and at least as many actions."""
    if path is None or not path.exists():
        return {}
    found = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    return {
        (each["environment"], each["algorithm"]): each["result"]
        for each in found
        if each["code"] == digest() and each["drawn"] >= drawn
    }


def table(found: dict[tuple[str, str], str], titles: list[str], columns: list[str]) -> str:
    """Return the matrix as Markdown, with the reasons of refusals as notes."""
    notes: dict[str, int] = {}

    def cell(text: str) -> str:
        if not text.startswith(("refused", "fails")):
            return text
        reason = NAMED.sub(r"\1 this environment\2", text.partition(": ")[2])
        number = notes.setdefault(reason, len(notes) + 1)
        return f"{'no' if text.startswith('refused') else '**fails**'} ({number})"

    lines = [f"| environment | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    for title in titles:
        lines.append(f"| {title} | {' | '.join(cell(found[title, each]) for each in columns)} |")
    return "\n".join([*lines, "", *(f"{number}. {text}" for text, number in notes.items())])


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--write", type=Path, help="Markdown file whose table is replaced, if all pairs were tried"
    )
    parser.add_argument(
        "--results", type=Path, help="file of results; pairs in it are not tried again until code changes"
    )
    parser.add_argument("--only", default="", help="text in the title of an environment")
    parser.add_argument("--algorithm", default="", help="one algorithm")
    parser.add_argument("--drawn", type=int, default=DRAWN, help=f"actions to draw in every pair ({DRAWN})")
    return parser.parse_args()


def main() -> int:
    """Try every pair, and print or write the matrix."""
    options = parsed()
    torch.set_num_threads(1)
    code, found = digest(), known_results(options.results, drawn=options.drawn)
    places = [place for place in rows() if options.only in place[0]]
    columns = [name for name in algorithms() if options.algorithm in ("", name)]
    for title, name, settings in places:
        for algorithm in columns:
            if (title, algorithm) in found:
                continue
            started = time.process_time()
            result = outcome(name, algorithm, settings, drawn=options.drawn)
            if result == "works" and has_recipe(name, algorithm, settings):
                result = "trained"
            found[title, algorithm] = result
            seconds = round(time.process_time() - started, 1)
            sys.stderr.write(f"{title} x {algorithm}: {result} ({seconds} s)\n")
            entry = {"environment": title, "algorithm": algorithm, "result": result}
            entry |= {"drawn": options.drawn, "seconds": seconds, "code": code}
            if options.results is not None:
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
    text = f"{options.drawn:,} actions were drawn in every pair that works.\n\n"
    text += table(found, [place[0] for place in places], columns)
    whole = len(places) == len(rows()) and len(columns) == len(algorithms())
    if options.write is None or not whole:
        sys.stdout.write(text + "\n")
    else:
        head = options.write.read_text(encoding="utf-8").partition("<!-- matrix -->")[0]
        options.write.write_text(f"{head}<!-- matrix -->\n\n{text}\n", encoding="utf-8")
    return int(any(result.startswith("fails") for result in found.values()))


if __name__ == "__main__":
    sys.exit(main())
