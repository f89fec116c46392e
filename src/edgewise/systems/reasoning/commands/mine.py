"""`edgewise reasoning mine`: mine rules with confidences from the training atoms of a knowledge graph."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.config.loading import resolve
from edgewise.config.settings import from_flags
from edgewise.systems.reasoning.mining.config import MiningConfig
from edgewise.terminal.console import Console, table
from edgewise.terminal.fields import fields_help
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser

if TYPE_CHECKING:
    from edgewise.systems.reasoning.knowledge.dataset import Dataset
    from edgewise.systems.reasoning.mining.miner import Mined, Progress
    from edgewise.training.logging.progress import ProgressReporter

SHOWN = 5
"""Rules that are shown."""


def configure(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.takes_settings = True
    parser.details = _details
    parser.usage = "edgewise reasoning mine FOLDER [--out FILE] [options] [--SETTING VALUE ...]"
    parser.add_argument(
        "data",
        metavar="FOLDER",
        help="folder with train.txt, valid.txt and test.txt, or the name of data in the package",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="rule file to write (runs/rules-FOLDER.txt)")
    parser.add_argument(
        "--format",
        choices=("edgewise", "anyburl", "amie", "prolog"),
        default="edgewise",
        help="format of the rule file (edgewise)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite the rule file if it exists")
    parser.add_threads()
    parser.examples(
        "edgewise reasoning mine data/umls --out data/umls/rules_mined.txt",
        "edgewise reasoning mine data/fb15k-237 --minutes 20 --jobs 4",
        "edgewise reasoning rules data/umls data/umls/rules_mined.txt",
    )


def run(options: Namespace, console: Console) -> int:
    """Mine rules, write them, and show how many there are."""
    config = resolve(MiningConfig, [from_flags(MiningConfig, options.settings)])
    prepare(threads=options.threads)
    from edgewise.systems.reasoning.knowledge.dataset import NO_RULES, load_dataset
    from edgewise.systems.reasoning.knowledge.rule_files import write_rules
    from edgewise.systems.reasoning.mining.miner import mine
    from edgewise.training.logging.progress import make_progress

    dataset = load_dataset(options.data, rules=NO_RULES).with_facts_in_training()
    file: Path = options.out or Path("runs") / f"rules-{dataset.name}.txt"
    if file.exists() and not options.force:
        raise ConfigError(f"{file} exists", hint="give another --out, or --force to overwrite it")
    words, reporter = dataset.vocabulary, make_progress(unit="bodies")
    began = time.process_time()
    try:
        mined = mine(
            dataset.train.numpy(),
            num_predicates=words.num_predicates,
            num_entities=words.num_entities,
            config=config,
            progress=_shown(reporter, f"mine {dataset.name}"),
        )
    finally:
        reporter.close()
    if not mined.rules:
        raise ConfigError(
            f"no rule of {dataset.name} reaches support {config.min_support} and confidence"
            f" {config.min_confidence}",
            hint="lower --min-support or --min-confidence",
        )
    seconds = time.process_time() - began
    comments = [
        f"{len(mined.rules):,} rules from the {len(dataset.train):,} training atoms of {dataset.name},"
        " validation and test atoms unused",
        "weight: support / (conclusions + pessimism). The entities of a chain differ.",
        *(f"{name}: {value}" for name, value in config.to_plain().items()),
        *([] if mined.complete else [f"stopped by the time limit after {mined.bodies:,} bodies"]),
    ]
    write_rules(file, mined.rules, words, format=options.format, comments=comments)
    data = _data(mined, dataset, config, seconds)
    console.show({"file": str(file), **data}, _text(mined, dataset, data, file))
    return 0


def _shown(reporter: ProgressReporter, name: str) -> Progress:
    """Return a function that shows the progress of mining; the display starts with the first call."""
    started = False

    def show(done: int, total: int, rules: int) -> None:
        nonlocal started
        if not started:
            reporter.start(0, total, name)
            started = True
        reporter.update(done, {"rules": f"{rules:,}"})

    return show


def _data(mined: Mined, dataset: Dataset, config: MiningConfig, seconds: float) -> dict[str, Any]:
    kinds = {"chains of 1 atom": 0, "chains of 2 atoms": 0, "chains of 3 atoms": 0, "with constants": 0}
    for rule in mined.rules:
        first, second = rule.head[1:]
        closed = first < 0 and second < 0 and first != second
        length = len(rule.body)
        kinds[f"chains of {length} atom{'s' * (length > 1)}" if closed else "with constants"] += 1
    return {
        "dataset": dataset.name,
        "training_atoms": len(dataset.train),
        "rules": len(mined.rules),
        "kinds": kinds,
        "bodies": mined.bodies,
        "candidate_bodies": mined.candidates,
        "complete": mined.complete,
        "cpu_seconds": round(seconds, 2),
        "config": config.to_plain(),
    }


def _text(mined: Mined, dataset: Dataset, data: dict[str, Any], file: Path) -> str:
    limit = "" if mined.complete else f", stopped by --minutes {data['config']['minutes']:g}"
    children = " (without that of worker processes)" if data["config"]["jobs"] > 1 else ""
    head = (
        f"{dataset.name}: {data['rules']:,} rules from {data['training_atoms']:,} training atoms in"
        f" {data['cpu_seconds']:.1f} CPU-seconds{children};"
        f" {mined.bodies:,} of {mined.candidates:,} bodies counted{limit}"
    )
    kinds = table(["rules", "number"], [[name, f"{count:,}"] for name, count in data["kinds"].items()])
    best = "\n".join(f"  {rule.evidence}  {rule.text(dataset.vocabulary)}" for rule in mined.rules[:SHOWN])
    return f"{head}\n\n{kinds}\n\nmost confident:\n{best}\n\nrules: {file}"


def _details(arguments: Sequence[str]) -> str:
    del arguments
    return f"\n\nEvery setting is a flag:\n{fields_help(MiningConfig())}"
