"""`edgewise reasoning rank`: rank candidates by proofs, rules, embeddings or all of them."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.experiments.load import load_config
from edgewise.runs.zoo import run_path
from edgewise.terminal.console import Console, table
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number

if TYPE_CHECKING:
    from edgewise.evaluation.statistics import Interval
    from edgewise.systems.reasoning.evaluation.rank import Ranking

MODES = ("rl", "rules", "kge", "hybrid", "oracle")
FIGURES = ("mrr", "hits@1", "hits@3", "hits@10", "auc_pr")
SIDES = {"head": "heads alone", "tail": "tails alone", "both": "both sides"}
EXPLAINED = {
    "rl": "policy with beam search",
    "greedy": "policy, most probable step only",
    "rules": "greatest confidence of a rule, ties by the next ones",
    "kge": "embeddings",
    "hybrid": "embeddings, rules and proofs, weights fitted on the validation split",
    "confidence": "steps by the weights of their rules, with the same beam search",
    "chance": "uniform policy with the same beam search",
    "oracle": "exhaustive search, shorter proofs first",
}


def configure(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "run", metavar="RUN", type=run_path, help="run folder of a reasoning recipe, or zoo:NAME"
    )
    parser.add_argument(
        "--mode", choices=MODES, default="rl", help="method to show first; others are shown too (rl)"
    )
    parser.add_argument(
        "--negatives",
        type=count,
        default=100,
        metavar="N",
        help="false candidates per query and side, or `all` (100)",
    )
    parser.add_argument(
        "--queries", type=count, default=500, metavar="N", help="number of test queries, or `all` (500)"
    )
    parser.add_argument(
        "--kge",
        metavar="FOLDER",
        help="folder of embeddings written by `edgewise reasoning kge`",
    )
    parser.add_argument(
        "--beam",
        type=whole_number(1),
        default=32,
        metavar="N",
        help="beam width: goals kept per query (32)",
    )
    parser.add_argument(
        "--beams",
        type=widths,
        default=(),
        metavar="N,N",
        help="also show MRR against expanded goals for these beam widths, such as 1,4,16,64",
    )
    parser.add_argument(
        "--depth",
        type=whole_number(1),
        metavar="N",
        help="maximum number of steps of a proof; as in the run if not given",
    )
    parser.add_argument(
        "--oracle-depth",
        type=whole_number(1),
        default=2,
        metavar="N",
        help="maximum number of steps of the exhaustive search (2)",
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="checkpoint to load (best)"
    )
    parser.add_argument(
        "--seed", type=whole_number(0), default=0, metavar="N", help="random seed of the candidates (0)"
    )
    parser.add_threads()
    parser.examples(
        "edgewise reasoning rank runs/countries --negatives all --queries all",
        "edgewise reasoning rank runs/countries --mode hybrid --kge runs/kge",
        "edgewise reasoning rank runs/countries --beam 1 --beams 1,4,16,64",
    )


def count(text: str) -> int | None:
    """Parse a positive integer, or `all` as None."""
    if text == "all":
        return None
    try:
        return whole_number(1)(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}, or all") from None


def widths(text: str) -> tuple[int, ...]:
    """Parse beam widths that are separated by commas."""
    return tuple(whole_number(1)(part) for part in text.split(","))


def run(options: Namespace, console: Console) -> int:
    """Rank the candidates of one run and show all methods, the requested one first."""
    from edgewise.runs.folder import RunFolder

    config = load_config(RunFolder(options.run).config_file)
    if config.env_name != "reasoning":
        raise ConfigError(f"{options.run} is a run of {config.env_name}, which ranks no candidates")
    prepare(threads=options.threads)
    from edgewise.systems.reasoning.evaluation.rank import RankOptions, rank_run

    chosen = RankOptions(
        negatives=options.negatives,
        queries=options.queries,
        beam=options.beam,
        beams=options.beams,
        depth=options.depth,
        kge=options.kge,
        oracle_depth=options.oracle_depth,
        seed=options.seed,
    )
    found = rank_run(options.run, options.mode, chosen, which=options.checkpoint)
    console.show(_data(found), _text(found))
    return 0


def _data(found: Ranking) -> dict[str, Any]:
    return {
        "lists": found.lists,
        "candidates": found.candidates,
        "ranked": {one.name: one.figures for one in found.ranked},
        "proofs": found.proofs,
        "fusion": None if found.fusion is None else found.fusion.by_name,
        "gain": None if found.gain is None else _plain(found.gain),
        "differences": {
            f"{first} - {second}": _plain(one) for (first, second), one in found.differences.items()
        },
        "curve": [
            {
                "beam": point.beam,
                "mrr": point.mrr,
                "goals_per_candidate": point.goals,
                "gains": {name: _plain(one) for name, one in point.gains.items()},
            }
            for point in found.curve
        ],
        "ranking": {"split": found.split, "sides": found.sides, "ties": "count half"},
    }


def _text(found: Ranking) -> str:
    rows = [
        [one.name, *(f"{one.figures[name]:.4f}" for name in FIGURES), EXPLAINED[one.name]]
        for one in found.ranked
    ]
    parts = [
        f"{found.candidates:,} candidates in {found.lists:,} lists of the {found.split} split, filtered;"
        f" {SIDES[found.sides]}; ties count half",
        table(["by", *FIGURES, "method"], rows),
        table(
            ["MRR of", "minus", "difference and 95 % interval"],
            [[*pair, _interval(one)] for pair, one in found.differences.items()],
        ),
    ]
    proofs = [
        [
            name,
            f"{rates['positives']:.2%}",
            f"{rates['negatives']:.3%}",
            f"{rates['expanded_per_candidate']:.1f}",
            ", ".join(f"{depth}: {true:.1%}" for depth, (true, _) in rates["by_depth"].items()),
        ]
        for name, rates in found.proofs.items()
    ]
    heads = ["by", "positives proved", "negatives proved", "goals per candidate", "positives by steps"]
    parts.append(table(heads, proofs))
    if found.curve:
        parts.append(_curve_table(found))
    if found.fusion is not None and found.gain is not None:
        lists = f"{found.fusion.fitted_on:,} lists of the validation split"
        parts.append(f"hybrid weights, fitted on {lists}: {found.fusion}")
        parts.append(f"MRR of hybrid minus embeddings: {_interval(found.gain)}")
    return "\n\n".join(parts)


def _curve_table(found: Ranking) -> str:
    rows = [
        [
            point.beam,
            name,
            f"{point.mrr[name]:.4f}",
            f"{point.goals[name]:.1f}",
            _interval(point.gains[name]) if name in point.gains else "",
        ]
        for point in found.curve
        for name in point.mrr
    ]
    return table(["beam", "by", "mrr", "goals per candidate", "rl minus this"], rows)


def _plain(one: Interval) -> dict[str, float | int | None]:
    return {"difference": one.estimate, **one.ends()}


def _interval(one: Interval) -> str:
    return one.text("+.4f")
