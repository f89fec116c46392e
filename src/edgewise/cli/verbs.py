"""The verbs of the command line: the generic ones by group, and those of each system."""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.plugins import System, Verb


def _verb(name: str, summary: str) -> Verb:
    return Verb(name, summary, f"edgewise.cli.{name}")


GROUPS: Mapping[str, tuple[Verb, ...]] = {
    "train": (
        Verb(
            "train",
            "train a recipe, an environment or a config file; write a run folder",
            "edgewise.cli.train",
        ),
        _verb("resume", "continue a run from its last checkpoint"),
        _verb("sweep", "tune hyperparameters with Optuna; prunes and resumes"),
        Verb(
            "benchmark",
            "train algorithms in environments with seeds, and compare them",
            "edgewise.cli.benchmark",
        ),
    ),
    "evaluate": (
        Verb(
            "eval", "evaluate runs on fixed instances, with baselines and over settings", "edgewise.cli.eval"
        ),
        _verb("baseline", "evaluate hand-written policies of an environment"),
        _verb("arena", "play matches between players of a game, and rate them"),
        Verb(
            "play", "play a game against a policy in the browser, or watch two of them", "edgewise.cli.play"
        ),
        _verb("report", "write the report of a run, or of several side by side"),
        _verb("render", "draw an episode as a picture or an animation: SVG, PNG, GIF, MP4"),
    ),
    "share": (
        Verb(
            "export", "write a policy for other programs, as ONNX or for torch.export", "edgewise.cli.export"
        ),
        _verb("pack", "write a policy as a small folder with a card, to hand on"),
        _verb("hub", "push a packed policy to the Hugging Face hub, or pull one"),
        _verb("verify", "check every checkpoint and file of a run"),
        _verb("zoo", "list the policies that come with edgewise, or show the card of one"),
    ),
    "look up": (
        _verb("envs", "list, show or check environments"),
        _verb("recipes", "list, show or check recipes"),
        _verb("doctor", "show versions, devices, threads, compiler and disk space"),
        _verb("completion", "write a script for completion in bash, zsh or fish"),
    ),
}
"""The verbs that `edgewise --help` lists."""

BENCH = _verb("bench", "run benchmarks of this source tree")
"""Works in a source tree alone, so the overview leaves it out."""

GENERIC = {verb.name: verb for verb in (*(verb for group in GROUPS.values() for verb in group), BENCH)}
"""Every generic verb by name."""


def overview(systems: Mapping[str, object]) -> str:
    """Return the help text of the program, with the names of systems that have verbs of their own."""
    width = max(map(len, GENERIC))
    listed = "\n".join(
        f"{group}:\n" + "\n".join(f"  {verb.name.ljust(width)}  {verb.summary}" for verb in verbs)
        for group, verbs in GROUPS.items()
    )
    return f"""usage: edgewise VERB ...

Reinforcement learning on graphs: train, evaluate and inspect policies.

{listed}
systems with verbs of their own: {", ".join(systems)}

examples:
  edgewise train graphwalk-ppo
  edgewise train graphwalk-ppo --total-frames 2e5 --seed 3
  edgewise eval runs/graphwalk-ppo-1 --num-nodes 8,16,32
  edgewise train my_env.py --algorithm ppo

`edgewise VERB --help` explains a verb; `edgewise train RECIPE --help` lists every setting of a recipe;
`edgewise SYSTEM --help` lists the verbs of a system. Every verb takes --json, and --plugin FILE_OR_MODULE
for code of your own. Exit codes: 0 success, 2 invalid config or data, 3 invalid checkpoint, 4 a number was
not finite, 5 a process of the run died, 130 interrupted."""


def system_overview(system: System) -> str:
    """Return the help text of a system: its verbs, environments and recipes."""
    width = max((len(verb.name) for verb in system.verbs), default=0)
    verbs = "\n".join(f"  {verb.name.ljust(width)}  {verb.summary}" for verb in system.verbs)
    return f"""usage: edgewise {system.name} VERB ...

verbs:
{verbs or "  none"}

environments: {", ".join(system.environments) or "none"}
recipes: {", ".join(system.recipes) or "none"}

`edgewise {system.name} VERB --help` explains a verb."""
