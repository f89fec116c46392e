"""`edgewise reasoning prove`: search exhaustively for proofs of true and false queries."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number

if TYPE_CHECKING:
    from torch import Tensor

    from edgewise.systems.reasoning.engine.oracle import Search
    from edgewise.systems.reasoning.knowledge.dataset import Dataset


def configure(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "data",
        metavar="FOLDER",
        help="folder with train.txt, valid.txt, test.txt and rules, or the name of data in the package",
    )
    parser.add_argument(
        "--depth", type=whole_number(1), default=2, metavar="N", help="maximum number of steps of a proof (2)"
    )
    parser.add_argument("--rules", metavar="FILE", help="rule file in the folder (rules.txt)")
    parser.add_argument(
        "--split", default="test", choices=("train", "valid", "test"), help="split of the queries (test)"
    )
    parser.add_argument(
        "--cap", type=whole_number(1), default=2000, metavar="N", help="maximum successors of a goal (2000)"
    )
    parser.add_argument(
        "--atoms", type=whole_number(1), default=6, metavar="N", help="maximum atoms of a goal (6)"
    )
    parser.add_argument(
        "--negatives", type=whole_number(0), default=1, metavar="N", help="false queries per true one (1)"
    )
    parser.add_argument(
        "--corrupt", default="both", choices=("head", "tail", "both"), help="argument to replace (both)"
    )
    parser.add_argument("--query", metavar="ATOM", help="show a shortest proof of this atom instead")
    parser.add_argument(
        "--seed", type=whole_number(0), default=0, metavar="N", help="random seed of the false queries (0)"
    )
    parser.add_threads()
    parser.examples(
        "edgewise reasoning prove countries_s3 --depth 4",
        "edgewise reasoning prove data/family --depth 2 --negatives 10",
        "edgewise reasoning prove data/wn18rr --rules rules_custom_recall_sorted.txt --cap 2000",
        'edgewise reasoning prove countries_s3 --depth 4 --query "locatedInCR(zambia,africa)"',
    )


def run(options: Namespace, console: Console) -> int:
    """Search, and show the shares of proved queries by number of steps."""
    prepare(threads=options.threads)
    from edgewise.systems.reasoning.knowledge.dataset import load_dataset

    dataset = load_dataset(options.data, rules=options.rules)
    if not dataset.rules:
        raise ConfigError(f"{dataset.name} has no rules to prove with", hint="name a rule file with --rules")
    show = _search if options.query is None else _show_proof
    return show(dataset, options, console)


def _show_proof(dataset: Dataset, options: Namespace, console: Console) -> int:
    from edgewise.systems.reasoning.engine.proof import prove

    query = dataset.vocabulary.atom(options.query)
    found = prove(dataset, query, depth=options.depth, max_atoms=options.atoms, cap=options.cap)
    if found is None:
        none = {"query": options.query, "steps": None}
        console.show(none, f"no proof of {options.query} in {options.depth} steps")
        return 0
    text = dataset.vocabulary.text
    goals = [[text(atom) for atom in goal] for goal in found.states]
    data = {"query": options.query, "steps": len(found.origins), "goals": goals}
    console.show(data, found.tree.text(dataset))
    return 0


def _search(dataset: Dataset, options: Namespace, console: Console) -> int:
    from edgewise.systems.reasoning.engine.oracle import search
    from edgewise.systems.reasoning.engine.program import Program

    program = Program.of(dataset, max_atoms=options.atoms)
    true = dataset.split(options.split)
    queries = {"positives": true, "negatives": _false(dataset, true, options)}
    figures = {
        kind: _figures(search(program, queries, depth=options.depth, cap=options.cap), options.depth)
        for kind, queries in queries.items()
        if len(queries)
    }
    about = {
        "data": dataset.name,
        "split": options.split,
        "facts": len(program.facts),
        "rules": len(dataset.rules),
        "depth": options.depth,
        "cap": options.cap,
    }
    console.show({**about, **figures}, _text(about, figures))
    return 0


def _false(dataset: Dataset, true: Tensor, options: Namespace) -> Tensor:
    """Sample false queries that are in no split."""
    import torch

    from edgewise.systems.reasoning.corruption import Corruption

    generator = torch.Generator().manual_seed(options.seed)
    queries = true.repeat_interleave(options.negatives, 0)
    drawn, found = Corruption.of(dataset).draw(queries, side=options.corrupt, generator=generator)
    return drawn[found]


def _figures(found: Search, depth: int) -> dict[str, Any]:
    steps = {str(step): int((found.depth == step).sum()) for step in range(1, depth + 1)}
    proved, queries = int(found.proved.sum()), len(found.depth)
    return {
        "queries": queries,
        "proved": proved,
        "share": proved / queries,
        "by_steps": steps,
        "goals_expanded": int(found.nodes.sum()),
        "cut_short": int(found.truncated.sum()),
    }


def _text(about: dict[str, Any], figures: dict[str, dict[str, Any]]) -> str:
    header = ["queries", "of", *(f"in {step}" for step in range(1, about["depth"] + 1)), "proved"]
    rows = [
        [
            kind,
            part["queries"],
            *(f"{number / part['queries']:.2%}" for number in part["by_steps"].values()),
            f"{part['share']:.2%}",
            part["goals_expanded"],
            part["cut_short"],
        ]
        for kind, part in figures.items()
    ]
    title = "{data}, {split}: {facts} facts, {rules} rules, at most {depth} steps, cap {cap}".format(**about)
    return f"{title}\n{table([*header, 'goals expanded', 'truncated'], rows)}"
