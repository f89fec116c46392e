"""The verbs of the command line: a verb is one file in this folder and one line here."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from edgewise.cli.console import Console
from edgewise.cli.parser import Parser


class VerbModule(Protocol):
    """What a verb's file holds."""

    def configure(self, parser: Parser) -> None:
        """Says what the verb takes."""

    def run(self, options: Namespace, console: Console) -> int:
        """Does it, and returns the exit code."""


@dataclass(frozen=True)
class Verb:
    """One verb: its name, what it does in a line, and the module that does it, imported when it is called."""

    name: str
    summary: str
    module: str

    def load(self) -> VerbModule:
        """The module."""
        return cast(VerbModule, import_module(self.module))


VERBS = {
    verb.name: verb
    for verb in (
        Verb("train", "train a recipe or a config file, to a folder with a report", "edgewise.cli.train"),
        Verb("resume", "continue a run where its last checkpoint left it", "edgewise.cli.resume"),
        Verb("eval", "measure runs on fixed instances, beside baselines, over sizes", "edgewise.cli.eval"),
        Verb("arena", "let players of a game meet, and rate them", "edgewise.cli.arena"),
        Verb("baseline", "measure hand-written policies of an environment", "edgewise.cli.baseline"),
        Verb("kge", "train and measure embeddings of a knowledge graph", "edgewise.cli.kge"),
        Verb("prove", "search for proofs in a knowledge graph, exhaustively", "edgewise.cli.prove"),
        Verb("explain", "show how a trained prover proves a query", "edgewise.cli.explain"),
        Verb(
            "oracle", "solve a small instance exactly, to know what could be reached", "edgewise.cli.oracle"
        ),
        Verb("export", "write a policy of robots as a program and as weights", "edgewise.cli.export"),
        Verb("report", "write the page of a run, or of several side by side", "edgewise.cli.report"),
        Verb("envs", "list, show or check environments", "edgewise.cli.envs"),
        Verb("recipes", "list, show or check recipes", "edgewise.cli.recipes"),
        Verb("bench", "run benchmarks of this source tree", "edgewise.cli.bench"),
        Verb("doctor", "look at versions, devices, threads, compiler and disk", "edgewise.cli.doctor"),
    )
}
