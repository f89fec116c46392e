"""What the recipes of large knowledge graphs share: their data lies in a folder, and they learn alike."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, RunConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.models.config import ProofConfig


def reasoning_recipe(
    name: str, *, summary: str, max_successors: int, max_steps: int, rules: str | None = None
) -> Recipe:
    """The recipe `reasoning-NAME` on the folder `data/NAME`.

    Args:
        name: of the data.
        summary: what it shows, in a line.
        max_successors: successors that a goal can have.
        max_steps: of a proof.
        rules: a rule file of the folder; `rules.txt` if not given.
    """
    full_name = f"reasoning-{name}"
    return Recipe(
        name=full_name,
        summary=summary,
        env="reasoning",
        algorithm="ppo",
        config=RunConfig[ReasoningConfig, ProofConfig, PPOConfig](
            recipe=full_name,
            name=full_name,
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
        ),
    )
