"""What the recipes of the marine agents share: the boats' curriculum, its evaluation, and their pace."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, cast

from edgewise.algorithms.off_policy_config import OffPolicyConfig
from edgewise.config.run import (
    CheckpointConfig,
    EvaluationConfig,
    EvaluationStage,
    RunConfig,
    Stage,
    TrainingConfig,
    Until,
)
from edgewise.config.schedules import Linear, Schedule
from edgewise.experiments.recipe import AnyRun, Recipe
from edgewise.models.config import EgoConfig
from edgewise.systems.marine.config import MarineConfig

STAGES = ((3, 0, 30.0), (4, 0, 35.0), (5, 0, 40.0), (5, 2, 40.0), (5, 3, 40.0), (5, 4, 40.0))
"""Robots, obstacles and least distance from start to goal, from the easiest to the hardest."""
BEGIN = (0, 80_000, 160_000, 260_000, 360_000, 480_000)
"""Frames at which each of them begins."""
TOTAL = 900_000
EVALUATION_SEED = 253


def marine_recipe(
    algorithm: str, config: OffPolicyConfig, *, actions: Literal["continuous", "discrete"], summary: str
) -> Recipe:
    """The recipe `marine-ALGORITHM`: six stages, each measured on twenty worlds.

    Args:
        algorithm: its name.
        config: its settings.
        actions: what boats may do.
        summary: what it shows, in a line.
    """
    name = f"marine-{algorithm}"
    schema = cast(type[AnyRun], RunConfig.__class_getitem__((MarineConfig, EgoConfig, type(config))))
    run = schema(
        recipe=name,
        name=name,
        env=MarineConfig(actions=actions, graph_edges=False, max_robots=5, max_obstacles=4, max_cores=0),
        model=EgoConfig(),
        algorithm=config,
        training=TrainingConfig(
            total_frames=TOTAL,
            num_envs=128,
            rollout_length=8,
            schedules=exploration(TOTAL) | annealing(config) | settling(config),
            curriculum=curriculum(),
        ),
        evaluation=EvaluationConfig(
            every=75_000,
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
    return Recipe(
        name=name,
        summary=summary,
        env="marine",
        algorithm=algorithm,
        config=run,
    )


def exploration(total_frames: int) -> dict[str, Schedule]:
    """Random actions become fewer over the first quarter of a run."""
    return {"epsilon": Linear(start=0.6, end=0.05, frames=max(1, total_frames // 4))}


def annealing(config: OffPolicyConfig) -> dict[str, Schedule]:
    """Weights make up for priorities in full at the end of a run, where there are priorities."""
    return {"beta": Linear(start=config.beta, end=1.0)} if config.prioritised else {}


def settling(config: OffPolicyConfig) -> dict[str, Schedule]:
    """Steps become smaller, to a fifth of what they begin with."""
    return {"learning_rate": Linear(start=config.learning_rate, end=config.learning_rate / 5)}


def curriculum() -> tuple[Stage, ...]:
    """The stages; the last has no end."""
    lengths = [Until(frames=later - sooner) for sooner, later in pairwise(BEGIN)]
    return tuple(
        Stage(name=stage_name(stage), env=stage_settings(stage), until=until)
        for stage, until in zip(STAGES, [*lengths, None], strict=True)
    )


def stage_name(stage: tuple[int, int, float]) -> str:
    """Such as `5-robots-4-obstacles-40m`."""
    robots, obstacles, distance = stage
    return f"{robots}-robots-{obstacles}-obstacles-{distance:g}m"


def stage_settings(stage: tuple[int, int, float]) -> dict[str, int | float]:
    """The same as settings of the environment."""
    robots, obstacles, distance = stage
    return {
        "num_robots": robots,
        "num_cores": 0,
        "num_obstacles": obstacles,
        "min_start_goal_dis": distance,
    }
