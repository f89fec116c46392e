"""`edgewise explain`: show a proof of one query by a trained policy, as a tree of rules and facts."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.errors import ConfigError
from edgewise.experiments.load import load_config
from edgewise.terminal.console import Console
from edgewise.terminal.machine import prepare
from edgewise.terminal.parser import Parser, whole_number

if TYPE_CHECKING:
    from edgewise.systems.reasoning.env import ReasoningEnv
    from edgewise.systems.reasoning.evaluation.explanation import Explanation


def configure(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.usage = 'edgewise explain RUN "predicate(head,tail)" [options]'
    parser.add_argument("run", metavar="RUN", type=Path, help="run folder of a reasoning recipe")
    parser.add_argument("query", metavar="QUERY", help='atom to prove, such as "locatedInCR(oman,asia)"')
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
    parser.examples('edgewise explain runs/reasoning-countries-1 "locatedInCR(palau,oceania)"')


def run(options: Namespace, console: Console) -> int:
    """Search for a proof and show it; the exit code is 0 whether or not there is one."""
    from edgewise.training.run_folder import RunFolder

    config = load_config(RunFolder(options.run).config_file)
    if config.env_name != "reasoning":
        raise ConfigError(f"{options.run} is a run of {config.env_name}, which proves nothing")
    prepare(threads=options.threads)
    from edgewise.systems.reasoning.evaluation.rank import explain_query

    env, found = explain_query(
        options.run, options.query, beam=options.beam, depth=options.depth, which=options.checkpoint
    )
    console.show(_data(options.query, env, found), _text(options.query, env, found))
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
