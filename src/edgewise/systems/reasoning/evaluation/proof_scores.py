"""What a policy, chance, or exhaustive search makes of candidates: how probably each is proved, how soon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning import dynamics
from edgewise.systems.reasoning.engine import oracle
from edgewise.systems.reasoning.engine.expand import Expansion
from edgewise.systems.reasoning.engine.support import proving_share
from edgewise.systems.reasoning.env import ReasoningEnv
from edgewise.systems.reasoning.evaluation.beam_search import Offered, Proofs, Steps, search
from edgewise.systems.reasoning.evaluation.candidates import Candidates, batches
from edgewise.systems.reasoning.models.proof_policy import Decision, Plausibility, ProofActor

AT_ONCE = 4096
"""Candidates that are searched for together."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class ProofTable:
    """What was found of lists of candidates.

    Args:
        log_probability: `[Q, K]` float64, minus infinity where there is no proof.
        depth: `[Q, K]` int64, steps of the shortest proof; -1 where there is none.
        expanded: goals that were expanded in all.
    """

    log_probability: Tensor
    depth: Tensor
    expanded: int

    @property
    def proved(self) -> Tensor:
        """`[Q, K]`."""
        return self.depth >= 0


def decision(atoms: Tensor, query: Tensor, found: Expansion) -> Decision:
    """What a policy is asked, from what the engine found."""
    return Decision(atoms, query, found.successors, found.owner, (found.origin + 1).clamp(min=0))


def led_by(env: ReasoningEnv, actor: ProofActor | None, *, plausibility: Plausibility | None = None) -> Steps:
    """Steps with the probabilities of a policy, or of chance where there is none.

    A goal that the engine calls proved has one successor. Its probability here is the share of facts that
    finish the proof, so that the sum over derivations is one. What is assumed costs its implausibility.
    """
    program, ends = env.successors.program, env.ends

    def steps(states: Tensor, queries: Tensor, last: bool) -> Offered:
        found = env.successors.of(states, queries, counted=True)
        done = found.proved.nonzero().squeeze(1)
        proving = proving_share(program, states[done], excluded=queries[done]).log()
        if last and not env.config.assume:
            return Offered(found.successors[found.offsets[done]], done, proving)
        if actor is None:
            chance = -found.counts[found.owner].double().log()
        else:
            chance = actor.decide(decision(states, queries, found)).logits.double()
        chance[found.offsets[done]] = proving
        after = dynamics.settled(found.successors, ends)
        if plausibility is not None:
            assumed = found.successors[:, 0, 0] > ends.assumed_offset
            chance[assumed] += plausibility(found.successors[assumed, 0]).double()
        return Offered(after, found.owner, chance)

    return steps


def by_beam(
    env: ReasoningEnv,
    steps: Steps,
    candidates: Candidates,
    *,
    beam: int | None,
    depth: int,
    progress: Progress | None = None,
) -> ProofTable:
    """Beam search for a proof of every candidate, or the greedy way without a beam."""

    def of(atoms: Tensor) -> Proofs:
        starts = dynamics.start(atoms, max_atoms=env.config.max_atoms)
        over = (env.ends.false, env.ends.end_false)
        return search(steps, starts, atoms, true=env.ends.true, ends=over, beam=beam, depth=depth)

    return _table(candidates, of, progress)


def by_oracle(
    env: ReasoningEnv, candidates: Candidates, *, depth: int, cap: int, progress: Progress | None = None
) -> ProofTable:
    """Exhaustive search for the shortest proof of every candidate; shorter ones count as more probable."""

    def of(atoms: Tensor) -> Proofs:
        found = oracle.search(env.successors.program, atoms, depth=depth, cap=cap)
        steps = torch.where(found.proved, found.depth, -1)
        worth = torch.where(found.proved, -found.depth.double(), -torch.inf)
        return Proofs(worth, steps, found.nodes)

    return _table(candidates, of, progress)


def _table(candidates: Candidates, of: Callable[[Tensor], Proofs], progress: Progress | None) -> ProofTable:
    shape = candidates.exists.shape
    worth = torch.full((shape.numel(),), -torch.inf, dtype=torch.float64)
    depth = torch.full((shape.numel(),), -1, dtype=torch.int64)
    expanded = 0
    for place, atoms in batches(candidates, AT_ONCE):
        proofs = of(atoms)
        worth[place], depth[place] = proofs.log_probability, proofs.depth
        expanded += int(proofs.expanded.sum())
        if progress is not None:
            progress(len(place))
    return ProofTable(worth.view(shape), depth.view(shape), expanded)
