"""Proofs of candidates by a policy, by a uniform policy, and by exhaustive search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.embeddings.embedding import KnowledgeEmbedding
from edgewise.systems.reasoning.engine import oracle
from edgewise.systems.reasoning.engine.support import proving_share
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.beam_search import Offered, Proofs, Steps, search
from edgewise.systems.reasoning.evaluation.candidates import Candidates, batches
from edgewise.systems.reasoning.knowledge.vocabulary import SPECIALS
from edgewise.systems.reasoning.models.decision import log_weights, rule_numbers
from edgewise.systems.reasoning.models.proof_policy import ProofActor

Plausibility = Callable[[Tensor], Tensor]
"""Maps ground atoms `[N, 3]` to log-probabilities `[N]` of an embedding model."""

AT_ONCE = 4096
"""Most candidates per search batch."""
GOALS_AT_ONCE = 16_384
"""Most goals that the beams of a search batch keep; memory grows with their successors."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class ProofTable:
    """Proofs of candidate lists.

    Args:
        log_probability: `[Q, K]` float64; minus infinity if there is no proof.
        depth: `[Q, K]` int64, steps of the shortest proof; -1 if there is none.
        expanded: total number of expanded goals.
    """

    log_probability: Tensor
    depth: Tensor
    expanded: int

    @property
    def proved(self) -> Tensor:
        """Which candidates have a proof, `[Q, K]` bool."""
        return self.depth >= 0


def policy_steps(
    env: ReasoningEnv,
    actor: ProofActor | None,
    *,
    plausibility: Plausibility | None = None,
    by_weight: bool = False,
) -> Steps:
    """Return a step function with the probabilities of a policy, or uniform ones if `actor` is None.

    Without a policy, `by_weight` makes the probability of a step proportional to the weight of its rule, and
    to 1 for a step without one.

    A proved goal has one successor. Its probability is the share of facts that complete the proof, so that
    the probabilities of all derivations sum to one. Where a rule completes it at once, no choice expresses
    the weight of that rule, so the probability is the weight, to the power of the policy's prior, and 1 for
    uniform steps. An assumed atom adds its plausibility.
    """
    program, ends = env.successors.program, env.ends
    weights = log_weights(env.dataset.rules).to(env.device).double()
    prior = weights if by_weight else None
    power = 1.0 if by_weight else 0.0 if actor is None else actor.score.config.prior

    def steps(states: Tensor, queries: Tensor, last: bool) -> Offered:
        found = env.successors.of(states, queries, counted=True)
        done = found.proved.nonzero().squeeze(1)
        proving = proving_share(program, states[done], excluded=queries[done]).log()
        proving = proving + power * weights[rule_numbers(found)[found.offsets[done]]]
        if last and not env.config.assume:
            return Offered(found.successors[found.offsets[done]], done, proving)
        if prior is not None:
            log_probability = _shares(prior[rule_numbers(found)].exp(), found.owner)
        elif actor is None:
            log_probability = -found.counts[found.owner].double().log()
        else:
            log_probability = actor.decide_in(env, states, queries, found).logits.double()
        log_probability[found.offsets[done]] = proving
        after = dynamics.drop_assumed(found.successors, ends)
        if plausibility is not None:
            assumed = found.successors[:, 0, 0] > ends.assumed_offset
            log_probability[assumed] += plausibility(found.successors[assumed, 0]).double()
        return Offered(after, found.owner, log_probability)

    return steps


def _shares(weight: Tensor, owner: Tensor) -> Tensor:
    """Return the logarithm of each weight's share of its owner's total, `[L]`."""
    total = weight.new_zeros(int(owner[-1]) + 1 if len(owner) else 0).index_add(0, owner, weight)
    return (weight / total[owner]).log()


def beam_search_proofs(
    env: ReasoningEnv,
    steps: Steps,
    candidates: Candidates,
    *,
    beam: int | None,
    depth: int,
    ties: int | None = None,
    progress: Progress | None = None,
) -> ProofTable:
    """Search for proofs of every candidate by beam search; greedily if `beam` is None.

    `ties` is a random seed to choose among steps of equal probability; by default the first ones are kept. A
    uniform policy without it would follow the order of the rule file, which is often that of confidence.
    """
    generator = None if ties is None else torch.Generator().manual_seed(ties)

    def find(atoms: Tensor) -> Proofs:
        return prove_atoms(env, steps, atoms, beam=beam, depth=depth, ties=generator)

    return _table(candidates, find, progress, at_once=atoms_at_once(beam))


def prove_atoms(
    env: ReasoningEnv,
    steps: Steps,
    atoms: Tensor,
    *,
    beam: int | None,
    depth: int,
    ties: torch.Generator | None = None,
) -> Proofs:
    """Search for proofs of atoms `[n, 3]`, all at once; greedily if `beam` is None."""
    starts = dynamics.start(atoms, max_atoms=env.config.max_atoms)
    over = (env.ends.false, env.ends.end_false)
    return search(steps, starts, atoms, true=env.ends.true, ends=over, beam=beam, depth=depth, ties=ties)


def atoms_at_once(beam: int | None) -> int:
    """Return the most atoms of a search batch."""
    return max(1, min(AT_ONCE, GOALS_AT_ONCE // (beam or 1)))


def oracle_proofs(
    env: ReasoningEnv, candidates: Candidates, *, depth: int, cap: int, progress: Progress | None = None
) -> ProofTable:
    """Search exhaustively for the shortest proof of every candidate; shorter proofs score higher."""

    def find(atoms: Tensor) -> Proofs:
        found = oracle.search(env.successors.program, atoms, depth=depth, cap=cap)
        steps = torch.where(found.proved, found.depth, -1)
        score = torch.where(found.proved, -found.depth.double(), -torch.inf)
        return Proofs(score, steps, found.nodes)

    return _table(candidates, find, progress)


def _table(
    candidates: Candidates,
    find: Callable[[Tensor], Proofs],
    progress: Progress | None,
    *,
    at_once: int = AT_ONCE,
) -> ProofTable:
    shape = candidates.exists.shape
    score = torch.full((shape.numel(),), -torch.inf, dtype=torch.float64)
    depth = torch.full((shape.numel(),), -1, dtype=torch.int64)
    expanded = 0
    for place, atoms in batches(candidates, at_once):
        proofs = find(atoms)
        score[place], depth[place] = proofs.log_probability, proofs.depth
        expanded += int(proofs.expanded.sum())
        if progress is not None:
            progress(len(place))
    return ProofTable(score.view(shape), depth.view(shape), expanded)


def plausibility(embedding: KnowledgeEmbedding) -> Plausibility:
    """Return a function from ground atoms to log-probabilities; `<predicate>_kge` counts as its predicate."""
    offset = embedding.num_predicates + len(SPECIALS)

    @torch.no_grad()
    def log_probability(atoms: Tensor) -> Tensor:
        predicate, head, tail = atoms.long().unbind(-1)
        predicate = torch.where(predicate > offset, predicate - offset, predicate)
        return embedding.log_probability(torch.stack((predicate, head, tail), -1))

    return log_probability
