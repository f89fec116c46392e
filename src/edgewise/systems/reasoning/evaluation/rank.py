"""Rank candidates of test queries by a policy, rules, embeddings, all together, and exhaustive search."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun
from edgewise.evaluation.statistics import Interval, paired_difference
from edgewise.experiments.evaluate import load_trained
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.embeddings.store import load_kge
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.all_entities import pairwise_differences
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
from edgewise.systems.reasoning.evaluation.proof_scores import (
    ProofTable,
    beam_search_proofs,
    oracle_proofs,
    plausibility,
    policy_steps,
)
from edgewise.systems.reasoning.evaluation.rule_ranking import RuleScorer, list_scores
from edgewise.systems.reasoning.evaluation.search_curve import (
    UNPROVED,
    CurvePoint,
    has_weights,
    search_curve,
)
from edgewise.systems.reasoning.models.proof_policy import ProofActor

Mode = Literal["rl", "rules", "kge", "hybrid", "oracle"]
COLUMNS = ("rl", "greedy", "rules", "kge", "hybrid", "confidence", "chance", "oracle")
FEATURES = (
    "embedding",
    "concluded",
    "greatest confidence",
    "noisy-or",
    "proved",
    "log probability of proofs",
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RankOptions:
    """Options of ranking.

    Attributes:
        negatives: false candidates per list; None for all.
        queries: number of queries of the split, sampled with `seed`; None for all.
        split: `test` or `valid`.
        beam: number of goals kept per query.
        beams: further beam widths, for a table of MRR against expanded goals.
        depth: maximum number of steps of a proof; that of the environment if not given.
        kge: folder of embeddings; None for none.
        oracle_depth: maximum number of steps of the exhaustive search.
        seed: random seed of queries and candidates.
    """

    negatives: int | None = 100
    queries: int | None = 500
    split: Literal["valid", "test"] = "test"
    beam: int = 32
    beams: tuple[int, ...] = ()
    depth: int | None = None
    kge: str | None = None
    oracle_depth: int = 2
    seed: int = 0


@dataclass(frozen=True)
class Ranked:
    """The result of one scoring method.

    Attributes:
        name: name of the method.
        figures: MRR, hits@k and AUC-PR by name.
        reciprocal: `[Q]`, reciprocal ranks.
    """

    name: str
    figures: dict[str, float]
    reciprocal: Tensor = field(repr=False)


@dataclass(frozen=True)
class Ranking:
    """The results of all scoring methods on the same candidate lists.

    Attributes:
        ranked: results by method, the requested one first.
        lists: number of candidate lists.
        candidates: total number of candidates.
        proofs: shares of proved positives and negatives by method, depth and predicate.
        fusion: weights of the hybrid, if there is one.
        gain: MRR of the hybrid minus that of the embeddings, with its paired bootstrap interval.
        differences: the same for every two methods, the greater MRR first.
        curve: MRR and expanded goals by beam width, if requested.
        sides: the replaced arguments: head, tail or both.
        split: the split of the queries.
    """

    ranked: tuple[Ranked, ...]
    lists: int
    candidates: int
    proofs: dict[str, dict[str, Any]]
    fusion: Fusion | None = None
    gain: Interval | None = None
    differences: dict[tuple[str, str], Interval] = field(default_factory=dict)
    curve: tuple[CurvePoint, ...] = ()
    sides: str = "both"
    split: str = "test"


def rank_run(run: Path, mode: Mode, options: RankOptions, *, which: str = "best") -> Ranking:
    """Rank the candidates of the queries of a run.

    Exhaustive search and a uniform policy with the same beam are always included.

    Args:
        run: a run folder, or the folder of a checkpoint in it.
        mode: the scoring method to report first.
        options: see `RankOptions`.
        which: `best` or `latest` checkpoint.
    """
    trained = load_trained(run, settings={"withheld": 0.0}, which=which)
    env = make_ranking_env(trained.config)
    actor = cast(ProofActor, trained.policy)
    needed = mode in ("kge", "hybrid") or env.config.assume
    model = embedding_of(env, options.kge, needed=needed)
    lists = candidates_of(env, options, split=options.split)
    tables = proofs_of(env, actor, lists, options, embedding=model)
    scores = {name: found.log_probability.clamp(min=UNPROVED) for name, found in tables.items()}
    scorer = RuleScorer(env.dataset)
    by_rules = list_scores(scorer, lists)
    scores["rules"] = by_rules["greatest"]
    fused = None
    if model is not None:
        scores["kge"] = embedding_scores(model, lists)
        fused = fit_fusion(env, actor, model, scorer, options)
        scores["hybrid"] = fused(fusion_features(scores["kge"], by_rules, tables["rl"]))
    comparable = {**scores, "rules": by_rules["confidence"]}
    ranked = [_ranked(name, scores[name], comparable[name], lists) for name in _order(mode, scores)]
    by_name = {one.name: one for one in ranked}
    curve: list[CurvePoint] = []
    if options.beams:
        sure = None if model is None else plausibility(model)
        depth = options.depth or env.config.max_steps
        curve = search_curve(env, actor, lists, options.beams, depth=depth, plausibility=sure)
    return Ranking(
        ranked=tuple(ranked),
        lists=len(lists),
        candidates=int(lists.exists.sum()),
        proofs={name: _rates(found, lists, env) for name, found in tables.items()},
        fusion=fused,
        gain=_gain(by_name) if fused is not None else None,
        differences=pairwise_differences({one.name: one.reciprocal for one in ranked}),
        curve=tuple(curve),
        sides=env.config.corrupt,
        split=options.split,
    )


def explain_query(
    run: Path, text: str, *, beam: int, depth: int | None = None, which: str = "best"
) -> tuple[ReasoningEnv, Explanation | None]:
    """Find the most probable proof of an atom such as `locatedInCR(oman,asia)` under the policy of a run.

    Raises:
        DataError: the text is not an atom of the knowledge base of the run.
    """
    trained = load_trained(run, settings={"withheld": 0.0}, which=which)
    env = make_ranking_env(trained.config)
    query = env.dataset.vocabulary.atom(text)
    actor = cast(ProofActor, trained.policy)
    return env, explain(env, actor, query, beam=beam, depth=depth or env.config.max_steps)


def make_ranking_env(config: AnyRun) -> ReasoningEnv:
    """Build an environment with one world and all facts of a run's knowledge base."""
    plain = config.env.model_copy(update={"withheld": 0.0, "proof_depths": None})
    return ReasoningEnv(plain, num_envs=1, seed=0, device=config.device)


def embedding_of(env: ReasoningEnv, folder: str | None, *, needed: bool) -> KnowledgeEmbedding | None:
    """Load the embeddings in a folder for the knowledge base of `env`.

    Raises:
        ConfigError: they are needed, but no folder is given.
    """
    if folder is None:
        if not needed:
            return None
        raise ConfigError(
            "ranking by embeddings or assumptions needs embeddings, but --kge names none",
            hint=f"train them with `edgewise reasoning kge {env.config.data}` and give their folder as --kge",
        )
    return load_kge(folder, vocabulary=env.dataset.vocabulary)


def candidates_of(env: ReasoningEnv, options: RankOptions, *, split: str) -> Candidates:
    """Sample candidate lists for the queries of a split, on the sides that the environment corrupts."""
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
        domains=dataset.domains.values(),
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
    """Search for proofs by the policy with a beam, greedily, by a uniform policy, and exhaustively."""
    depth = options.depth or env.config.max_steps
    log_probability = None if embedding is None else plausibility(embedding)
    steps = policy_steps(env, actor, plausibility=log_probability)
    uniform = policy_steps(env, None, plausibility=log_probability)
    log.info("searching %d candidates for proofs", int(lists.exists.sum()))
    tables = {
        "rl": beam_search_proofs(env, steps, lists, beam=options.beam, depth=depth),
        "greedy": beam_search_proofs(env, steps, lists, beam=None, depth=depth),
        "chance": beam_search_proofs(env, uniform, lists, beam=options.beam, depth=depth, ties=options.seed),
    }
    if has_weights(env):
        ordered = policy_steps(env, None, plausibility=log_probability, by_weight=True)
        tables["confidence"] = beam_search_proofs(env, ordered, lists, beam=options.beam, depth=depth)
    cap = max(2000, env.config.max_successors)
    return tables | {"oracle": oracle_proofs(env, lists, depth=options.oracle_depth, cap=cap)}


def fusion_features(embedding: Tensor, rules: Mapping[str, Tensor], proofs: ProofTable) -> Tensor:
    """Stack the scores of the hybrid, `[Q, K, 6]`, see `FEATURES`."""
    proved, confidence = proofs.proved, rules["confidence"]
    probable = torch.where(proved, proofs.log_probability, 0.0)
    by_rules = ((confidence > 0).double(), confidence, rules["noisy_or"])
    return torch.stack((embedding.double(), *by_rules, proved.double(), probable), -1)


def fit_fusion(
    env: ReasoningEnv,
    actor: ProofActor,
    model: KnowledgeEmbedding,
    scorer: RuleScorer,
    options: RankOptions,
) -> Fusion:
    """Fit the weights of the hybrid on the validation split."""
    lists = candidates_of(env, options, split="valid")
    steps = policy_steps(env, actor, plausibility=plausibility(model))
    depth = options.depth or env.config.max_steps
    proofs = beam_search_proofs(env, steps, lists, beam=options.beam, depth=depth)
    found = fusion_features(embedding_scores(model, lists), list_scores(scorer, lists), proofs)
    return fit(torch.where(lists.exists.unsqueeze(-1), found, 0.0), lists.exists, names=FEATURES)


@torch.no_grad()
def embedding_scores(model: KnowledgeEmbedding, lists: Candidates) -> Tensor:
    """Compute the scores of the embeddings, `[Q, K]`; padding gets the lowest score."""
    scores = torch.full((lists.exists.numel(),), UNPROVED, dtype=torch.float64)
    for column, side in ((1, "head"), (2, "tail")):
        on_side = (lists.side == column).unsqueeze(1).expand_as(lists.exists).flatten()
        for place, atoms in batches(lists, 65_536):
            chosen = on_side[place]
            scores[place[chosen]] = model.score(atoms[chosen], side=cast(Side, side)).double()
    return scores.view_as(lists.exists)


def _order(mode: Mode, scores: Mapping[str, Tensor]) -> list[str]:
    wanted = [mode, *(name for name in COLUMNS if name != mode)]
    return [name for name in wanted if name in scores]


def _ranked(name: str, scores: Tensor, comparable: Tensor, lists: Candidates) -> Ranked:
    """Rank each list by its scores; the precision-recall curve uses those comparable between lists."""
    rank = ranks(scores, lists.exists)
    labels = torch.zeros_like(lists.exists)
    labels[:, 0] = True
    area = area_under_precision_recall(comparable[lists.exists], labels[lists.exists])
    figures = {"mrr": mean_reciprocal_rank(rank)} | {f"hits@{at}": hits(rank, at) for at in HITS}
    return Ranked(name, figures | {"auc_pr": area}, rank.reciprocal())


def _gain(ranked: Mapping[str, Ranked]) -> Interval:
    return paired_difference(
        ranked["hybrid"].reciprocal.numpy(),
        ranked["kge"].reciprocal.numpy(),
    )


def _rates(found: ProofTable, lists: Candidates, env: ReasoningEnv) -> dict[str, Any]:
    """Compute the shares of positives and negatives with a proof: total, by length and by predicate."""
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
