"""Proofs over larger knowledge graphs, whose data is in a folder: one recipe for each."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.models.config import ProofConfig


def reasoning_recipe(
    name: str, *, summary: str, max_successors: int, max_steps: int, rules: str | None = None
) -> Recipe:
    """Build the recipe `reasoning-NAME` for the folder `data/NAME`.

    Args:
        name: name of the data.
        summary: one-line description.
        max_successors: maximum number of successors of a goal.
        max_steps: maximum number of steps of a proof.
        rules: rule file in the folder; `rules.txt` if not given.
    """
    full_name = f"reasoning-{name}"
    return Recipe(
        full_name,
        summary,
        env=ReasoningConfig(
            data=f"data/{name}",
            rules=rules,
            view="state",
            max_successors=max_successors,
            max_steps=max_steps,
            limit_fails=True,
            corrupt="both",
        ),
        model=ProofConfig(hidden=32, rounds=1),
        algorithm=PPOConfig(epochs=2, minibatch_size=1024, entropy_coefficient=0.01),
        training=TrainingConfig(
            total_frames=80_000,
            num_envs=256,
            rollout_length=8,
            schedules={"learning_rate": Linear(start=1e-3, end=1e-4)},
        ),
        evaluation=EvaluationConfig(
            every=20_000,
            episodes=256,
            settings={"split": "valid"},
            baselines=("random", "shortest_goal"),
            metric="correct",
        ),
        checkpoint=CheckpointConfig(every=40_000),
    )


FAMILY = reasoning_recipe(
    "family",
    summary="proofs of family relations from eighty-odd rules; give the folder as --env.data",
    max_successors=130,
    max_steps=4,
)
"""PPO learns to prove family relations in two steps, and to give up on false ones."""

UMLS = reasoning_recipe(
    "umls",
    summary="proofs over UMLS, to combine with embeddings; give the folder as --env.data",
    rules="rules_few.txt",
    max_successors=64,
    max_steps=4,
)
"""PPO learns proofs over UMLS, where the rules also prove many false atoms and embeddings rank better."""

WN18RR = reasoning_recipe(
    "wn18rr",
    summary="proofs over WordNet, to combine with embeddings; give the folder as --env.data",
    max_successors=262,
    max_steps=4,
    rules="rules_custom_recall_sorted.txt",
)
"""PPO learns proofs over WN18RR, which exist for a third of the queries; embeddings rank the rest."""
