"""Settings shared by the marine recipes: curriculum, evaluation and schedules."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, cast

from edgewise.algorithms.off_policy_config import OffPolicyConfig
from edgewise.config.run import (
    AnyRun,
    CheckpointConfig,
    EvaluationConfig,
    EvaluationStage,
    RunConfig,
    Stage,
    TrainingConfig,
    Until,
)
from edgewise.config.schedules import Linear, Schedule
from edgewise.experiments.recipe import Recipe
from edgewise.systems.marine.config import MarineConfig
from edgewise.systems.marine.models.config import MarineEgoConfig

STAGES = ((3, 0, 30.0), (4, 0, 35.0), (5, 0, 40.0), (5, 2, 40.0), (5, 3, 40.0), (5, 4, 40.0))
"""Robots, obstacles and minimum distance from start to goal, from the easiest to the hardest."""
BEGIN = (0, 80_000, 160_000, 260_000, 360_000, 480_000)
"""Frames at which each stage begins."""
TOTAL = 900_000
EVALUATION_SEED = 253


def marine_recipe(
    algorithm: str,
    config: OffPolicyConfig,
    *,
    actions: Literal["continuous", "discrete"],
    summary: str,
    evaluate_every: int = 75_000,
) -> Recipe:
    """Build the recipe `marine-ALGORITHM`: six stages, each evaluated on twenty worlds.

    Args:
        algorithm: name of the algorithm.
        config: settings of the algorithm.
        actions: continuous or discrete actions.
        summary: one line for `edgewise recipes`.
        evaluate_every: frames between evaluations, which take less than a tenth of the run.
    """
    name = f"marine-{algorithm}"
    schema = cast(type[AnyRun], RunConfig.__class_getitem__((MarineConfig, MarineEgoConfig, type(config))))
    run = schema(
        recipe=name,
        env_name="marine",
        algorithm_name=algorithm,
        name=name,
        env=MarineConfig(actions=actions, graph_edges=False, max_robots=5, max_obstacles=4, max_cores=0),
        model=MarineEgoConfig(),
        algorithm=config,
        training=TrainingConfig(
            total_frames=TOTAL,
            num_envs=128,
            rollout_length=8,
            schedules=exploration(TOTAL) | priority_annealing(config) | learning_rate_decay(config),
            curriculum=curriculum(),
        ),
        evaluation=EvaluationConfig(
            every=evaluate_every,
            seed=EVALUATION_SEED,
            settings={"end_at_first_collision": True},
            stages=tuple(
                EvaluationStage(name=stage_name(stage), episodes=20, settings=stage_settings(stage))
                for stage in STAGES
            ),
            metric="success",
        ),
        checkpoint=CheckpointConfig(every=150_000),
    )
    return Recipe(name=name, summary=summary, config=run)


def exploration(total_frames: int) -> dict[str, Schedule]:
    """Decay epsilon over the first quarter of a run."""
    return {"epsilon": Linear(start=0.6, end=0.05, frames=max(1, total_frames // 4))}


def priority_annealing(config: OffPolicyConfig) -> dict[str, Schedule]:
    """Anneal the importance weights' exponent to 1, if the replay buffer is prioritised."""
    return {"beta": Linear(start=config.beta, end=1.0)} if config.prioritised else {}


def learning_rate_decay(config: OffPolicyConfig) -> dict[str, Schedule]:
    """Decay the learning rate to a fifth."""
    return {"learning_rate": Linear(start=config.learning_rate, end=config.learning_rate / 5)}


def curriculum() -> tuple[Stage, ...]:
    """Return the stages; the last one has no end."""
    lengths = [Until(frames=later - sooner) for sooner, later in pairwise(BEGIN)]
    return tuple(
        Stage(name=stage_name(stage), env=stage_settings(stage), until=until)
        for stage, until in zip(STAGES, [*lengths, None], strict=True)
    )


def stage_name(stage: tuple[int, int, float]) -> str:
    """Return the name of a stage, such as `5-robots-4-obstacles-40m`."""
    robots, obstacles, distance = stage
    return f"{robots}-robots-{obstacles}-obstacles-{distance:g}m"


def stage_settings(stage: tuple[int, int, float]) -> dict[str, int | float]:
    """Return a stage as settings of the environment."""
    robots, obstacles, distance = stage
    return {
        "num_robots": robots,
        "num_cores": 0,
        "num_obstacles": obstacles,
        "min_start_goal_dis": distance,
    }
