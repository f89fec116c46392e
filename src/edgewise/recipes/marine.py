"""What the recipes of the marine agents share: the boats' curriculum, its evaluation, and their pace."""

from __future__ import annotations

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
from edgewise.envs.marine.config import MarineConfig
from edgewise.models.config import EgoConfig
from edgewise.recipes.recipe import AnyRun, Recipe

STAGES = ((3, 0, 30.0), (4, 0, 35.0), (5, 0, 40.0), (5, 2, 40.0), (5, 3, 40.0), (5, 4, 40.0))
"""Robots, obstacles and least distance from start to goal, from the easiest to the hardest."""
TOTAL = 6_000_000
EVALUATION_SEED = 253


def marine_recipe(
    algorithm: str, config: OffPolicyConfig, *, actions: Literal["continuous", "discrete"], summary: str
) -> Recipe:
    """The recipe `marine-ALGORITHM`: six stages of a million frames each, measured on ten worlds of each.

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
            num_envs=64,
            steps=8,
            schedules=exploration(TOTAL) | annealing(config),
            curriculum=curriculum(),
        ),
        evaluation=EvaluationConfig(
            every=60_000,
            seed=EVALUATION_SEED,
            settings={"end_at_first_collision": True},
            stages=tuple(
                EvaluationStage(name=stage_name(stage), episodes=10, settings=stage_settings(stage))
                for stage in STAGES
            ),
            metric="success",
        ),
        checkpoint=CheckpointConfig(every=600_000),
    )
    return Recipe(
        name=name,
        summary=summary,
        env="marine",
        algorithm=algorithm,
        config=run,
        builder="edgewise.recipes.off_policy:build",
    )


def exploration(total_frames: int) -> dict[str, Schedule]:
    """Random actions become fewer over the first quarter of a run."""
    return {"epsilon": Linear(start=0.6, end=0.05, frames=max(1, total_frames // 4))}


def annealing(config: OffPolicyConfig) -> dict[str, Schedule]:
    """Weights make up for priorities in full at the end of a run, where there are priorities."""
    return {"beta": Linear(start=config.beta, end=1.0)} if config.prioritised else {}


def curriculum() -> tuple[Stage, ...]:
    """The stages, a million frames each; the last has no end."""
    return tuple(
        Stage(
            name=stage_name(stage),
            env=stage_settings(stage),
            until=None if stage is STAGES[-1] else Until(frames=TOTAL // len(STAGES)),
        )
        for stage in STAGES
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
