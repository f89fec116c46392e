"""Policy and critic for proofs: a softmax over the successors of each goal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from tensordict import NestedKey, TensorDictBase
from tensordict.nn import InteractionType, TensorDictModuleBase
from tensordict.nn.probabilistic import interaction_type
from torch import Tensor, nn
from torch.nn import functional

from edgewise.models.distributions.ragged import RaggedCategorical
from edgewise.models.heads import feed_forward
from edgewise.systems.reasoning.models.config import ProofConfig
from edgewise.systems.reasoning.models.decision import Decision, Expand, ReadGoals, make_decision
from edgewise.systems.reasoning.models.proof_encoder import ProofDot, ProofGraph, Symbols
from edgewise.systems.reasoning.models.proof_function import ProofFunction

if TYPE_CHECKING:
    from edgewise.systems.reasoning.engine.expand import Expansion
    from edgewise.systems.reasoning.env import ReasoningEnv

DETERMINISTIC = (InteractionType.DETERMINISTIC, InteractionType.MODE, InteractionType.MEAN)


class StepScore(nn.Module):
    """Logits of successors.

    Args:
        encoder: encodes states to `[N, C]`.
        symbols: sizes of the tables.
        config: see `ProofConfig`.
        evidence: `[R + 1, 3]`, see `rule_evidence`; needed if the config uses it.
    """

    evidence: Tensor | None

    def __init__(
        self,
        encoder: nn.Module,
        symbols: Symbols,
        config: ProofConfig,
        *,
        evidence: Tensor | None = None,
    ) -> None:
        super().__init__()
        used = evidence if config.prior > 0 or config.evidence else None
        # The rules belong to the data, not to the parameters of the policy.
        self.register_buffer("evidence", used, persistent=False)
        self.encoder, self.config, self.symbols = encoder, config, symbols
        width = config.hidden
        self.origin = nn.Embedding(symbols.rules + 1, width) if config.encoder == "graph" else None
        self.score = (
            feed_forward(3 * width, (width,), 1, gain=config.policy_gain)
            if config.encoder == "graph"
            else None
        )
        self.from_evidence = None
        if config.evidence and self.origin is not None and used is not None:
            self.from_evidence = nn.Linear(used.shape[-1], width)
            nn.init.zeros_(self.from_evidence.weight)
            nn.init.zeros_(self.from_evidence.bias)

    def forward(self, decision: Decision) -> Tensor:
        """Compute logits `[L]`."""
        owner = decision.owner.clamp(max=decision.atoms.shape[0] - 1)
        matches = decision.matches or (None, None)
        state = self.encoder(decision.atoms, decision.query, matches[0])[owner]
        after = self.encoder(decision.successors, decision.query[owner], matches[1])
        if self.score is None or self.origin is None:
            state, after = functional.normalize(state, dim=-1), functional.normalize(after, dim=-1)
            logits = (state * after).sum(-1) / self.config.temperature
        else:
            rule = self.origin(decision.origin)
            if self.from_evidence is not None and self.evidence is not None:
                rule = rule + self.from_evidence(self.evidence[decision.origin])
            logits = self.score(torch.cat((state, after, rule), -1)).squeeze(-1)
        if self.evidence is not None and self.config.prior > 0:
            logits = logits + self.config.prior * self.evidence[decision.origin, 1]
        return logits


class ProofActor(TensorDictModuleBase):
    """Actor for proofs: writes `action`, the index of the chosen successor, and `action_log_prob`.

    It samples unless TorchRL's exploration type is deterministic.

    Args:
        score: computes the logits of successors.
        expand: maps observations to decisions.
        in_keys: keys that `expand` reads.
        make_expand: builds `expand` for another environment; None if the actor runs in one environment only.
    """

    log_prob_keys = ("action_log_prob",)
    dist_sample_keys = ("action",)

    def __init__(
        self,
        score: StepScore,
        expand: Expand,
        *,
        in_keys: Sequence[NestedKey],
        make_expand: Callable[[Any], Expand] | None = None,
    ) -> None:
        super().__init__()
        self.score, self._expand, self._make_expand = score, expand, make_expand
        self.in_keys, self.out_keys = list(in_keys), ["action", "action_log_prob"]

    def get_dist(self, tensordict: TensorDictBase) -> RaggedCategorical:
        """Return the distribution over successors, batch `[N]`."""
        return self.decide(self._expand(tensordict))

    def decide(self, decision: Decision) -> RaggedCategorical:
        """Return the distribution over the successors of a decision, batch `[N]`."""
        return RaggedCategorical(self.score(decision), decision.owner, num_segments=len(decision.atoms))

    def decide_in(
        self, env: ReasoningEnv, atoms: Tensor, query: Tensor, found: Expansion
    ) -> RaggedCategorical:
        """Return the distribution over the successors `found` of states `[N, A, 3]` in `env`, batch `[N]`."""
        matches = self.score.config.reads_matches
        return self.decide(make_decision(env, atoms, query, found, matches=matches))

    def as_function(self, env: Any) -> ProofFunction:
        """Return the actor as a function of named tensors, for export."""
        return ProofFunction(self.score, self._expand, env=env)

    @contextmanager
    def on(self, env: Any) -> Iterator[None]:
        """Act in another environment within the context, such as one with more facts, by its facts."""
        own = self._expand
        self._expand = own if self._make_expand is None else self._make_expand(env)
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
    """Critic for proofs: writes `state_value [*B, 1]`.

    Args:
        encoder: encodes states to `[N, C]`.
        config: see `ProofConfig`.
        read_goals: maps observations to states, their queries and counts of matching facts.
        in_keys: keys that `read_goals` reads.
    """

    def __init__(
        self, encoder: nn.Module, config: ProofConfig, *, read_goals: ReadGoals, in_keys: Sequence[NestedKey]
    ) -> None:
        super().__init__()
        self.encoder, self._read_goals = encoder, read_goals
        self.value = feed_forward(config.hidden, (config.hidden,), 1)
        self.in_keys, self.out_keys = list(in_keys), ["state_value"]

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Compute the value of every state."""
        value = self.value(self.encoder(*self._read_goals(tensordict)))
        return tensordict.set("state_value", value.view(*tensordict.batch_size, 1))


class ProofActorCritic(nn.Module):
    """Actor and critic for proofs with separate encoders, for PPO.

    Args:
        actor: writes `action`, `action_log_prob`.
        critic: writes `state_value`.
    """

    shared = recurrent = False

    def __init__(self, actor: ProofActor, critic: ProofCritic) -> None:
        super().__init__()
        self.actor, self.critic = actor, critic

    def evaluate(self, tensordict: TensorDictBase) -> tuple[RaggedCategorical, Tensor]:
        """Return the actor's distribution and the critic's values."""
        return self.actor.get_dist(tensordict), self.critic(tensordict.copy())["state_value"]


def make_proof_actor_critic(
    symbols: Symbols,
    config: ProofConfig,
    *,
    expand: Expand,
    read_goals: ReadGoals,
    in_keys: Sequence[NestedKey],
    evidence: Tensor | None = None,
    make_expand: Callable[[Any], Expand] | None = None,
) -> ProofActorCritic:
    """Build an actor and a critic for one knowledge base.

    Args:
        symbols: sizes of the tables.
        config: see `ProofConfig`.
        expand: maps observations to decisions.
        read_goals: maps observations to states, their queries and counts of matching facts.
        in_keys: keys that both read.
        evidence: weights and supports of the rules, see `rule_evidence`.
        make_expand: see `ProofActor`.
    """

    def encoder() -> nn.Module:
        if config.encoder == "dot":
            return ProofDot(symbols, config)
        return ProofGraph(symbols, config)

    score = StepScore(encoder(), symbols, config, evidence=evidence)
    actor = ProofActor(score, expand, in_keys=in_keys, make_expand=make_expand)
    critic = ProofCritic(encoder(), config, read_goals=read_goals, in_keys=in_keys)
    return ProofActorCritic(actor, critic)
