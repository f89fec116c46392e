"""The verbs of the command line: the generic ones listed here, and those that systems declare."""

from __future__ import annotations

from edgewise import plugins
from edgewise.plugins import Verb

GENERIC = (
    Verb(
        "train", "train a recipe or a config file, and write a run folder with a report", "edgewise.cli.train"
    ),
    Verb("sweep", "search settings by many runs, stopped early and continued at will", "edgewise.cli.sweep"),
    Verb(
        "benchmark", "train algorithms in environments with seeds, and compare them", "edgewise.cli.benchmark"
    ),
    Verb("resume", "continue a run from its last checkpoint", "edgewise.cli.resume"),
    Verb("verify", "check every checkpoint and file of a run", "edgewise.cli.verify"),
    Verb("eval", "evaluate runs on fixed instances, with baselines and over settings", "edgewise.cli.eval"),
    Verb("arena", "play matches between players of a game, and rate them", "edgewise.cli.arena"),
    Verb("play", "play a game against a policy in the browser, or watch two of them", "edgewise.cli.play"),
    Verb("baseline", "evaluate hand-written policies of an environment", "edgewise.cli.baseline"),
    Verb("zoo", "list the policies that come with edgewise, or show the card of one", "edgewise.cli.zoo"),
    Verb("pack", "write a policy as a small folder with a card, to hand on", "edgewise.cli.pack"),
    Verb("export", "write a policy for other programs, as ONNX or for torch.export", "edgewise.cli.export"),
    Verb("report", "write the report of a run, or of several side by side", "edgewise.cli.report"),
    Verb("envs", "list, show or check environments", "edgewise.cli.envs"),
    Verb("recipes", "list, show or check recipes", "edgewise.cli.recipes"),
    Verb("bench", "run benchmarks of this source tree", "edgewise.cli.bench"),
    Verb("doctor", "show versions, devices, threads, compiler and disk space", "edgewise.cli.doctor"),
)


def verbs() -> dict[str, Verb]:
    """Return every verb by name, generic ones first."""
    generic = {verb.name: verb for verb in GENERIC}
    return generic | {name: verb for name, verb in plugins.verbs().items() if name not in generic}
