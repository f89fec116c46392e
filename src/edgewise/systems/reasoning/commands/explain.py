"""`edgewise reasoning explain`: show how a trained policy proves one query, or write a page with many."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.experiments.load import load_config
from edgewise.runs.zoo import beside, run_path
from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number

if TYPE_CHECKING:
    from edgewise.systems.reasoning.env import ReasoningEnv
    from edgewise.systems.reasoning.evaluation.explanation import Explanation


def configure(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.usage = (
        'edgewise reasoning explain RUN "predicate(head,tail)" [options]\n'
        "       edgewise reasoning explain RUN --all [options]"
    )
    parser.add_argument(
        "run", metavar="RUN", type=run_path, help="run folder of a reasoning recipe, or zoo:NAME"
    )
    parser.add_argument(
        "query", metavar="QUERY", nargs="?", help='atom to prove, such as "locatedInCR(oman,asia)"'
    )
    parser.add_argument(
        "--all", action="store_true", help="write a page with proofs of sampled test queries instead"
    )
    parser.add_argument(
        "--queries", type=whole_number(1), default=20, metavar="N", help="number of sampled test atoms (20)"
    )
    parser.add_argument(
        "--seed", type=whole_number(0), default=0, metavar="N", help="random seed of the sample (0)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="page to write (RUN-explanations.html beside the run)"
    )
    parser.add_argument(
        "--beam", type=whole_number(1), default=32, metavar="N", help="beam width: goals kept per step (32)"
    )
    parser.add_argument(
        "--depth",
        type=whole_number(1),
        metavar="N",
        help="maximum number of steps; as in the run if not given",
    )
    parser.add_argument(
        "--checkpoint", choices=["best", "latest"], default="best", help="checkpoint to load (best)"
    )
    parser.add_threads()
    parser.examples(
        'edgewise reasoning explain runs/reasoning-countries-1 "locatedInCR(palau,oceania)"',
        "edgewise reasoning explain runs/reasoning-countries-1 --all --queries 50",
    )


def run(options: Namespace, console: Console) -> int:
    """Search for a proof and show it; the exit code is 0 whether or not there is one."""
    from edgewise.runs.folder import RunFolder

    config = load_config(RunFolder(options.run).config_file)
    if config.env_name != "reasoning":
        raise ConfigError(f"{options.run} is a run of {config.env_name}, which proves nothing")
    if (options.query is None) != options.all:
        raise ConfigError("give either a query or --all", hint='such as "locatedInCR(oman,asia)"')
    prepare(threads=options.threads)
    if options.all:
        return _write_page(options, console)
    from edgewise.systems.reasoning.evaluation.rank import explain_query

    env, found = explain_query(
        options.run, options.query, beam=options.beam, depth=options.depth, which=options.checkpoint
    )
    console.show(_data(options.query, env, found), _text(options.query, env, found))
    return 0


def _write_page(options: Namespace, console: Console) -> int:
    """Explain a sample of test queries and write the page."""
    from edgewise.systems.reasoning.evaluation.explanation_page import explain_sample, page

    run: Path = options.run
    file: Path = options.out or beside(run, f"{run.name}-explanations.html")
    env, explained = explain_sample(
        run,
        queries=options.queries,
        beam=options.beam,
        depth=options.depth,
        seed=options.seed,
        which=options.checkpoint,
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page(f"Proofs over {env.dataset.name}", explained, beam=options.beam), "utf-8")
    except OSError as error:
        raise ConfigError(f"--out: {file} cannot be written: {error.strerror}") from error
    right = sum(one.rank == 1 for one in explained)
    data = {"file": str(file), "questions": len(explained), "right": right}
    console.show(data, f"{len(explained)} questions, {right} with the true answer first: {file}")
    return 0


def _data(query: str, env: ReasoningEnv, found: Explanation | None) -> dict[str, Any]:
    if found is None:
        return {"query": query, "proved": False}
    words = env.dataset.vocabulary
    return {
        "query": query,
        "proved": True,
        "probabilities": list(found.probabilities),
        "expanded": found.expanded,
        "goals": [[words.text(atom) for atom in goal] for goal in found.derivation.states],
        "tree": found.derivation.tree.text(env.dataset).splitlines(),
    }


def _text(query: str, env: ReasoningEnv, found: Explanation | None) -> str:
    if found is None:
        return f"no proof of {query} was found; try a larger --beam or --depth"
    steps = " x ".join(f"{probability:.3f}" for probability in found.probabilities)
    tree = found.derivation.tree.text(env.dataset)
    return f"{tree}\n\n{found.expanded} goals expanded; step probabilities of the policy: {steps}"
