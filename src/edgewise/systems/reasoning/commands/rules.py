"""`edgewise reasoning rules`: rank all entities by a rule file, with embeddings and proofs, or convert it."""

from __future__ import annotations

import time
from argparse import ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.runs.zoo import run_path
from edgewise.systems.reasoning.commands.rank import count
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number

if TYPE_CHECKING:
    from edgewise.systems.reasoning.evaluation.all_entities import AllEntities
    from edgewise.systems.reasoning.evaluation.entity_proofs import EntityProofs
    from edgewise.systems.reasoning.knowledge.dataset import Dataset

BEAM = 4
SHOWN = ("mrr", "hits@1", "hits@3", "hits@10", "mrr_head", "mrr_tail")
METHODS = ("greatest", "noisy_or", "non_redundant")
EXPLAINED = {
    "greatest": "greatest confidence, ties by the next ones",
    "noisy_or": "noisy-or of all rules",
    "non_redundant": "noisy-or of clusters of similar rules, fitted on validation atoms",
    "kge": "embeddings",
    "rl": "proofs of the policy",
    "chance": "proofs of a uniform policy with the same beam",
    "hybrid": "embeddings and rules, weights fitted on validation atoms",
    "hybrid_rl": "the same with proofs of the policy",
    "hybrid_chance": "the same with proofs of the uniform policy",
}


def configure(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.usage = (
        "edgewise reasoning rules FOLDER FILE [--kge FOLDER] [--policy RUN] [--to FORMAT --out FILE]"
    )
    parser.add_argument(
        "data",
        metavar="FOLDER",
        help="folder with train.txt, valid.txt and test.txt, or the name of data in the package",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="rule file of edgewise, AnyBURL, AMIE or Prolog; by path or in the folder",
    )
    parser.add_argument("--split", default="test", choices=("valid", "test"), help="split to rank (test)")
    parser.add_argument(
        "--queries", type=count, default=None, metavar="N", help="number of atoms of the split (all)"
    )
    parser.add_argument(
        "--methods",
        type=methods,
        default=METHODS,
        metavar="A,B",
        help=f"ways to join the rules of a candidate: {', '.join(METHODS)} (all)",
    )
    parser.add_argument(
        "--kge",
        metavar="FOLDER",
        help="embeddings of `edgewise reasoning kge`: rank by them too, and by both",
    )
    parser.add_argument(
        "--policy",
        type=run_path,
        metavar="RUN",
        help="run folder on this data, or zoo:NAME: rank by its proofs, and with --kge by all together",
    )
    parser.add_argument(
        "--beam",
        type=whole_number(1),
        metavar="N",
        help=f"goals that a search for proofs keeps per entity ({BEAM}); with --policy",
    )
    parser.add_argument(
        "--to",
        choices=("edgewise", "anyburl", "amie", "prolog"),
        help="write the rules in this format to --out instead of ranking",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="rule file to write")
    parser.add_argument(
        "--seed", type=whole_number(0), default=0, metavar="N", help="random seed of the samples (0)"
    )
    parser.add_threads()
    parser.examples(
        "edgewise reasoning rules data/umls data/umls/rules_mined.txt",
        "edgewise reasoning rules data/wn18rr rules-wn18rr.txt --kge runs/kge-wn18rr-complex",
        "edgewise reasoning rules data/umls rules.txt --kge runs/kge-umls-complex --policy runs/mined-umls",
        "edgewise reasoning rules data/umls rules.anyburl --to edgewise --out data/umls/rules_anyburl.txt",
    )


def methods(text: str) -> tuple[str, ...]:
    """Parse names of methods that are separated by commas."""
    names = tuple(text.split(","))
    for name in names:
        if name not in METHODS:
            raise ArgumentTypeError(f"got {name}, expected one of {', '.join(METHODS)}")
    return names


def run(options: Namespace, console: Console) -> int:
    """Rank, or convert."""
    if (options.to is None) != (options.out is None):
        raise ConfigError("--to and --out belong together", hint="give both, or neither to rank")
    if options.beam is not None and options.policy is None:
        raise ConfigError("--beam is the beam of a policy", hint="give its run as --policy")
    prepare(threads=options.threads)
    return _rank(options, console) if options.to is None else _convert(options, console)


def _convert(options: Namespace, console: Console) -> int:
    from edgewise.systems.reasoning.knowledge.dataset import load_dataset
    from edgewise.systems.reasoning.knowledge.rule_files import write_rules

    if options.out.exists():
        raise ConfigError(f"{options.out} exists", hint="give another --out")
    dataset = load_dataset(options.data, rules=options.file)
    write_rules(options.out, dataset.rules, dataset.vocabulary, format=options.to)
    data = {"rules": len(dataset.rules), "format": options.to, "file": str(options.out)}
    console.show(data, f"{len(dataset.rules):,} rules in the format of {options.to}: {options.out}")
    return 0


def _rank(options: Namespace, console: Console) -> int:
    import torch

    from edgewise.systems.reasoning.embeddings.store import load_kge
    from edgewise.systems.reasoning.evaluation.all_entities import num_questions, rank_all_entities
    from edgewise.systems.reasoning.evaluation.rule_ranking import RuleScorer
    from edgewise.systems.reasoning.knowledge.dataset import load_dataset
    from edgewise.training.logging.progress import make_progress

    dataset = load_dataset(options.data, rules=options.file)
    embedding = None if options.kge is None else load_kge(options.kge, vocabulary=dataset.vocabulary)
    atoms = dataset.split(options.split)
    if options.queries is not None and options.queries < len(atoms):
        order = torch.randperm(len(atoms), generator=torch.Generator().manual_seed(options.seed))
        atoms = atoms[order[: options.queries].sort().values]
    provers = _provers(options, dataset)
    began, done, reporter = time.process_time(), 0, make_progress(unit="questions")

    def progress(answered: int) -> None:
        nonlocal done
        done += answered
        reporter.update(done, {})

    scorer = RuleScorer(dataset)
    questions = num_questions(dataset, atoms, fitted=embedding is not None)
    reporter.start(0, questions, f"rank {dataset.name}")
    try:
        found = rank_all_entities(
            dataset,
            atoms,
            scorer=scorer,
            embedding=embedding,
            provers=provers,
            methods=options.methods,
            seed=options.seed,
            progress=progress,
        )
    finally:
        reporter.close()
    about = {
        "dataset": dataset.name,
        "split": options.split,
        "atoms": len(atoms),
        "rules": len(dataset.rules),
        "rules_left_out": len(scorer.book.left_out),
        "cpu_seconds": round(time.process_time() - began, 2),
        "searches": {
            name: {"entities": one.searched, "goals": one.expanded, "beam": one.beam}
            for name, one in provers.items()
        },
    }
    console.show({**about, **_data(found)}, _text(about, found))
    return 0


def _provers(options: Namespace, dataset: Dataset) -> dict[str, EntityProofs]:
    from edgewise.systems.reasoning.evaluation.entity_proofs import entity_proofs_of_run

    if options.policy is None:
        return {}
    beam = options.beam or BEAM
    return entity_proofs_of_run(
        options.policy, dataset=dataset, beam=beam, kge=options.kge, seed=options.seed
    )


def _data(found: AllEntities) -> dict[str, Any]:
    return {
        "figures": {name: ranks.metrics() for name, ranks in found.ranks.items()},
        "differences": {
            f"{first} - {second}": {"difference": one.estimate, **one.ends()}
            for (first, second), one in found.differences.items()
        },
        "fusion": {name: one.by_name for name, one in found.fusions.items()},
        "ranking": {"candidates": "all entities, filtered", "sides": "both", "ties": "mean rank"},
    }


def _text(about: dict[str, Any], found: AllEntities) -> str:
    rows = []
    for name, ranks in found.ranks.items():
        figures = ranks.metrics()
        rows.append([name, *(f"{figures[column]:.4f}" for column in SHOWN), EXPLAINED[name]])
    left_out = about["rules_left_out"]
    used = f", {left_out:,} of other shapes left out" if left_out else ""
    parts = [
        f"{about['dataset']}, {about['atoms']:,} atoms of the {about['split']} split;"
        f" {about['rules']:,} rules{used}; {about['cpu_seconds']:.1f} CPU-seconds",
        table(["by", *SHOWN, "method"], rows),
        "(ranks among all entities without other true answers, both sides; ties get their mean rank)",
        table(
            ["MRR of", "minus", "difference and 95 % interval"],
            [[first, second, one.text("+.4f")] for (first, second), one in found.differences.items()],
        ),
    ]
    for name, search in about["searches"].items():
        parts.append(
            f"{name}: {search['entities']:,} searches of entities that a rule of the policy concludes,"
            f" {search['goals'] / max(1, search['entities']):.1f} goals each with a beam of {search['beam']}"
        )
    for name, fusion in found.fusions.items():
        parts.append(f"{name} weights, fitted on {fusion.fitted_on:,} validation lists: {fusion}")
    return "\n\n".join(parts)
