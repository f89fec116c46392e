"""The proof policy as a function of named tensors, for export: states and their successors to logits."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from tensordict import TensorDictBase
from torch import Generator

from edgewise.models.distributions.ragged import RaggedCategorical
from edgewise.models.policy_function import PolicyFunction, TensorInfo, Tensors
from edgewise.systems.reasoning.models.decision import Decision, Expand

if TYPE_CHECKING:
    from edgewise.systems.reasoning.models.proof_policy import StepScore

STATES, SUCCESSORS, ATOMS = "states", "successors", "atoms"


class ProofFunction(PolicyFunction):
    """Logits of the successors of states; whoever calls it has an engine that finds the successors.

    Args:
        score: computes the logits of successors.
        expand: maps observations to decisions.
        env: an environment of the policy.
    """

    outputs = {  # noqa: RUF012 - never changed
        "logits": "log-probability of each successor among those of its state",
        "action": "the most probable successor of each state, counted from the first one of this state",
    }
    decoding = (
        "`action` is the most probable successor of each state. For a random one, sample among the "
        "successors with the same `owner` with the probabilities exp(`logits`)."
    )

    def __init__(self, score: StepScore, expand: Expand, *, env: Any) -> None:
        super().__init__()
        self.score, self._expand = copy.deepcopy(score), expand
        symbols, program = score.symbols, env.successors.program
        self.sizes = {STATES: env.num_envs, SUCCESSORS: 4 * env.num_envs, ATOMS: program.max_atoms}
        below = symbols.entities + symbols.variables + 1
        ints = torch.int64
        atom = "predicate, head and tail of each atom, all zero for none"
        self.inputs = (
            TensorInfo("atoms", ints, (STATES, ATOMS, 3), f"the states: {atom}", below),
            TensorInfo("query", ints, (STATES, 3), "the atom that is to be proved", below),
            TensorInfo("successors", ints, (SUCCESSORS, ATOMS, 3), f"successors of states: {atom}", below),
            TensorInfo("owner", ints, (SUCCESSORS,), "state of each successor, never decreasing", STATES),
            TensorInfo(
                "origin", ints, (SUCCESSORS,), "rule of each successor from 1, 0 for a fact or an end",
                symbols.rules + 1,
            ),
        )  # fmt: skip
        if score.config.reads_matches:
            facts, most = "number of facts that match each atom, without the query", 100
            self.inputs += (
                TensorInfo("matches", ints, (STATES, ATOMS), facts, most),
                TensorInfo("successor_matches", ints, (SUCCESSORS, ATOMS), facts, most),
            )

    def forward(self, inputs: Tensors) -> Tensors:
        """Return logits `[successors]` and actions `[states]`."""
        decision = Decision(
            atoms=inputs["atoms"],
            query=inputs["query"],
            successors=inputs["successors"],
            owner=inputs["owner"],
            origin=inputs["origin"],
            matches=(inputs["matches"], inputs["successor_matches"]) if "matches" in inputs else None,
        )
        found = RaggedCategorical(self.score(decision), decision.owner, num_segments=decision.atoms.shape[0])
        return {"logits": found.logits, "action": found.mode}

    def inputs_of(self, root: TensorDictBase) -> Tensors:
        """Return the states of an observation, with their successors by the engine."""
        decision = self._expand(root)
        rows = decision.owner < len(decision.atoms)
        decision = replace(
            decision, **{name: getattr(decision, name)[rows] for name in ("successors", "owner", "origin")}
        )
        found = {
            name: getattr(decision, name).long()
            for name in ("atoms", "query", "successors", "owner", "origin")
        }
        if decision.matches is not None:
            found["matches"], found["successor_matches"] = decision.matches[0], decision.matches[1][rows]
        return found

    def sample(self, sizes: Mapping[str, int], generator: Generator) -> Tensors:
        """Sample random inputs: every state has a successor, and its atoms come first."""
        found = super().sample(sizes, generator)
        for name in ("atoms", "query", "successors"):
            found[name] = found[name].clamp(min=1)
            found[name][..., 0] = found[name][..., 0] % self.score.symbols.predicates + 1
        for name in ("atoms", "successors"):
            count = torch.randint(1, sizes[ATOMS] + 1, found[name].shape[:1], generator=generator)
            found[name][torch.arange(sizes[ATOMS]) >= count.unsqueeze(-1)] = 0
        rest = found["owner"][sizes[STATES] :]
        found["owner"] = torch.cat((torch.arange(sizes[STATES]), rest)).sort().values
        return found

    def fit(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return sizes with at least one successor for every state."""
        return {**sizes, SUCCESSORS: max(sizes[SUCCESSORS], sizes[STATES] + 1)}
