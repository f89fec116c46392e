"""A page with proofs of sampled test queries: the true answer, and the false one that ranks highest."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import cast

import numpy as np
import torch

from edgewise.experiments.evaluate import load_trained
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.candidate_ranks import ranks
from edgewise.systems.reasoning.evaluation.explanation import explain
from edgewise.systems.reasoning.evaluation.proof_scores import beam_search_proofs, policy_steps
from edgewise.systems.reasoning.evaluation.rank import RankOptions, candidates_of, make_ranking_env
from edgewise.systems.reasoning.evaluation.rule_ranking import RuleScorer
from edgewise.systems.reasoning.evaluation.search_curve import UNPROVED
from edgewise.systems.reasoning.knowledge.rules import Atom
from edgewise.systems.reasoning.models.proof_policy import ProofActor

SHOWN_RULES = 3
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733}"
    "pre{background:#f4f6f8;padding:.7rem;overflow-x:auto}h2{font-size:1.05rem;margin-top:2rem}"
    ".right{color:#1a7f37}.wrong{color:#b3261e}small{color:#5b6875}"
    "@media(prefers-color-scheme:dark){body{background:#12181f;color:#dfe6ee}pre{background:#1d2630}}"
)


@dataclass(frozen=True)
class Answer:
    """A candidate with its justification.

    Attributes:
        text: the atom.
        tree: lines of the most probable proof within the beam; empty if there is none.
        rules: the rules that conclude it in one step, the most confident first.
    """

    text: str
    tree: tuple[str, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Explained:
    """A test query, its rank by the policy, and the false candidate with the highest score, if proved."""

    side: str
    rank: float
    true: Answer
    rival: Answer | None


def explain_sample(
    run: Path, *, queries: int, beam: int, depth: int | None, seed: int, which: str
) -> tuple[ReasoningEnv, list[Explained]]:
    """Explain sampled test queries of a run: lists of the true atom and 100 false ones, ranked by the policy.

    Args:
        run: a run folder.
        queries: number of test atoms.
        beam: goals kept per step.
        depth: maximum number of steps; that of the run if not given.
        seed: random seed of the sample.
        which: `best` or `latest` checkpoint.
    """
    trained = load_trained(run, settings={"withheld": 0.0}, which=which)
    env, actor = make_ranking_env(trained.config), cast(ProofActor, trained.policy)
    depth = depth or env.config.max_steps
    lists = candidates_of(env, RankOptions(queries=queries, seed=seed), split="test")
    table = beam_search_proofs(env, policy_steps(env, actor), lists, beam=beam, depth=depth)
    score = table.log_probability.clamp(min=UNPROVED)
    place = ranks(score, lists.exists)
    scorer = RuleScorer(env.dataset)

    def answer(atom: Atom, side: str) -> Answer:
        found = explain(env, actor, atom, beam=beam, depth=depth)
        tree = () if found is None else tuple(found.derivation.tree.text(env.dataset).splitlines())
        return Answer(env.dataset.vocabulary.text(atom), tree, _concluding(scorer, env, atom, side))

    explained = []
    for row in range(len(lists)):
        side = "head" if int(lists.side[row]) == 1 else "tail"
        false = score[row, 1:].masked_fill(~lists.exists[row, 1:], -torch.inf)
        best = int(false.argmax()) + 1 if len(false) else 0
        rival = None
        if best and bool(table.proved[row, best]):
            rival = answer(_atom(lists.atoms[row, best].tolist()), side)
        true = answer(_atom(lists.atoms[row, 0].tolist()), side)
        explained.append(Explained(side, float(place[row]), true, rival))
    return env, explained


def page(title: str, explained: list[Explained], *, beam: int) -> str:
    """Build the page as HTML, wrong answers first."""
    right = sum(one.rank == 1 for one in explained)
    note = (
        f"{len(explained)} questions about test atoms, each among 100 false candidates; ties count half. "
        f"The policy ranks the true answer first in {right}. Beam {beam}. Wrong answers come first."
    )
    parts = [f"<h1>{escape(title)}</h1><p>{escape(note)}</p>"]
    for one in sorted(explained, key=lambda each: -each.rank):
        kind = "right" if one.rank == 1 else "wrong"
        parts.append(
            f'<h2 class="{kind}">{escape(one.true.text)}'
            f" <small>{one.side} asked, rank {one.rank:g}</small></h2>{_section('true', one.true)}"
        )
        if one.rival is not None:
            parts.append(_section("highest false candidate", one.rival))
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _section(name: str, answer: Answer) -> str:
    tree = "\n".join(answer.tree) or "no proof within the beam"
    rules = "\n".join(answer.rules) or "no rule concludes it in one step"
    return (
        f"<p>{name}: <b>{escape(answer.text)}</b></p><pre>{escape(tree)}</pre>"
        f"<details><summary>rules that conclude it</summary><pre>{escape(rules)}</pre></details>"
    )


def _concluding(scorer: RuleScorer, env: ReasoningEnv, atom: Atom, side: str) -> tuple[str, ...]:
    """Return the most confident rules that conclude an atom in one step, with their evidence."""
    predicate, head, tail = atom
    relation = predicate - 1 + (0 if side == "tail" else scorer.relations.num_predicates)
    given, answer = (head, tail) if side == "tail" else (tail, head)
    concluded = scorer.book.concluded(relation, np.array([given - 1]))
    low, high = concluded.indptr[answer - 1], concluded.indptr[answer]
    places = scorer.book.order[concluded.indices[low:high]][:SHOWN_RULES].tolist()
    rules = [env.dataset.rules[place] for place in places]
    return tuple(f"{rule.evidence}  {rule.text(env.dataset.vocabulary)}" for rule in rules)


def _atom(row: list[int]) -> Atom:
    return row[0], row[1], row[2]
