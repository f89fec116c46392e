"""Chooses the next step of a proof among its successors: a softmax over sets of any size, and a critic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import NestedKey, TensorDictBase
from tensordict.nn import InteractionType, TensorDictModuleBase
from tensordict.nn.probabilistic import interaction_type
from torch import Tensor, nn
from torch.nn import functional

from edgewise.models.distributions.ragged import RaggedCategorical
from edgewise.models.heads import feed_forward
from edgewise.systems.reasoning.models.config import ProofConfig
from edgewise.systems.reasoning.models.proof_encoder import Counts, ProofDot, ProofGraph, Symbols

Plausibility = Callable[[Tensor], Tensor]
"""Ground atoms `[N, 3]` to log-probabilities `[N]` that an embedding model gives them."""


@dataclass(frozen=True)
class Decision:
    """States and, one after another, what each can become.

    Args:
        atoms: `[N, A, 3]`, the states.
        query: `[N, 3]`, what each sets out to prove.
        successors: `[L, A, 3]`.
        owner: `[L]` int64, whose successor each is, never decreasing; N for empty rows at the end.
        origin: `[L]` int64, from 1 the rule it came by, 0 for a fact or an end.
    """

    atoms: Tensor
    query: Tensor
    successors: Tensor
    owner: Tensor
    origin: Tensor


Expand = Callable[[TensorDictBase], Decision]
"""The decisions of a batch `[*B]` of observations, flattened to N."""

Observed = Callable[[TensorDictBase], tuple[Tensor, Tensor]]
"""States `[N, A, 3]` and queries `[N, 3]` of a batch of observations, flattened likewise."""

DETERMINISTIC = (InteractionType.DETERMINISTIC, InteractionType.MODE, InteractionType.MEAN)


class StepScore(nn.Module):
    """One number for each successor.

    Args:
        encoder: states to `[N, C]`.
        symbols: how many rules there are.
        config: widths and gain.
        plausibility: of ground atoms, for fusion.
    """

    def __init__(
        self, encoder: nn.Module, symbols: Symbols, config: ProofConfig, *, plausibility: Plausibility | None
    ) -> None:
        super().__init__()
        self.encoder, self.config, self.symbols, self._plausibility = encoder, config, symbols, plausibility
        width = config.hidden
        self.origin = nn.Embedding(symbols.rules + 1, width) if config.encoder == "graph" else None
        self.score = (
            feed_forward(3 * width, (width,), 1, gain=config.policy_gain)
            if config.encoder == "graph"
            else None
        )

    def forward(self, decision: Decision) -> Tensor:
        """`[L]`."""
        owner = decision.owner.clamp(max=len(decision.atoms) - 1)
        state = self.encoder(decision.atoms, decision.query)[owner]
        after = self.encoder(decision.successors, decision.query[owner])
        if self.score is None or self.origin is None:
            state, after = functional.normalize(state, dim=-1), functional.normalize(after, dim=-1)
            logits = (state * after).sum(-1) / self.config.temperature
        else:
            logits = self.score(torch.cat((state, after, self.origin(decision.origin)), -1)).squeeze(-1)
        return logits if self._plausibility is None else self._fused(logits, decision)

    def _fused(self, logits: Tensor, decision: Decision) -> Tensor:
        """With what an embedding model thinks of the atom that comes first."""
        assert self._plausibility is not None
        first = decision.successors[:, 0]
        ground = (first[:, 1:] > 0).all(-1) & (first[:, 1:] <= self.symbols.entities).all(-1)
        believed = torch.where(ground, self._plausibility(torch.where(ground.unsqueeze(-1), first, 1)), 0.0)
        logits = logits + self.config.fusion * believed
        if self.config.keep_best is None:
            return logits
        rank = _rank_within(torch.where(ground, believed, -torch.inf), decision.owner)
        return logits.masked_fill(ground & (rank >= self.config.keep_best), -1e9)


class ProofActor(TensorDictModuleBase):
    """Acts on a proof: writes `action`, the place of a successor among those of its state.

    Draws at random unless TorchRL's exploration type asks for a deterministic action.

    Args:
        score: successors to logits.
        expand: observations to decisions.
        in_keys: what `expand` reads.
        expand_in: environment to the `expand` of its own; None for an actor of one environment alone.
    """

    log_prob_keys = ("action_log_prob",)
    dist_sample_keys = ("action",)

    def __init__(
        self,
        score: StepScore,
        expand: Expand,
        *,
        in_keys: Sequence[NestedKey],
        expand_in: Callable[[Any], Expand] | None = None,
    ) -> None:
        super().__init__()
        self.score, self._expand, self._expand_in = score, expand, expand_in
        self.in_keys, self.out_keys = list(in_keys), ["action", "action_log_prob"]

    def get_dist(self, tensordict: TensorDictBase) -> RaggedCategorical:
        """The distribution over successors, batch `[N]`."""
        return self.decide(self._expand(tensordict))

    def decide(self, decision: Decision) -> RaggedCategorical:
        """The same, of states that stand in no environment."""
        return RaggedCategorical(self.score(decision), decision.owner, num_segments=len(decision.atoms))

    @contextmanager
    def on(self, env: Any) -> Iterator[None]:
        """Act in another environment inside, such as one with more facts, and in its own again after."""
        own = self._expand
        self._expand = own if self._expand_in is None else self._expand_in(env)
        try:
            yield
        finally:
            self._expand = own

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Choose a successor in every world."""
        distribution = self.get_dist(tensordict)
        action = distribution.mode if interaction_type() in DETERMINISTIC else distribution.sample()
        tensordict.set("action", action)
        return tensordict.set("action_log_prob", distribution.log_prob(action))


class ProofCritic(TensorDictModuleBase):
    """Values the states of proofs: writes `state_value [*B, 1]`.

    Args:
        encoder: states to `[N, C]`.
        config: widths.
        observed: observations to `atoms [N, A, 3]` and `query [N, 3]`.
        in_keys: what `observed` reads.
    """

    def __init__(
        self, encoder: nn.Module, config: ProofConfig, *, observed: Observed, in_keys: Sequence[NestedKey]
    ) -> None:
        super().__init__()
        self.encoder, self._observed = encoder, observed
        self.value = feed_forward(config.hidden, (config.hidden,), 1)
        self.in_keys, self.out_keys = list(in_keys), ["state_value"]

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Value every state."""
        value = self.value(self.encoder(*self._observed(tensordict)))
        return tensordict.set("state_value", value.view(*tensordict.batch_size, 1))


class ProofActorCritic(nn.Module):
    """The actor and the critic of proofs, each with an encoder of its own, as PPO takes them.

    Args:
        actor: writes `action`, `action_log_prob`.
        critic: writes `state_value`.
    """

    shared = recurrent = False

    def __init__(self, actor: ProofActor, critic: ProofCritic) -> None:
        super().__init__()
        self.actor, self.critic = actor, critic

    def evaluate(self, tensordict: TensorDictBase) -> tuple[RaggedCategorical, Tensor]:
        """The actor's distribution and the critic's values."""
        return self.actor.get_dist(tensordict), self.critic(tensordict.copy())["state_value"]


def make_proof_actor_critic(
    symbols: Symbols,
    config: ProofConfig,
    *,
    expand: Expand,
    observed: Observed,
    in_keys: Sequence[NestedKey],
    counts: Counts | None = None,
    plausibility: Plausibility | None = None,
    expand_in: Callable[[Any], Expand] | None = None,
) -> ProofActorCritic:
    """An actor and a critic for the proofs over one knowledge base.

    Args:
        symbols: sizes of the tables.
        config: see `ProofConfig`.
        expand: observations to decisions.
        observed: observations to states and queries.
        in_keys: what both read.
        counts: facts that match an atom, used where the config says so.
        plausibility: of ground atoms, used where the config says so.
        expand_in: see `ProofActor`.
    """

    def encoder() -> nn.Module:
        if config.encoder == "dot":
            return ProofDot(symbols, config)
        return ProofGraph(symbols, config, counts=counts if config.counts else None)

    fused = plausibility if config.fusion > 0 or config.keep_best is not None else None
    score = StepScore(encoder(), symbols, config, plausibility=fused)
    actor = ProofActor(score, expand, in_keys=in_keys, expand_in=expand_in)
    critic = ProofCritic(encoder(), config, observed=observed, in_keys=in_keys)
    return ProofActorCritic(actor, critic)


def initialise_entities(model: ProofActorCritic, vectors: Tensor) -> None:
    """Let entities begin with given vectors `[E, D]`, projected to the model's width at its own scale.

    Raises:
        ValueError: the model's entities have no embeddings.
    """
    tables = [
        table for name, table in model.named_parameters() if name.endswith(("entity.weight", "term.weight"))
    ]
    tables = [table for table in tables if len(table) > len(vectors)]
    if not tables:
        raise ValueError("entities have no embeddings to begin with: set entities=True")
    for table in tables:
        width = table.shape[1]
        projection = nn.init.orthogonal_(table.new_empty(max(width, vectors.shape[1]), width))
        drawn = functional.pad(vectors, (0, max(0, width - vectors.shape[1]))).to(table) @ projection
        with torch.no_grad():
            table[1 : len(vectors) + 1] = drawn * (table.std() / drawn.std())


def _rank_within(scores: Tensor, owner: Tensor) -> Tensor:
    """The place of each score among those of its owner, from 0 for the highest; `owner` never decreases."""
    order = scores.argsort(descending=True, stable=True)
    order = order[owner[order].argsort(stable=True)]
    first = torch.searchsorted(owner, owner)
    rank = torch.empty_like(owner)
    rank[order] = torch.arange(len(owner), device=owner.device)
    return rank - first
