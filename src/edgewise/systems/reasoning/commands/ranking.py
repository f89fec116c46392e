"""The ranking mode of `edgewise eval`: rank candidates by proofs, by embeddings or by both."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.terminal.console import Console, table
from edgewise.terminal.parser import Parser, whole_number

if TYPE_CHECKING:
    from edgewise.systems.reasoning.evaluation.rank import Ranking

FLAG = "--mode"
ENVIRONMENTS = ("reasoning",)
MEANING = "ranks candidates of knowledge graphs"
PLAYS_NO_EPISODES = "ranks candidates and plays no episodes"
MODES = ("rl", "kge", "hybrid", "oracle")
FIGURES = ("mrr", "hits@1", "hits@3", "hits@10", "auc_pr")
OPTIONS = ("negatives", "queries", "kge", "beam", "depth", "oracle_depth")
"""Options of ranking only; an option that was not given is absent from the namespace."""
EXPLAINED = {
    "rl": "policy with beam search",
    "greedy": "policy, most probable step only",
    "kge": "embeddings",
    "hybrid": "embeddings and proofs, weights fitted on the validation split",
    "chance": "uniform policy with the same beam search",
    "oracle": "exhaustive search, shorter proofs first",
}


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ranking."""
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="knowledge graphs only: rank candidates by this method; others are shown too",
    )
    parser.add_argument(
        "--negatives",
        type=count,
        default=SUPPRESS,
        metavar="N",
        help="false candidates per query and side, or `all` (100)",
    )
    parser.add_argument(
        "--queries",
        type=count,
        default=SUPPRESS,
        metavar="N",
        help="number of test queries, or `all` (500)",
    )
    parser.add_argument(
        "--kge",
        default=SUPPRESS,
        metavar="FOLDER",
        help="folder of embeddings written by `edgewise kge`; that of the run if not given",
    )
    parser.add_argument(
        "--beam",
        type=whole_number(1),
        default=SUPPRESS,
        metavar="N",
        help="beam width: goals kept per query (32)",
    )
    parser.add_argument(
        "--depth",
        type=whole_number(1),
        default=SUPPRESS,
        metavar="N",
        help="maximum number of steps of a proof; as in the run if not given",
    )
    parser.add_argument(
        "--oracle-depth",
        type=whole_number(1),
        default=SUPPRESS,
        metavar="N",
        help="maximum number of steps of the exhaustive search (2)",
    )


def is_requested(options: Namespace) -> bool:
    """Return whether the command line requests this mode."""
    return options.mode is not None


def given(options: Namespace) -> dict[str, Any]:
    """Return the options of ranking that were given."""
    return {name: getattr(options, name) for name in OPTIONS if hasattr(options, name)}


def count(text: str) -> int | None:
    """Parse a positive integer, or `all` as None."""
    if text == "all":
        return None
    try:
        return whole_number(1)(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}, or all") from None


def run(options: Namespace, console: Console) -> int:
    """Rank the candidates of one run and show all methods, the requested one first."""
    from edgewise.systems.reasoning.evaluation.rank import RankOptions, rank_run

    if len(options.runs) > 1:
        raise ConfigError("ranking takes one run at a time", hint="give one run folder")
    chosen = RankOptions(**given(options), seed=options.seed or 0)
    found = rank_run(options.runs[0], options.mode, chosen, which=options.checkpoint)
    console.show(_data(found), _text(found))
    return 0


def _data(found: Ranking) -> dict[str, Any]:
    return {
        "lists": found.lists,
        "candidates": found.candidates,
        "ranked": {one.name: one.figures for one in found.ranked},
        "proofs": found.proofs,
        "fusion": None
        if found.fusion is None
        else dict(zip(found.fusion.names, found.fusion.weights, strict=True)),
        "gain": None if found.gain is None else [found.gain.estimate, found.gain.low, found.gain.high],
    }


def _text(found: Ranking) -> str:
    rows = [
        [one.name, *(f"{one.figures[name]:.4f}" for name in FIGURES), EXPLAINED[one.name]]
        for one in found.ranked
    ]
    parts = [
        f"{found.candidates:,} candidates in {found.lists:,} lists, filtered; ties count half",
        table(["by", *FIGURES, "method"], rows),
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
    if found.fusion is not None and found.gain is not None:
        weights = ", ".join(
            f"{name} {weight:.3g}"
            for name, weight in zip(found.fusion.names, found.fusion.weights, strict=True)
        )
        parts.append(
            f"hybrid weights, fitted on {found.fusion.fitted_on:,} lists of the validation split: {weights}"
        )
        gain = found.gain
        parts.append(
            f"MRR of hybrid minus embeddings: {gain.estimate:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        )
    return "\n\n".join(parts)
