"""Ranks candidates of test queries by a trained prover, by embeddings, by both, and by exhaustive search."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.evaluation.statistics import Interval, paired_difference
from edgewise.experiments.measure import load_trained
from edgewise.experiments.recipe import AnyRun
from edgewise.systems.reasoning.build import plausibility
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.store import load_kge
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.candidate_ranks import (
    HITS,
    area_under_precision_recall,
    hits,
    mean_reciprocal_rank,
    ranks,
)
from edgewise.systems.reasoning.evaluation.candidates import Candidates, Side, batches, draw_candidates
from edgewise.systems.reasoning.evaluation.explanation import Explanation, explain
from edgewise.systems.reasoning.evaluation.fusion import Fusion, fit
from edgewise.systems.reasoning.evaluation.proof_scores import ProofTable, by_beam, by_oracle, led_by
from edgewise.systems.reasoning.models.proof_policy import ProofActor

Mode = Literal["rl", "kge", "hybrid", "oracle"]
MODES: tuple[Mode, ...] = ("rl", "kge", "hybrid", "oracle")
UNPROVED = -1e9
"""The score of what is not proved: below all that is."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RankOptions:
    """How to rank.

    Attributes:
        negatives: false candidates of a list; None for all there are.
        queries: how many queries of the split, drawn once from `seed`; None for all.
        split: `test`, or `valid`.
        beam: goals that are kept of each query.
        depth: most steps of a proof; the environment's own limit if not given.
        kge: folder of embeddings; the run's own if not given.
        oracle_depth: most steps of the exhaustive search.
        seed: of queries and candidates.
    """

    negatives: int | None = 100
    queries: int | None = 500
    split: Literal["valid", "test"] = "test"
    beam: int = 32
    depth: int | None = None
    kge: str | None = None
    oracle_depth: int = 2
    seed: int = 0


@dataclass(frozen=True)
class Ranked:
    """How one way of scoring ranks the true candidates.

    Attributes:
        name: of the way.
        figures: MRR, hits, area under the precision-recall curve, by name.
        reciprocal: `[Q]`, one over each rank.
    """

    name: str
    figures: dict[str, float]
    reciprocal: Tensor = field(repr=False)


@dataclass(frozen=True)
class Ranking:
    """All ways of scoring, on the same lists of candidates.

    Attributes:
        ranked: the ways, the one that was asked for first.
        lists: how many lists of candidates there are.
        candidates: how many candidates in all.
        proofs: shares of positives and negatives proved, by way and by depth or predicate.
        fusion: the weights of the hybrid, if there is one.
        gain: hybrid less embeddings alone in MRR, over the same lists, with its bootstrap interval.
    """

    ranked: tuple[Ranked, ...]
    lists: int
    candidates: int
    proofs: dict[str, dict[str, Any]]
    fusion: Fusion | None = None
    gain: Interval | None = None


def rank_run(run: Path, mode: Mode, options: RankOptions, *, which: str = "best") -> Ranking:
    """Rank the candidates of a run's queries.

    Always beside it: exhaustive search, and chance led through the same beam.

    Args:
        run: a run folder, or a checkpoint's folder within one.
        mode: by the policy, by embeddings, by both, or by exhaustive search.
        options: see `RankOptions`.
        which: `best` or `latest` checkpoint.
    """
    trained = load_trained(run, settings={"withheld": 0.0}, which=which)
    env = worlds_of(trained.config)
    actor = cast(ProofActor, trained.policy)
    needed = mode in ("kge", "hybrid") or env.config.assume
    model = embedding_of(env, options.kge or trained.config.model.kge, needed=needed)
    lists = candidates_of(env, options, split=options.split)
    tables = proofs_of(env, actor, lists, options, embedding=model)
    scores = {name: found.log_probability.clamp(min=UNPROVED) for name, found in tables.items()}
    fused = None
    if model is not None:
        scores["kge"] = embedding_scores(model, lists)
        fused = fitted(env, actor, model, options)
        scores["hybrid"] = fused(features(scores["kge"], tables["rl"]))
    ranked = [_ranked(name, scores[name], lists) for name in _order(mode, scores)]
    by_name = {one.name: one for one in ranked}
    return Ranking(
        ranked=tuple(ranked),
        lists=len(lists),
        candidates=int(lists.exists.sum()),
        proofs={name: _rates(found, lists, env) for name, found in tables.items()},
        fusion=fused,
        gain=_gain(by_name) if fused is not None else None,
    )


def explain_query(
    run: Path, text: str, *, beam: int, depth: int | None = None, which: str = "best"
) -> tuple[ReasoningEnv, Explanation | None]:
    """The proof that a run's policy finds of an atom such as `locatedInCR(oman,asia)`, if it finds one.

    Raises:
        DataError: the text is no atom of the run's knowledge base.
    """
    trained = load_trained(run, settings={"withheld": 0.0}, which=which)
    env = worlds_of(trained.config)
    query = env.dataset.vocabulary.atom(text)
    actor = cast(ProofActor, trained.policy)
    return env, explain(env, actor, query, beam=beam, depth=depth or env.config.max_steps)


def worlds_of(config: AnyRun) -> ReasoningEnv:
    """One world of a run's knowledge base, all facts within reach."""
    plain = config.env.model_copy(update={"withheld": 0.0, "proof_depths": None})
    return ReasoningEnv(plain, num_envs=1, seed=0, device=config.device)


def embedding_of(env: ReasoningEnv, folder: str | None, *, needed: bool) -> KnowledgeEmbedding | None:
    """The embeddings in a folder, for this knowledge base.

    Raises:
        ConfigError: they are needed and no folder is named.
    """
    if folder is None:
        if not needed:
            return None
        raise ConfigError(
            "ranking by embeddings or assumptions needs embeddings, and neither --kge nor the run names any",
            hint=f"train them with `edgewise kge {env.config.data}`, then give that folder as --kge",
        )
    return load_kge(folder, vocabulary=env.dataset.vocabulary)


def candidates_of(env: ReasoningEnv, options: RankOptions, *, split: str) -> Candidates:
    """Lists for the queries of a split, both sides, or as the environment corrupts."""
    dataset, queries = env.dataset, env.dataset.split(split)
    if options.queries is not None and options.queries < len(queries):
        order = torch.randperm(len(queries), generator=torch.Generator().manual_seed(options.seed))
        queries = queries[order[: options.queries].sort().values]
    sides: Mapping[str, tuple[Side, ...]] = {"head": ("head",), "tail": ("tail",), "both": ("head", "tail")}
    return draw_candidates(
        queries,
        dataset.known(),
        num_entities=dataset.vocabulary.num_entities,
        sides=sides[env.config.corrupt],
        negatives=options.negatives,
        domains=dataset.domains.values() if env.config.use_domains else (),
        seed=options.seed,
    )


def proofs_of(
    env: ReasoningEnv,
    actor: ProofActor,
    lists: Candidates,
    options: RankOptions,
    *,
    embedding: KnowledgeEmbedding | None,
) -> dict[str, ProofTable]:
    """What the policy proves through a beam and greedily, what chance proves, and what anyone can."""
    depth = options.depth or env.config.max_steps
    believed = None if embedding is None else plausibility(embedding)
    led = led_by(env, actor, plausibility=believed)
    log.info("searching %d candidates for proofs", int(lists.exists.sum()))
    tables = {
        "rl": by_beam(env, led, lists, beam=options.beam, depth=depth),
        "greedy": by_beam(env, led, lists, beam=None, depth=depth),
        "chance": by_beam(
            env, led_by(env, None, plausibility=believed), lists, beam=options.beam, depth=depth
        ),
    }
    cap = max(2000, env.config.max_successors)
    return tables | {"oracle": by_oracle(env, lists, depth=options.oracle_depth, cap=cap)}


def features(embedding: Tensor, proofs: ProofTable) -> Tensor:
    """What the hybrid weighs, `[Q, K, 3]`: the embedding's score, whether there is a proof, how probable."""
    proved = proofs.proved
    probable = torch.where(proved, proofs.log_probability, 0.0)
    return torch.stack((embedding.double(), proved.double(), probable), -1)


def fitted(env: ReasoningEnv, actor: ProofActor, model: KnowledgeEmbedding, options: RankOptions) -> Fusion:
    """The weights of the hybrid, from the validation split alone."""
    lists = candidates_of(env, options, split="valid")
    led = led_by(env, actor, plausibility=plausibility(model))
    depth = options.depth or env.config.max_steps
    proofs = by_beam(env, led, lists, beam=options.beam, depth=depth)
    found = features(embedding_scores(model, lists), proofs)
    names = ("embedding", "proved", "log probability of proofs")
    return fit(torch.where(lists.exists.unsqueeze(-1), found, 0.0), lists.exists, names=names)


@torch.no_grad()
def embedding_scores(model: KnowledgeEmbedding, lists: Candidates) -> Tensor:
    """The embeddings' own scores, `[Q, K]`; absent candidates get the lowest."""
    scores = torch.full((lists.exists.numel(),), UNPROVED, dtype=torch.float64)
    for column, side in ((1, "head"), (2, "tail")):
        asked = (lists.side == column).unsqueeze(1).expand_as(lists.exists).flatten()
        for place, atoms in batches(lists, 65_536):
            chosen = asked[place]
            scores[place[chosen]] = model.score(atoms[chosen], side=cast(Side, side)).double()
    return scores.view_as(lists.exists)


def _order(mode: Mode, scores: Mapping[str, Tensor]) -> list[str]:
    wanted = [mode, *(name for name in ("rl", "greedy", "kge", "hybrid", "chance", "oracle") if name != mode)]
    return [name for name in wanted if name in scores]


def _ranked(name: str, scores: Tensor, lists: Candidates) -> Ranked:
    rank = ranks(scores, lists.exists)
    labels = torch.zeros_like(lists.exists)
    labels[:, 0] = True
    area = area_under_precision_recall(scores[lists.exists], labels[lists.exists])
    figures = {"mrr": mean_reciprocal_rank(rank)} | {f"hits@{at}": hits(rank, at) for at in HITS}
    return Ranked(name, figures | {"auc_pr": area}, rank.reciprocal())


def _gain(ranked: Mapping[str, Ranked]) -> Interval:
    return paired_difference(
        ranked["hybrid"].reciprocal.numpy(),
        ranked["kge"].reciprocal.numpy(),
        generator=np.random.default_rng(0),
    )


def _rates(found: ProofTable, lists: Candidates, env: ReasoningEnv) -> dict[str, Any]:
    """Shares of positives and negatives with a proof, in all, by its length, and by predicate."""
    true, false = found.depth[:, 0], found.depth[:, 1:][lists.exists[:, 1:]]
    longest = int(found.depth.max())
    names = env.dataset.vocabulary.predicate_names
    predicate = lists.atoms[:, 0, 0]
    return {
        "positives": float((true >= 0).double().mean()),
        "negatives": float((false >= 0).double().mean()) if len(false) else 0.0,
        "by_depth": {
            depth: [float((part == depth).double().mean()) for part in (true, false)]
            for depth in range(1, longest + 1)
        },
        "by_predicate": {
            names[number]: float((true[predicate == number] >= 0).double().mean())
            for number in predicate.unique().tolist()
        },
        "expanded_per_candidate": found.expanded / max(1, int(lists.exists.sum())),
    }
