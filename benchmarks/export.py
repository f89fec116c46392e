"""Exported policies beside eager ones: largest difference on sizes not traced, and time of a decision.

    python -m benchmarks.export [RECIPE ...] [--json FILE] [--quick]

One policy of every recipe, as `edgewise export` writes and checks it, in both formats. Weights are random:
those of a new policy, with noise, so that the logits of untrained policies are not all equal. Times are CPU
time of one thread in one world, medians of interleaved calls. Recipes whose data has to be given are left out
unless they are named; their policy is that of `reasoning-countries`, whose data they then use. With
`--quick`, one recipe of each environment is tried.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from edgewise import plugins
from edgewise.envs.policy import Policy, acting_in
from edgewise.experiments.build import Builder
from edgewise.experiments.export import as_function
from edgewise.experiments.export.check import WORLDS, check, measure, observations, other_sizes, traced_sizes
from edgewise.experiments.export.program import FORMATS, save, trace
from edgewise.experiments.load import load_config
from edgewise.plugins import environment

NEED_DATA = ("reasoning-family", "reasoning-umls", "reasoning-wn18rr")
"""Recipes whose data has to be given."""
BUNDLED = {"env": {"data": "countries_s1", "rules": None}}
"""Settings with which these recipes need none."""


def policy_of(recipe: str) -> tuple[Policy, Any]:
    """Return a policy of a recipe with random weights, and an environment for it."""
    torch.manual_seed(0)
    config = load_config(recipe, keywords=BUNDLED if recipe in NEED_DATA else None)
    training = config.training.model_copy(update={"curriculum": (), "compile": False})
    config = config.model_copy(update={"training": training, "device": "cpu"})
    policy = Builder(config, num_envs=1).algorithm.policy
    add_noise(policy)
    env = environment(config.env_name).load("env")(config.env, num_envs=WORLDS, seed=0, device="cpu")
    return policy, env


def add_noise(policy: Any) -> None:
    """Add noise to all weights, so that the outputs of a new policy depend on its inputs."""
    assert isinstance(policy, nn.Module)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=draw))


def measured(recipe: str) -> dict[str, Any]:
    """Write a policy of a recipe in both formats, and return sizes, differences and times."""
    policy, env = policy_of(recipe)
    function = as_function(policy, env)
    sizes = traced_sizes(function)
    example = function.sample(sizes, torch.Generator().manual_seed(0))
    program = trace(function, example)
    differences, times = {}, {}
    with tempfile.TemporaryDirectory() as folder, acting_in(policy, env):
        roots = observations(policy, env)
        for format in reversed(FORMATS):
            path = Path(folder) / f"policy.{format}"
            save(function, program, path, example=example)
            checked, latency = check(function, roots, path), measure(function, policy, roots[0][:1], path)
            assert not checked.differing_actions, f"{recipe}: {checked.differing_actions} other actions"
            differences[format] = checked.largest_difference
            times |= {"eager": latency.eager, format: latency.program}
    return {
        "traced": sizes,
        "tried": other_sizes(function),
        "difference": differences,
        "actions": checked.actions,
        "us": times,
    }


def row(recipe: str, found: dict[str, Any]) -> str:
    """Return a row of the table."""
    sizes = [" ".join(f"{size} {name}" for name, size in each.items()) for each in found["tried"]]
    traced = " ".join(f"{size} {name}" for name, size in found["traced"].items())
    differences = " / ".join(f"{found['difference'][name]:.0e}" for name in FORMATS)
    times = found["us"]
    return (
        f"| `{recipe}` | {traced} | {'; '.join(sizes)} | {differences} "
        f"| {times['eager']:.0f} | {times['onnx']:.0f} | {times['pt2']:.0f} |"
    )


def main() -> None:
    """Print the table, and optionally write its figures to a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="recipes; all if none is named")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="one recipe of each environment")
    options = parser.parse_args()
    torch.set_num_threads(1)
    recipes = options.recipes or [name for name in plugins.recipes() if name not in NEED_DATA]
    if options.quick:
        recipes = list({name.partition("-")[0]: name for name in reversed(recipes)}.values())
    print("| recipe | traced | also tried | difference onnx / pt2 | us eager | us onnx | us pt2 |")
    print("|---|---|---|---|---|---|---|", flush=True)
    figures = {}
    for recipe in recipes:
        figures[recipe] = measured(recipe)
        print(row(recipe, figures[recipe]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
