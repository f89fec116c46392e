"""PPO learns which mined rule to try first, starting from the order of their confidences."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.models.config import ProofConfig

RECIPE = Recipe(
    "reasoning-mined",
    "proofs by mined rules; give the folder as --env.data and the rule file as --env.rules",
    env=ReasoningConfig(
        data="countries_s3",
        view="state",
        max_successors=64,
        # A chain of two atoms is a rule, then a fact.
        max_steps=2,
        limit_fails=True,
        corrupt="both",
    ),
    model=ProofConfig(hidden=32, rounds=1, prior=1.0, evidence=True),
    # Many small updates: the choice among dozens of rules starts nearly uniform.
    algorithm=PPOConfig(epochs=4, minibatch_size=256, entropy_coefficient=0.01),
    training=TrainingConfig(
        total_frames=8_000,
        num_envs=128,
        rollout_length=4,
        schedules={"learning_rate": Linear(start=3e-3, end=3e-4)},
    ),
    evaluation=EvaluationConfig(
        every=None,
        episodes=256,
        settings={"split": "valid"},
        baselines=("random", "shortest_goal"),
        metric="correct",
    ),
    checkpoint=CheckpointConfig(every=None),
)
